package components

import (
	"context"

	"berth/web/i18n"
)

// UseCase names what a model is good for: the text "use-case.<key>", or the
// key itself where an operator wrote one of their own.
func UseCase(ctx context.Context, key string) string {
	if !i18n.Has(ctx, "use-case."+key) {
		return key
	}
	return i18n.T(ctx, "use-case."+key)
}
