package vms

import (
	"context"
	"strings"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/i18n"
)

// size writes cores and memory: "24 vCores, 192 GiB".
func size(ctx context.Context, vcores, memoryMiB int) string {
	return i18n.T(ctx, "vm.size", "VCores", i18n.T(ctx, "vm.vcores-are", "Count", vcores), "Memory", i18n.GiB(ctx, memoryMiB))
}

// performance names a flag with the number that types write it as.
func performance(ctx context.Context, p catalog.Performance) string {
	if !p.Valid() {
		return string(p)
	}
	return i18n.T(ctx, "performance."+string(p))
}

// tenancy names a tenancy; empty is the default one.
func tenancy(ctx context.Context, t catalog.Tenancy) string {
	if t == catalog.TenancyDedicated {
		return i18n.T(ctx, "tenancy.dedicated")
	}
	return i18n.T(ctx, "tenancy.default")
}

// names lists GPUs in one line.
func names(gpus []GPU) string {
	all := make([]string, 0, len(gpus))
	for _, g := range gpus {
		all = append(all, g.Name)
	}
	return strings.Join(all, ", ")
}

// once lists broken rules once each: several GPUs of a machine break the same.
func once(ctx context.Context, broken []services.Violation) []services.Violation {
	var kept []services.Violation
	seen := map[string]bool{}
	for _, v := range broken {
		if s := components.Sentence(ctx, v); !seen[s] {
			seen[s] = true
			kept = append(kept, v)
		}
	}
	return kept
}

// models writes what a type has built in: "2 × nvidia-h100".
func models(ctx context.Context, t catalog.VMType) string {
	return i18n.T(ctx, "vm.built-in", "Number", t.GPUCount, "Model", t.GPUModel)
}

func vcoresAllowed(ctx context.Context, p Page) string {
	if p.maxVCores() == 0 {
		return i18n.Number(ctx, p.VM.VCores)
	}
	return i18n.T(ctx, "vm.of-allowed", "Have", p.VM.VCores, "Max", p.maxVCores())
}

func memoryAllowed(ctx context.Context, p Page) string {
	if p.maxMemoryMiB() == 0 {
		return i18n.GiB(ctx, p.VM.MemoryMiB)
	}
	return i18n.T(ctx, "vm.of-allowed", "Have", catalog.GiB(p.VM.MemoryMiB), "Max", i18n.GiB(ctx, p.maxMemoryMiB()))
}
