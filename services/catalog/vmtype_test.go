package catalog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/services/catalog"
)

func types() catalog.Types { return catalog.Published().Types }

func TestTypesAreReadInEverySpelling(t *testing.T) {
	spelled := func(name string, vcores, memoryGiB int, generation string, p catalog.Performance) catalog.VMType {
		return catalog.VMType{Name: name, VCores: vcores, MemoryMiB: memoryGiB * gib, Generation: generation, Performance: p}
	}
	tests := map[string]struct {
		name        string
		performance catalog.Performance
		want        catalog.VMType
	}{
		"flag within the name":           {"tinav7.c8r32p1", "", spelled("tinav7.c8r32p1", 8, 32, "v7", catalog.Highest)},
		"flag 2 is high":                 {"tinav6.c4r8p2", "", spelled("tinav6.c4r8p2", 4, 8, "v6", catalog.High)},
		"flag 3 is medium":               {"tinav6.c4r8p3", "", spelled("tinav6.c4r8p3", 4, 8, "v6", catalog.Medium)},
		"flag given apart":               {"tinav7.c8r32", catalog.Highest, spelled("tinav7.c8r32p1", 8, 32, "v7", catalog.Highest)},
		"no flag at all is high":         {"tinav7.c8r32", "", spelled("tinav7.c8r32p2", 8, 32, "v7", catalog.High)},
		"the name's flag wins":           {"tinav7.c8r32p1", catalog.Medium, spelled("tinav7.c8r32p1", 8, 32, "v7", catalog.Highest)},
		"space around it is no harm":     {"  tinav7.c8r32p1\n", "", spelled("tinav7.c8r32p1", 8, 32, "v7", catalog.Highest)},
		"the largest that may be named":  {"tinav7.c1024r65536p1", "", spelled("tinav7.c1024r65536p1", 1024, 65536, "v7", catalog.Highest)},
		"a named type counts as highest": {"u1.2xlarge", catalog.Medium, catalog.VMType{Name: "u1.2xlarge", VCores: 8, MemoryMiB: 32 * gib, Performance: catalog.Highest, Named: true}},
		"an inference type has GPUs": {"ns-inf7-64c450r-2h100g", "", catalog.VMType{
			Name: "ns-inf7-64c450r-2h100g", VCores: 64, MemoryMiB: 450 * gib, Generation: "v7", Performance: catalog.Highest,
			GPUModel: "nvidia-h100", GPUCount: 2, Named: true,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := types().Resolve(tt.name, tt.performance)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsNoTypeIsRefusedByName(t *testing.T) {
	for _, name := range []string{
		"", "tina", "tinav7", "tinav7.c8", "tinav7.r32", "tinav7.c0r32p1", "tinav7.c8r0p1", "tinav7.c08r32p1", "tinav0.c8r32p1",
		"tinav7.c8r32p0", "tinav7.c8r32p4", "tinav7.c8r32p", "tinav7.c8r32p11", "TINAV7.c8r32p1", "tinav7.c-8r32p1", "tinav7.c8r32p1 x",
		"tinav7.c1025r1p1", "tinav7.c1r65537p1", "tinav7.c99999999999999999999r1", "u1", "u1.", "U1.large", "u1.large\x00", strings.Repeat("a", 10_000),
	} {
		_, err := types().Resolve(name, catalog.Highest)
		e, ok := services.AsError(err)
		if !ok || e.Kind != services.KindInvalid || !e.Has(services.CodeInvalidType) || e.Violations[0].Field != "type" {
			t.Errorf("%.40q is answered by %v", name, err)
		}
	}
}

func TestAnUnknownPerformanceIsRefused(t *testing.T) {
	_, err := types().Resolve("tinav7.c8r32", "turbo")
	if e, ok := services.AsError(err); !ok || !e.Has(services.CodeInvalidValue) || e.Violations[0].Field != "performance" {
		t.Errorf("answered by %v", err)
	}
}

func TestAGenerationLeftOpenIsTheMachines(t *testing.T) {
	u1, err := types().Resolve("u1.large", "")
	if err != nil {
		t.Fatal(err)
	}
	if s := u1.Spec("v6", catalog.TenancyDefault); s.Generation != "v6" || s.Inference {
		t.Errorf("got %+v", s)
	}
	inference, err := types().Resolve("ns-inf7-16c128r-1l40g", "")
	if err != nil {
		t.Fatal(err)
	}
	if s := inference.Spec("v6", catalog.TenancyDefault); s.Generation != "v7" || !s.Inference {
		t.Errorf("got %+v", s)
	}
}

// Whatever is read is spelled in a way that reads as the same.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"tinav7.c8r32p1", "tinav7.c8r32", "u1.2xlarge", "ns-inf7-16c128r-1l40g", "tina.c1r1", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		first, err := types().Resolve(name, "")
		if err != nil {
			return
		}
		if first.VCores < 1 || first.MemoryMiB < 512 || !first.Performance.Valid() {
			t.Errorf("%q reads as %+v", name, first)
		}
		second, err := types().Resolve(first.Name, "")
		if err != nil {
			t.Fatalf("%q is called %q, which cannot be read: %v", name, first.Name, err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%q is called %q, which reads as something else: %s", name, first.Name, diff)
		}
	})
}

func TestMemoryIsWrittenInGiBWithoutNeedlessDigits(t *testing.T) {
	for mib, want := range map[int]string{512: "0.5", 1024: "1", 256 * gib: "256", 1536: "1.5"} {
		if got := catalog.GiB(mib); got != want {
			t.Errorf("%d MiB is %q, want %q", mib, got, want)
		}
	}
}
