package catalogue

import (
	"context"
	"slices"
	"strconv"

	"berth/web/components"
	"berth/web/i18n"
)

// option is a choice of a filter.
type option struct{ value, label string }

// withChosen adds a chosen value that is none of the options, for it narrows
// all the same.
func withChosen(options []option, chosen string) []option {
	if chosen == "" || slices.ContainsFunc(options, func(o option) bool { return o.value == chosen }) {
		return options
	}
	return append([]option{{chosen, chosen}}, options...)
}

func plain(values []string) []option {
	out := make([]option, 0, len(values))
	for _, v := range values {
		out = append(out, option{v, v})
	}
	return out
}

func (l List) memories(ctx context.Context) []option {
	out := make([]option, 0, len(l.Memories))
	for _, gb := range l.Memories {
		out = append(out, option{strconv.Itoa(gb), i18n.T(ctx, "catalog.at-least", "Count", gb)})
	}
	return out
}

func (l List) uses(ctx context.Context) []option {
	out := make([]option, 0, len(l.UseCases))
	for _, u := range l.UseCases {
		out = append(out, option{u, components.UseCase(ctx, u)})
	}
	return out
}

// line is a row of the comparison. A value that differs by region is written
// once for each.
type line struct {
	label string
	value func(Model) []entry
}

// entry is a value, of a region where regions differ.
type entry struct{ region, text string }

func rows(ctx context.Context) []line {
	return []line{
		{i18n.T(ctx, "catalog.architecture"), one(func(m Model) string { return m.Architecture })},
		{i18n.T(ctx, "catalog.memory"), one(func(m Model) string { return components.Memory(ctx, m.Memory) })},
		{i18n.T(ctx, "catalog.vram"), one(func(m Model) string { return m.vram(ctx) })},
		{i18n.T(ctx, "catalog.int8"), one(func(m Model) string { return m.int8(ctx) })},
		{i18n.T(ctx, "catalog.good-for"), one(func(m Model) string { return m.useCases(ctx) })},
		{i18n.T(ctx, "catalog.max-vcores"), perRegion(func(o Offer) string { return o.vcores(ctx) })},
		{i18n.T(ctx, "catalog.max-memory"), perRegion(func(o Offer) string { return o.memory(ctx) })},
		{i18n.T(ctx, "catalog.generations"), perRegion(func(o Offer) string { return o.generations(ctx) })},
		{i18n.T(ctx, "catalog.price"), perRegion(func(o Offer) string { return orUnknown(i18n.Euros(ctx, o.HourlyPrice)) })},
		{i18n.T(ctx, "catalog.resource"), one(func(m Model) string { return m.ResourceName })},
	}
}

func orUnknown(text string) string {
	if text == "" {
		return unknown
	}
	return text
}

func one(of func(Model) string) func(Model) []entry {
	return func(m Model) []entry { return []entry{{text: orUnknown(of(m))}} }
}

func perRegion(of func(Offer) string) func(Model) []entry {
	return func(m Model) []entry {
		if len(m.Offers) == 0 {
			return []entry{{text: unknown}}
		}
		all := make([]entry, 0, len(m.Offers))
		for _, o := range m.Offers {
			all = append(all, entry{o.Region, of(o)})
		}
		if !slices.ContainsFunc(all, func(e entry) bool { return e.text != all[0].text }) {
			return []entry{{text: all[0].text}}
		}
		return all
	}
}
