package vms

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/i18n"
)

// typeFields are the fields of a type with what is to be said about them.
type typeFields struct {
	choice      TypeChoice
	named       []NamedType
	generations []string
	broken      []services.Violation // about the type itself
	limits      *Limits              // of the GPUs; nil: none
	exceeded    []services.Limit     // those that the filled-in type breaks
}

// generationOptions also has the chosen generation where the catalogue no
// longer knows it.
func (f typeFields) generationOptions() []components.Option {
	chosen, all := f.choice.Generation, f.generations
	if chosen != "" && !slices.Contains(all, chosen) {
		all = append(slices.Clone(all), chosen)
	}
	options := make([]components.Option, 0, len(all))
	for _, g := range all {
		options = append(options, components.Option{Value: g, Label: g, Selected: g == chosen})
	}
	return options
}

func (f typeFields) performanceOptions(ctx context.Context) []components.Option {
	options := make([]components.Option, 0, len(catalog.Performances))
	for _, p := range catalog.Performances {
		options = append(options, components.Option{Value: string(p), Label: performance(ctx, p), Selected: p == f.choice.Performance})
	}
	return options
}

func (f typeFields) namedOptions(ctx context.Context) []components.Option {
	options := make([]components.Option, 0, len(f.named))
	for _, n := range f.named {
		detail := size(ctx, n.Type.VCores, n.Type.MemoryMiB)
		if n.Type.Inference() {
			detail += " · " + models(ctx, n.Type)
		}
		if price := i18n.Euros(ctx, n.Type.HourlyPrice); price != "" {
			detail += " · " + price
		}
		options = append(options, components.Option{
			Value: n.Type.Name, Label: n.Type.Name, Detail: detail, Selected: n.Type.Name == f.choice.Named,
			Reason: components.Reasons(ctx, n.Reasons),
		})
	}
	return options
}

// partError is what is wrong with a number of a type that is built. What is
// still empty is wrong only once the form was sent.
func (f typeFields) partError(ctx context.Context, text string, limit services.Limit) string {
	c := f.choice
	switch {
	case c.By != ByParts:
		return ""
	case text == "" && typeBroken(f.broken):
		return i18n.T(ctx, "error.required")
	case text != "" && !whole(text):
		return i18n.T(ctx, "vm.whole-number")
	case typeBroken(f.broken) && whole(c.VCores) && whole(c.Memory):
		return i18n.T(ctx, "vm.too-large")
	}
	return f.limitError(ctx, limit)
}

// limitError names the limit of the GPUs that a field breaks.
func (f typeFields) limitError(ctx context.Context, limit services.Limit) string {
	if f.choice.By != ByParts || f.limits == nil || !slices.Contains(f.exceeded, limit) {
		return ""
	}
	switch limit {
	case services.LimitVCores:
		return i18n.T(ctx, "resize.most-with", "Max", f.limits.MaxVCores, "Model", f.limits.Model)
	case services.LimitMemory:
		return i18n.T(ctx, "resize.most-with", "Max", catalog.GiB(f.limits.MaxMemoryMiB), "Model", f.limits.Model)
	case services.LimitGeneration:
		return i18n.T(ctx, "resize.needs", "Max", strings.Join(f.limits.Generations, i18n.T(ctx, "gpu.or")), "Model", f.limits.Model)
	}
	return i18n.T(ctx, "resize.needs", "Max", performance(ctx, catalog.Highest), "Model", f.limits.Model)
}

// hint is the most that a field may hold with the GPUs, where its error does
// not say so.
func (f typeFields) hint(ctx context.Context, limit services.Limit) string {
	if f.limits == nil || slices.Contains(f.exceeded, limit) {
		return ""
	}
	switch {
	case limit == services.LimitVCores && f.limits.MaxVCores > 0:
		return i18n.T(ctx, "resize.at-most", "Max", i18n.Number(ctx, f.limits.MaxVCores))
	case limit == services.LimitMemory && f.limits.MaxMemoryMiB > 0:
		return i18n.T(ctx, "resize.at-most", "Max", catalog.GiB(f.limits.MaxMemoryMiB))
	}
	return ""
}

func (f typeFields) flagHint(ctx context.Context) string {
	if f.limitError(ctx, services.LimitPerformance) != "" {
		return ""
	}
	return i18n.T(ctx, "vm.performance-hint")
}

func (f typeFields) textError(ctx context.Context) string {
	if f.choice.By != ByText {
		return ""
	}
	return components.Of(ctx, f.broken, "type")
}

func (f typeFields) namedError(ctx context.Context) string {
	if f.choice.By != ByName {
		return ""
	}
	return components.Of(ctx, f.broken, "type")
}

// typeBroken reports whether the type itself can't be read.
func typeBroken(broken []services.Violation) bool {
	return slices.ContainsFunc(broken, func(v services.Violation) bool {
		return v.Field == "type" && (v.Code == services.CodeInvalidType || v.Code == services.CodeRequired)
	})
}

// part is a stretch of a type's name and what it says.
type part struct{ code, words string }

// parts take a spelled-out name apart; a named type says nothing by itself, so
// its figures stand in their place.
func parts(ctx context.Context, t catalog.VMType) []part {
	if !t.Named {
		flag := slices.Index(catalog.Performances, t.Performance) + 1
		return []part{
			{"tina" + t.Generation, i18n.T(ctx, "spelling.generation", "Generation", t.Generation)},
			{"c" + strconv.Itoa(t.VCores), i18n.T(ctx, "vm.vcores-are", "Count", t.VCores)},
			{"r" + catalog.GiB(t.MemoryMiB), i18n.GiB(ctx, t.MemoryMiB)},
			{"p" + strconv.Itoa(flag), i18n.T(ctx, "spelling.performance", "Performance", i18n.T(ctx, "performance."+string(t.Performance)))},
		}
	}
	all := []part{
		{i18n.Number(ctx, t.VCores), i18n.T(ctx, "gpu.vcores")},
		{i18n.GiB(ctx, t.MemoryMiB), i18n.T(ctx, "gpu.memory")},
		{generationOf(ctx, t), i18n.T(ctx, "field.generation")},
		{performance(ctx, t.Performance), i18n.T(ctx, "field.performance")},
	}
	if t.Inference() {
		all = append(all, part{models(ctx, t), i18n.T(ctx, "vm.comes-with")})
	}
	return all
}

func generationOf(ctx context.Context, t catalog.VMType) string {
	if t.Generation == "" {
		return i18n.T(ctx, "vm.any-generation")
	}
	return t.Generation
}
