package vms

import (
	"context"
	"strings"

	"berth/services"
	"berth/services/catalog"
	"berth/web/i18n"
)

// line compares a part of the present type with the filled-in one.
type line struct {
	part    string
	label   string
	before  string
	after   string
	allowed string
	broken  bool
	gauge   *gauge
}

// nothing stands for a figure that is not known.
const nothing = "–"

func (r Resize) lines(ctx context.Context) []line {
	lines := []line{
		r.vcoresLine(ctx), r.memoryLine(ctx),
		{
			part: string(services.LimitGeneration), label: i18n.T(ctx, "field.generation"), before: r.VM.Generation, after: nothing,
			allowed: r.generations(ctx),
		},
		{
			part: string(services.LimitPerformance), label: i18n.T(ctx, "field.performance"),
			before: performance(ctx, r.VM.Performance), after: nothing, allowed: r.flag(ctx),
		},
	}
	if t := r.Becomes; t != nil {
		lines[2].after, lines[3].after = r.generation(*t), performance(ctx, t.Performance)
	}
	for i := range lines {
		lines[i].broken = r.breaks(services.Limit(lines[i].part))
	}
	return lines
}

func (r Resize) vcoresLine(ctx context.Context) line {
	l := line{
		part: string(services.LimitVCores), label: i18n.T(ctx, "gpu.vcores"), before: i18n.Number(ctx, r.VM.VCores), after: nothing,
		allowed: i18n.T(ctx, "resize.any"),
	}
	g := gauge{was: r.VM.VCores}
	if r.Limits != nil && r.Limits.MaxVCores > 0 {
		g.limit = r.Limits.MaxVCores
		l.allowed = i18n.T(ctx, "resize.at-most", "Max", i18n.Number(ctx, g.limit))
	}
	if r.Becomes != nil {
		g.value, l.after = r.Becomes.VCores, i18n.Number(ctx, r.Becomes.VCores)
		l.gauge = &g
	}
	return l
}

func (r Resize) memoryLine(ctx context.Context) line {
	l := line{
		part: string(services.LimitMemory), label: i18n.T(ctx, "gpu.memory"), before: i18n.GiB(ctx, r.VM.MemoryMiB), after: nothing,
		allowed: i18n.T(ctx, "resize.any"),
	}
	g := gauge{was: r.VM.MemoryMiB}
	if r.Limits != nil && r.Limits.MaxMemoryMiB > 0 {
		g.limit = r.Limits.MaxMemoryMiB
		l.allowed = i18n.T(ctx, "resize.at-most", "Max", i18n.GiB(ctx, g.limit))
	}
	if r.Becomes != nil {
		g.value, l.after = r.Becomes.MemoryMiB, i18n.GiB(ctx, r.Becomes.MemoryMiB)
		l.gauge = &g
	}
	return l
}

// generation is the one after the resize: a type that leaves it open keeps the
// machine's.
func (r Resize) generation(t catalog.VMType) string {
	if t.Generation == "" {
		return r.VM.Generation
	}
	return t.Generation
}

func (r Resize) generations(ctx context.Context) string {
	if r.Limits == nil || len(r.Limits.Generations) == 0 {
		return i18n.T(ctx, "resize.any")
	}
	return strings.Join(r.Limits.Generations, i18n.T(ctx, "gpu.or"))
}

func (r Resize) flag(ctx context.Context) string {
	if r.Limits == nil {
		return i18n.T(ctx, "resize.any")
	}
	return performance(ctx, catalog.Highest)
}

// breaks reports whether the filled-in type breaks a limit of any GPU.
func (r Resize) breaks(limit services.Limit) bool {
	for _, f := range r.Fits {
		for _, v := range f.Broken {
			if v.Limit == limit {
				return true
			}
		}
	}
	return false
}
