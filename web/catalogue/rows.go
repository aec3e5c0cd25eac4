package catalogue

import (
	"context"
	"strconv"
	"strings"

	"berth/web/components"
	"berth/web/i18n"
)

// option is a choice of a filter.
type option struct{ value, label string }

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

// line is a row of the comparison.
type line struct {
	label string
	value func(Model) string
}

func rows(ctx context.Context) []line {
	return []line{
		{i18n.T(ctx, "catalog.architecture"), func(m Model) string { return orUnknown(m.Architecture) }},
		{i18n.T(ctx, "catalog.memory"), func(m Model) string { return orUnknown(m.Memory) }},
		{i18n.T(ctx, "catalog.vram"), func(m Model) string { return m.vram(ctx) }},
		{i18n.T(ctx, "catalog.int8"), func(m Model) string { return m.int8(ctx) }},
		{i18n.T(ctx, "catalog.good-for"), func(m Model) string { return m.useCases(ctx) }},
		{i18n.T(ctx, "catalog.max-vcores"), perRegion(func(o Offer) string { return o.vcores(ctx) })},
		{i18n.T(ctx, "catalog.max-memory"), perRegion(func(o Offer) string { return o.memory(ctx) })},
		{i18n.T(ctx, "catalog.generations"), perRegion(func(o Offer) string { return o.generations(ctx) })},
		{i18n.T(ctx, "catalog.resource"), func(m Model) string { return orUnknown(m.ResourceName) }},
	}
}

func orUnknown(text string) string {
	if text == "" {
		return unknown
	}
	return text
}

// perRegion writes a limit once where all regions agree, else for each.
func perRegion(of func(Offer) string) func(Model) string {
	return func(m Model) string {
		var parts []string
		same := true
		for _, o := range m.Offers {
			parts = append(parts, o.Region+": "+of(o))
			same = same && of(o) == of(m.Offers[0])
		}
		switch {
		case len(parts) == 0:
			return unknown
		case same:
			return of(m.Offers[0])
		}
		return strings.Join(parts, "; ")
	}
}
