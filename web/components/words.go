package components

import (
	"context"
	"strings"

	"berth/services/catalog"
	"berth/web/i18n"
)

// Memory writes a card's memory, "80 GB HBM3"; empty: unknown.
func Memory(ctx context.Context, m catalog.Memory) string {
	if m.GB == 0 {
		return m.Type
	}
	return strings.TrimSpace(i18n.T(ctx, "unit.gb", "Size", m.GB) + " " + m.Type)
}

// UseCase names what a model is good for: the text "use-case.<key>", or the
// key itself where an operator wrote one of their own.
func UseCase(ctx context.Context, key string) string {
	if !i18n.Has(ctx, "use-case."+key) {
		return key
	}
	return i18n.T(ctx, "use-case."+key)
}
