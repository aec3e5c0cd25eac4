package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
)

func TestAFullReportVouchesForItsCards(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.report(hostOf("gpu-1", "a", "b"))
	if c := w.card("a"); c.Model != "nvidia-l40" || c.Condition != services.CardReady || c.PCIAddress != "0000:3b:00.0" || c.Zone != zone {
		t.Errorf("card a is %+v", c)
	}
	if n := w.free(); n != 2 {
		t.Errorf("%d cards are on offer, want 2", n)
	}
}

// Whatever a report lacks or claims: the holding stays, and what is odd shows.
func TestNothingThatAReportLacksFreesAnything(t *testing.T) {
	partial := func(r *agentapi.Report) { r.Partial, r.Hosts = true, []agentapi.HostReport{hostOf("gpu-1", "b")} }
	foreign := agentapi.VMReport{ID: "i-99999999", Power: agentapi.PowerRunning, Devices: []string{"a"}}
	tests := map[string]struct {
		change  func(*agentapi.Report)
		drifts  []string
		missing bool
	}{
		"no host at all":    {func(r *agentapi.Report) {}, []string{"empty-report report"}, false},
		"a host less cards": {func(r *agentapi.Report) { r.Hosts = []agentapi.HostReport{hostOf("gpu-1")} }, []string{"empty-report gpu-1"}, false},
		"another host only": {func(r *agentapi.Report) { r.Hosts = []agentapi.HostReport{hostOf("gpu-9", "z")} }, []string{}, false},
		"a partial report":  {partial, []string{}, false},
		"a card less":       {func(r *agentapi.Report) { r.Hosts = []agentapi.HostReport{hostOf("gpu-1", "b")} }, []string{"card-missing a"}, true},
		"the card on another host": {func(r *agentapi.Report) {
			r.Hosts = []agentapi.HostReport{hostOf("gpu-1", "b"), hostOf("gpu-2", "a")}
		}, []string{"card-elsewhere a", "card-missing a"}, true},
		"a VM that nobody handed out": {func(r *agentapi.Report) {
			h := hostOf("gpu-1", "a", "b")
			h.VMs = []agentapi.VMReport{foreign}
			r.Hosts = []agentapi.HostReport{h}
		}, []string{"foreign-vm i-99999999"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.agent()
			a.report(hostOf("gpu-1", "a", "b"))
			gpu := w.hold("a")
			_, err := a.send(tt.change)
			w.must(err)
			if diff := cmp.Diff(tt.drifts, w.drifts()); diff != "" {
				t.Errorf("drifts: %s", diff)
			}
			c := w.card("a")
			if c.GPU != gpu || c.Condition != services.CardReady || (c.MissingSince != nil) != tt.missing {
				t.Errorf("the card is held by %q, %s, missing since %v; want %s, ready, missing: %v", c.GPU, c.Condition, c.MissingSince, gpu, tt.missing)
			}
			if len(w.observed) > 0 {
				t.Errorf("handed on: %+v", w.observed)
			}
			a.report(hostOf("gpu-1", "a", "b"))
			if c := w.card("a"); c.MissingSince != nil || c.GPU != gpu || len(w.drifts()) > 0 {
				t.Errorf("once all is there again: missing since %v, held by %q, drifts %v", c.MissingSince, c.GPU, w.drifts())
			}
		})
	}
}

func TestAMissingCardIsNotOnOffer(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.report(hostOf("gpu-1", "a", "b"))
	a.report(hostOf("gpu-1", "b"))
	if n := w.free(); n != 1 {
		t.Errorf("%d cards are on offer, want the one that is there", n)
	}
}

func TestAHostThatNothingVouchesForIsNotOnOffer(t *testing.T) {
	w := newWorld(t)
	w.time = time.Now().Add(-time.Minute) // the books ask the database's clock
	a := w.agent()
	a.report(hostOf("gpu-1", "a"))
	if n := w.free(); n != 0 {
		t.Errorf("%d cards of a silent host are on offer", n)
	}
	w.time = time.Now()
	a.report(hostOf("gpu-1", "a"))
	if n := w.free(); n != 1 {
		t.Errorf("%d cards are on offer after the host is back, want 1", n)
	}
}

