package catalog_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/services/catalog"
)

const gib = 1024

// l40 is the model's offer in eu-west-2.
var l40 = catalog.Offer{Model: "nvidia-l40", Region: "eu-west-2", MaxVCores: 35, MaxMemoryMiB: 250 * gib, Generations: []string{"v7"}}

// spec is a VM that the L40 suits, changed by the caller.
func spec(change func(*catalog.Spec)) catalog.Spec {
	s := catalog.Spec{VCores: 8, MemoryMiB: 32 * gib, Generation: "v7", Performance: catalog.Highest, Tenancy: catalog.TenancyDefault}
	if change != nil {
		change(&s)
	}
	return s
}

// words writes broken rules shortly: "vm-specs-mismatch/vcores 36>35".
func words(broken []services.Violation) []string {
	var out []string
	for _, v := range broken {
		s := string(v.Code)
		if v.Limit != "" {
			s += fmt.Sprintf("/%s %v>%v", v.Limit, v.Args["Have"], v.Args["Max"])
		}
		out = append(out, s)
	}
	return out
}

func TestAttachRules(t *testing.T) {
	anywhere := catalog.Offer{Model: "nvidia-l40s", Region: "hikube"}
	tests := map[string]struct {
		offer  catalog.Offer
		change func(*catalog.Spec)
		want   []string
	}{
		"a VM within every limit is allowed":   {offer: l40},
		"the vCore maximum is included":        {offer: l40, change: func(s *catalog.Spec) { s.VCores = 35 }},
		"one vCore more is too many":           {l40, func(s *catalog.Spec) { s.VCores = 36 }, []string{"vm-specs-mismatch/vcores 36>35"}},
		"the memory maximum is included":       {offer: l40, change: func(s *catalog.Spec) { s.MemoryMiB = 250 * gib }},
		"one MiB more is too much":             {l40, func(s *catalog.Spec) { s.MemoryMiB = 250*gib + 512 }, []string{"vm-specs-mismatch/memory 250.5>250"}},
		"high performance is not enough":       {l40, func(s *catalog.Spec) { s.Performance = catalog.High }, []string{"vm-specs-mismatch/performance high>highest"}},
		"medium performance is not enough":     {l40, func(s *catalog.Spec) { s.Performance = catalog.Medium }, []string{"vm-specs-mismatch/performance medium>highest"}},
		"another CPU generation does not suit": {l40, func(s *catalog.Spec) { s.Generation = "v6" }, []string{"vm-specs-mismatch/generation v6>v7"}},
		"a dedicated VM takes no GPU":          {l40, func(s *catalog.Spec) { s.Tenancy = catalog.TenancyDedicated }, []string{"vm-dedicated"}},
		"an inference type takes no other GPU": {l40, func(s *catalog.Spec) { s.Inference = true }, []string{"inference-type"}},
		"no limit does not bind": {
			offer: anywhere, change: func(s *catalog.Spec) { s.VCores, s.MemoryMiB, s.Generation = 1024, 65536*gib, "v99" },
		},
		"performance binds where no limit does": {anywhere, func(s *catalog.Spec) { s.Performance = catalog.High }, []string{"vm-specs-mismatch/performance high>highest"}},
		"all broken rules are told at once": {l40, func(s *catalog.Spec) {
			*s = catalog.Spec{VCores: 36, MemoryMiB: 300 * gib, Generation: "v6", Performance: catalog.Medium, Tenancy: catalog.TenancyDedicated, Inference: true}
		}, []string{
			"vm-specs-mismatch/performance medium>highest", "vm-specs-mismatch/vcores 36>35", "vm-specs-mismatch/memory 300>250",
			"vm-specs-mismatch/generation v6>v7", "vm-dedicated", "inference-type",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, words(tt.offer.Check(spec(tt.change)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheOldestGenerationIsTakenWhereNoneIsNamed(t *testing.T) {
	for want, o := range map[string]catalog.Offer{
		"v6": {Generations: []string{"v6", "v7"}}, "v7": l40, "": {},
	} {
		if got := o.Oldest(); got != want {
			t.Errorf("of %v it is %q, want %q", o.Generations, got, want)
		}
	}
}

func TestLargestFitsEveryOfferAndIsNeverAboveWhatWasAsked(t *testing.T) {
	a100 := catalog.Offer{Model: "nvidia-a100-80", Region: "eu-west-2", MaxVCores: 35, MaxMemoryMiB: 256 * gib, Generations: []string{"v6"}}
	tests := map[string]struct {
		change func(*catalog.Spec)
		offers []catalog.Offer
		want   catalog.Spec
		none   bool
	}{
		"what fits stays":           {nil, []catalog.Offer{l40}, spec(nil), false},
		"maximums are brought down": {func(s *catalog.Spec) { s.VCores, s.MemoryMiB = 64, 512*gib }, []catalog.Offer{l40}, spec(func(s *catalog.Spec) { s.VCores, s.MemoryMiB = 35, 250*gib }), false},
		"the flag is raised":        {func(s *catalog.Spec) { s.Performance = catalog.Medium }, []catalog.Offer{l40}, spec(nil), false},
		"the generation is changed": {nil, []catalog.Offer{a100}, spec(func(s *catalog.Spec) { s.Generation = "v6" }), false},
		"no generation suits both":  {nil, []catalog.Offer{l40, a100}, catalog.Spec{}, true},
		"without GPUs anything is":  {func(s *catalog.Spec) { s.VCores = 1000 }, nil, spec(func(s *catalog.Spec) { s.VCores = 1000 }), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := catalog.Largest(spec(tt.change), tt.offers)
			if ok == tt.none {
				t.Fatalf("found: %v", ok)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if i := slices.IndexFunc(tt.offers, func(o catalog.Offer) bool { return len(o.Check(got)) > 0 }); ok && i >= 0 {
				t.Errorf("%s is broken by %+v", tt.offers[i].Model, got)
			}
		})
	}
}

func TestAdviceIsEightToSixteenVCPUPerGPU(t *testing.T) {
	tests := []struct {
		vcores, gpus int
		want         catalog.Advice
	}{
		{8, 0, catalog.Advice{}},
		{7, 1, catalog.Advice{PerGPU: 7, Below: true}},
		{8, 1, catalog.Advice{PerGPU: 8}},
		{16, 1, catalog.Advice{PerGPU: 16}},
		{17, 1, catalog.Advice{PerGPU: 17, Above: true}},
		{15, 2, catalog.Advice{PerGPU: 7, Below: true}},
		{33, 2, catalog.Advice{PerGPU: 16, Above: true}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, catalog.Advise(tt.vcores, tt.gpus)); diff != "" {
			t.Errorf("%d vCPU for %d GPUs: %s", tt.vcores, tt.gpus, diff)
		}
	}
}
