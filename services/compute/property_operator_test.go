package compute_test

import (
	"context"
	"fmt"

	"pgregory.net/rapid"

	"berth/db"
	"berth/services"
	"berth/services/fleet"
)

// drawOperator chooses what an operator does next, to whatever stands there.
func drawOperator(rt *rapid.T, ctx context.Context, w *world, i int) action {
	label := func(s string) string { return fmt.Sprintf("operator's %s %d", s, i) }
	hosts, err := w.db.ListHosts(ctx, db.HostFilter{})
	must(rt, err)
	cards, err := w.db.ListCards(ctx, db.CardFilter{})
	must(rt, err)
	host := hosts[rapid.IntRange(0, len(hosts)-1).Draw(rt, label("host"))].ID
	card := cards[rapid.IntRange(0, len(cards)-1).Draw(rt, label("card"))]
	mode := rapid.SampledFrom(services.HostModes).Draw(rt, label("mode"))
	condition := rapid.SampledFrom([]services.CardAction{
		services.CardEnable, services.CardDisable, services.CardQuarantine, services.CardReturn, services.CardForceRelease, services.CardForceRelease,
		services.CardRetry, services.CardRollBack,
	}).Draw(rt, label("condition"))
	kind := rapid.SampledFrom([]string{"mode", "mode", "tend", "tend", "condition"}).Draw(rt, label("action"))
	rt.Logf("%s: host %s to %s, card %s to %s", label(kind), host, mode, card.ID, condition)
	return func(ctx context.Context, t tb, w *world) {
		switch kind {
		case "mode":
			refusable(t, kind, w.fleet.SetMode(ctx, olga, host, fleet.NewMode{Mode: mode, Reason: "new fan", Confirm: true}))
		case "condition":
			refusable(t, kind, w.fleet.SetCondition(ctx, olga, card.ID, fleet.NewCondition{Action: condition, Reason: "burn-in", Confirm: string(card.ID)}))
		case "tend":
			must(t, w.compute.TendHosts(ctx))
		}
	}
}

// reopen ends every maintenance, and lets what was stopped for it start again.
func (w *world) reopen(ctx context.Context, t tb) {
	t.Helper()
	hosts, err := w.db.ListHosts(ctx, db.HostFilter{})
	must(t, err)
	for _, h := range hosts {
		must(t, w.fleet.SetMode(ctx, olga, h.ID, fleet.NewMode{Mode: services.HostAccepting}))
	}
	for range 4 {
		must(t, w.compute.TendHosts(ctx))
		w.settle(ctx, t)
		must(t, w.compute.Reconcile(ctx))
	}
}

// restored checks that nothing is still held back for a maintenance that is over.
func (w *world) restored(ctx context.Context, t tb) {
	t.Helper()
	resuming, err := w.db.ResumingVMs(ctx)
	must(t, err)
	if len(resuming) > 0 {
		t.Fatalf("%v are still to start again, though no host is in maintenance", resuming)
	}
	leaving, err := w.db.LeavingVMs(ctx)
	must(t, err)
	if len(leaving) > 0 {
		t.Fatalf("%v are still to leave their hosts, though all accept work", leaving)
	}
}