func TestReportsThatAreNotNewerAreAnsweredAndChangeNothing(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.epoch, a.sequence = 5, 7
	a.report(hostOf("gpu-1", "a"))
	for name, when := range map[string][2]int64{"the same again": {5, 8}, "an older one": {5, 3}, "one of an older epoch": {4, 100}} {
		answer, err := a.send(func(r *agentapi.Report) {
			r.Epoch, r.Sequence = when[0], when[1]
			r.Hosts = []agentapi.HostReport{hostOf("gpu-1", "x")}
		})
		if err != nil || answer.Accepted || answer.Reason != agentapi.ReasonStale || answer.Epoch != 5 {
			t.Errorf("%s: answered by %+v, %v", name, answer, err)
		}
	}
	if rows, err := w.db.CardsOf(t.Context(), nil, []string{"serial:10de:x"}); err != nil || len(rows) > 0 {
		t.Errorf("a stale report put %v into the books: %v", rows, err)
	}
	answer, err := a.send(func(r *agentapi.Report) {
		r.Epoch, r.Sequence, r.Hosts = 6, 1, []agentapi.HostReport{hostOf("gpu-1", "a")}
	})
	if err != nil || !answer.Accepted {
		t.Errorf("a newer epoch: answered by %+v, %v", answer, err)
	}
}

func TestReportsThatMakeNoSenseAreRefusedWholeAndFlagged(t *testing.T) {
	host := func(change func(*agentapi.HostReport)) func(*agentapi.Report) {
		return func(r *agentapi.Report) {
			h := hostOf("gpu-1", "x")
			change(&h)
			r.Hosts = []agentapi.HostReport{h}
		}
	}
	vm := func(v agentapi.VMReport) func(*agentapi.Report) {
		return host(func(h *agentapi.HostReport) { h.VMs = []agentapi.VMReport{v} })
	}
	tests := map[string]func(*agentapi.Report){
		"epoch 0":                   func(r *agentapi.Report) { r.Epoch = 0 },
		"sequence below 0":          func(r *agentapi.Report) { r.Sequence = -1 },
		"a revision below 0":        func(r *agentapi.Report) { r.Revision = -1 },
		"a host without a name":     host(func(h *agentapi.HostReport) { h.Name = "" }),
		"a name that is no UTF-8":   host(func(h *agentapi.HostReport) { h.Name = "gpu\xff" }),
		"a name without end":        host(func(h *agentapi.HostReport) { h.Name = strings.Repeat("x", 10_000) }),
		"a host twice":              func(r *agentapi.Report) { r.Hosts = []agentapi.HostReport{hostOf("gpu-1"), hostOf("gpu-1")} },
		"a generation of its own":   host(func(h *agentapi.HostReport) { h.Generation = "sapphire" }),
		"cores below 0":             host(func(h *agentapi.HostReport) { h.VCores = -8 }),
		"a card without a key":      host(func(h *agentapi.HostReport) { h.Cards[0].Key = "" }),
		"a card twice":              host(func(h *agentapi.HostReport) { h.Cards = append(h.Cards, h.Cards[0]) }),
		"an address that is none":   host(func(h *agentapi.HostReport) { h.Cards[0].PCIAddress = "3b:00" }),
		"a vendor that is none":     host(func(h *agentapi.HostReport) { h.Cards[0].VendorID = "NVIDIA" }),
		"a serial with a NUL":       host(func(h *agentapi.HostReport) { h.Cards[0].Serial = "a\x00" }),
		"a VM with a name as id":    vm(agentapi.VMReport{ID: "web-01", Power: agentapi.PowerRunning}),
		"a VM of unknown power":     vm(agentapi.VMReport{ID: "i-00000001", Power: "sleeping"}),
		"a VM that is still wanted": vm(agentapi.VMReport{ID: "i-00000001", Power: string(services.PowerPending)}),
		"starts below 0":            vm(agentapi.VMReport{ID: "i-00000001", Power: agentapi.PowerRunning, Run: -1}),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.agent()
			a.report(hostOf("gpu-1", "a"))
			if _, err := a.send(change); refused(err) != agentapi.RefusalBadRequest {
				t.Errorf("answered by %v, want %s", err, agentapi.RefusalBadRequest)
			}
			if diff := cmp.Diff([]string{"broken-report report"}, w.drifts()); diff != "" {
				t.Error(diff)
			}
			if c := w.card("a"); c.MissingSince != nil || w.free() != 1 {
				t.Errorf("card a is missing since %v, %d are on offer", c.MissingSince, w.free())
			}
		})
	}
}

