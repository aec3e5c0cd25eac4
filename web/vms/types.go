package vms

import (
	"context"
	"slices"
	"strconv"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/i18n"
)

// generationOptions also has the chosen generation where the catalogue no
// longer knows it.
func generationOptions(c TypeChoice, generations []string) []components.Option {
	if c.Generation != "" && !slices.Contains(generations, c.Generation) {
		generations = append(slices.Clone(generations), c.Generation)
	}
	options := make([]components.Option, 0, len(generations))
	for _, g := range generations {
		options = append(options, components.Option{Value: g, Label: g, Selected: g == c.Generation})
	}
	return options
}

func performanceOptions(ctx context.Context, c TypeChoice) []components.Option {
	options := make([]components.Option, 0, len(catalog.Performances))
	for _, p := range catalog.Performances {
		options = append(options, components.Option{Value: string(p), Label: performance(ctx, p), Selected: p == c.Performance})
	}
	return options
}

func namedOptions(ctx context.Context, c TypeChoice, named []NamedType) []components.Option {
	options := make([]components.Option, 0, len(named))
	for _, n := range named {
		detail := size(ctx, n.Type.VCores, n.Type.MemoryMiB)
		if n.Type.Inference() {
			detail += " · " + models(ctx, n.Type)
		}
		options = append(options, components.Option{
			Value: n.Type.Name, Label: n.Type.Name, Detail: detail, Selected: n.Type.Name == c.Named,
			Reason: components.Reasons(ctx, n.Reasons),
		})
	}
	return options
}

// partError is what is wrong with a number of a type that is built. What is
// still empty is wrong only once the form was sent.
func (c TypeChoice) partError(ctx context.Context, text string, broken []services.Violation) string {
	switch {
	case c.By != ByParts:
		return ""
	case text == "" && typeBroken(broken):
		return i18n.T(ctx, "error.required")
	case text != "" && !whole(text):
		return i18n.T(ctx, "vm.whole-number")
	case typeBroken(broken) && whole(c.VCores) && whole(c.Memory):
		return i18n.T(ctx, "vm.too-large")
	}
	return ""
}

func (c TypeChoice) textError(ctx context.Context, broken []services.Violation) string {
	if c.By != ByText {
		return ""
	}
	return components.Of(ctx, broken, "type")
}

func (c TypeChoice) namedError(ctx context.Context, broken []services.Violation) string {
	if c.By != ByName {
		return ""
	}
	return components.Of(ctx, broken, "type")
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
