// Package quotas shows what accounts may have of each thing, and have: the same
// to tenants and operators.
package quotas

import (
	"context"
	"strconv"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is an account's own quotas.
type Page struct {
	layout.Shell
	Rows []Quota // by region and item
}

func (p Page) region() components.Region {
	return components.Region{ID: "quotas", Fragment: urls.Fragment(urls.Quotas), Events: []string{components.EventGPUs, components.EventVMs, components.EventActivity}}
}

// Quota is what an account may have of an item in a region, and has.
type Quota struct {
	Account     services.AccountID
	AccountName string
	Region      string
	Item        string // a model, or one of services.Resources
	Max         *int   // nil: unlimited
	Used        int
	Pending     int // of those used: on their way in or out
}

// TableOptions say what a list of quotas shows besides the quotas.
type TableOptions struct {
	Owners   bool // whose they are
	Editable bool // for operators: where to change them
}

// ID names a quota's row.
func (q Quota) ID() string { return string(q.Account) + "-" + q.Region + "-" + q.Item }

// editor is the form that changes it.
func (q Quota) editor() string {
	return urls.ListQuery{Account: string(q.Account), Region: q.Region, Model: q.Item}.On(urls.AdminQuotas) + "#set-quota"
}

// State is the word for how full it is, as data-state.
func (q Quota) State() string {
	switch {
	case q.Max == nil:
		return "unlimited"
	case *q.Max == 0 && q.Used == 0:
		return "none"
	case q.Used >= *q.Max:
		return "full"
	}
	return "open"
}

// Item names what the quota is about.
func Item(ctx context.Context, item string) string {
	if i18n.Has(ctx, "quotas.item."+item) {
		return i18n.T(ctx, "quotas.item."+item)
	}
	return item
}

// Limit writes the maximum: 0 is none, and never reads as unlimited.
func (q Quota) Limit(ctx context.Context) string {
	if q.Max == nil {
		return i18n.T(ctx, "quotas.unlimited")
	}
	return i18n.Number(ctx, *q.Max)
}

// Value is the limit as forms and scripts write it: a number or "unlimited".
func (q Quota) Value() string {
	if q.Max == nil {
		return "unlimited"
	}
	return strconv.Itoa(*q.Max)
}

func (q Quota) bar(ctx context.Context) components.Bar {
	tone := components.ToneInfo
	if q.Max != nil && q.Used >= *q.Max {
		tone = components.ToneWait
	}
	most := 0
	if q.Max != nil {
		most = max(*q.Max, q.Used)
	}
	return components.Bar{Label: i18n.T(ctx, "quotas.is", "Used", q.Used, "Max", q.Limit(ctx)), Total: most,
		Parts: []components.BarPart{{Tone: tone, Value: q.Used}}}
}
