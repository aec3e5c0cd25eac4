package components

import (
	"context"
	"strings"
	"time"

	"berth/services"
	"berth/web/i18n"
)

// Happening is something that happened, as activity and timelines show it.
type Happening struct {
	ID        int64
	At        time.Time
	Kind      string // "gpu.attached", "vm.stopped", ...
	Actor     string // an e-mail, services.ActorHost or services.ActorConsole
	GPU       services.GPUID
	GPUName   string
	VM        services.VMID
	VMName    string
	From, To  string         // states, of a change of state
	Args      map[string]any // the event's data
	RequestID string

	// What only operators see.
	Account     services.AccountID
	AccountName string
	Card        services.CardID
	Host        services.HostID
	HostName    string
	Address     string // of the client that asked; empty: no person
}

// Title says what happened: the text "event.<kind>", or the bare kind where a
// newer console wrote one that this one does not know.
func (h Happening) Title(ctx context.Context) string {
	key := "event." + h.Kind
	if !i18n.Has(ctx, key) {
		return i18n.T(ctx, "event.unknown", "Kind", h.Kind)
	}
	return i18n.Text(ctx, key, h.Args)
}

// By names who caused it.
func (h Happening) By(ctx context.Context) string { return ActorName(ctx, h.Actor) }

// ActorName names who caused something.
func ActorName(ctx context.Context, actor string) string {
	if actor == services.ActorHost || actor == services.ActorConsole || actor == services.ActorOperator {
		return i18n.T(ctx, "actor."+actor)
	}
	return actor
}

// Look is the new state's look, else one for the kind of object.
func (h Happening) Look() Look {
	if s := services.GPUState(h.To); s.Valid() {
		return GPULook(s)
	}
	if p := services.Power(h.To); p.Valid() {
		return PowerLook(p)
	}
	switch {
	case strings.HasSuffix(h.Kind, "failed"), strings.HasSuffix(h.Kind, "stuck"):
		return Look{ToneBad, IconWarning}
	case strings.HasPrefix(h.Kind, "vm."):
		return Look{ToneHeld, IconVM}
	}
	return Look{ToneHeld, IconGPU}
}

// TimelineOptions say what a timeline leaves out, since the page says it.
type TimelineOptions struct {
	Now    time.Time
	NoGPU  bool
	NoVM   bool
	Dense  bool
	ListID string // of the list's element; empty: none
	// Operator: whose and where it was is shown; GPUs and VMs are others', and
	// have no page to lead to.
	Operator bool
	NoCard   bool // of what operators see
	NoHost   bool
	NoOwner  bool
}

func (o TimelineOptions) link(url string) string {
	if o.Operator {
		return ""
	}
	return url
}