func TestACardOfAnotherAgentStaysItsOwn(t *testing.T) {
	w := newWorld(t)
	a, thief := w.agent(), w.agent()
	a.report(hostOf("gpu-1", "a"))
	before := w.card("a")
	thief.report(hostOf("gpu-1", "a"))
	if diff := cmp.Diff(before, w.card("a")); diff != "" {
		t.Errorf("the card changed: %s", diff)
	}
	if diff := cmp.Diff([]string{"foreign-card a"}, w.drifts()); diff != "" {
		t.Error(diff)
	}
}

func TestACardOfUnknownModelWaitsForReview(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	h := hostOf("gpu-1", "a")
	h.Cards[0].DeviceID = "ffff"
	a.report(h)
	if c := w.card("a"); c.Condition != services.CardNeedsReview || c.Model != "" || w.free() != 0 {
		t.Errorf("the card is %s of model %q, %d are on offer", c.Condition, c.Model, w.free())
	}
	if diff := cmp.Diff([]string{"unknown-model a"}, w.drifts()); diff != "" {
		t.Error(diff)
	}
}

func TestACardThatMovedWithinItsHostIsTheSameCard(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.report(hostOf("gpu-1", "a"))
	before := w.card("a")
	h := hostOf("gpu-1", "a")
	h.Cards[0].PCIAddress, h.Cards[0].NUMANode = "10000:e1:00.0", new(1)
	a.report(h)
	if c := w.card("a"); c.ID != before.ID || c.PCIAddress != "10000:e1:00.0" || c.NUMANode == nil || *c.NUMANode != 1 {
		t.Errorf("the card is %+v", c)
	}
}

func TestACleaningOrderEndsInReadyOrInQuarantine(t *testing.T) {
	tests := map[string]struct {
		change func(c *agentapi.CardReport, order int64)
		want   services.CardCondition
		reason string
	}{
		"not done yet":           {func(*agentapi.CardReport, int64) {}, services.CardCleaning, ""},
		"an older one was done":  {func(c *agentapi.CardReport, order int64) { c.CleanedOrder = order - 1 }, services.CardCleaning, ""},
		"done":                   {func(c *agentapi.CardReport, order int64) { c.CleanedOrder = order }, services.CardReady, ""},
		"failed without a word":  {func(c *agentapi.CardReport, order int64) { c.FailedOrder = order }, services.CardQuarantined, "reset failed"},
		"failed for a reason":    {failed, services.CardQuarantined, "it did not come back"},
		"failed, and done later": {func(c *agentapi.CardReport, order int64) { c.CleanedOrder, c.FailedOrder = order+1, order }, services.CardReady, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.agent()
			a.report(hostOf("gpu-1", "a"))
			w.change(func(tx *db.Tx) error {
				_, err := tx.Clean(t.Context(), w.card("a").ID)
				return err
			})
			order := w.card("a").CleanOrder
			desired, err := w.fleet.Desired(t.Context(), a.id)
			w.must(err)
			if diff := cmp.Diff([]agentapi.DesiredCard{{Key: "a", CleanOrder: order}}, desired.Hosts[0].Cards); diff != "" {
				t.Errorf("desired: %s", diff)
			}
			h := hostOf("gpu-1", "a")
			tt.change(&h.Cards[0], order)
			a.report(h)
			c := w.card("a")
			if c.Condition != tt.want || c.ConditionReason != tt.reason || (w.free() == 1) != (tt.want == services.CardReady) {
				t.Errorf("the card is %s (%q), %d on offer; want %s (%q)", c.Condition, c.ConditionReason, w.free(), tt.want, tt.reason)
			}
		})
	}
}

func failed(c *agentapi.CardReport, order int64) {
	c.FailedOrder, c.Problem = order, &agentapi.Problem{Code: agentapi.ProblemReset, Message: "it did not come back", Final: true}
}

// A heartbeat must not stand in the way of anybody: no row of a card changes,
// and no event is written.
func TestAHeartbeatChangesNoCardAndTellsNothing(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.report(hostOf("gpu-1", "a", "b"))
	before := w.traces()
	for range 3 {
		a.report(hostOf("gpu-1", "a", "b"))
	}
	if diff := cmp.Diff(before, w.traces()); diff != "" {
		t.Error(diff)
	}
}

func TestAHostOfUnknownGenerationIsTaken(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	h := hostOf("gpu-1", "a")
	h.Generation = ""
	a.report(h)
	if diff := cmp.Diff([]string{}, w.drifts()); diff != "" {
		t.Error(diff)
	}
	if c := w.card("a"); c.MissingSince != nil {
		t.Errorf("card a is missing since %v", c.MissingSince)
	}
}
