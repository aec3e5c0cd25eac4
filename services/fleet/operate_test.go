package fleet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/services/fleet"
)

var olga = services.Actor{Email: "olga@example.test", Address: "192.0.2.7", RequestID: "req"}

func (w *world) ask(id services.CardID, action services.CardAction, reason, confirm string) error {
	w.Helper()
	return w.fleet.SetCondition(w.Context(), olga, id, fleet.NewCondition{Action: action, Reason: reason, Confirm: confirm})
}

func wantCode(t *testing.T, err error, kind services.Kind, code services.Code) {
	t.Helper()
	if services.KindOf(err) != kind || !services.HasCode(err, code) {
		t.Errorf("got %v of kind %d, want %s of kind %d", err, services.KindOf(err), code, kind)
	}
}

// cleaned is the host once it has carried out every cleaning order so far.
func (w *world) cleaned(h agentapi.HostReport) agentapi.HostReport {
	w.Helper()
	h.Cards = slices.Clone(h.Cards)
	for i := range h.Cards {
		h.Cards[i].CleanedOrder = w.card(h.Cards[i].Serial).CleanOrder
	}
	return h
}

func TestADisabledCardIsPreparedBeforeItIsOfferedAgain(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	h := hostOf("one", "a", "b")
	a.report(h)
	id := w.card("a").ID

	wantCode(t, w.ask(id, services.CardDisable, "", ""), services.KindInvalid, services.CodeRequired)
	w.must(w.ask(id, services.CardDisable, "noisy", ""))
	if c := w.card("a"); c.Condition != services.CardDisabled || c.ConditionReason != "noisy" || c.ConditionActor != olga.Email || w.free() != 1 {
		t.Errorf("disabled: %s, %q by %q, %d free", c.Condition, c.ConditionReason, c.ConditionActor, w.free())
	}
	w.must(w.ask(id, services.CardDisable, "again", "")) // changes nothing
	w.must(w.ask(id, services.CardEnable, "", ""))
	if c := w.card("a"); c.Condition != services.CardCleaning || c.Undo != services.CardDisabled || w.free() != 1 {
		t.Errorf("enabling: %s, back to %q, %d free", c.Condition, c.Undo, w.free())
	}
	a.report(h) // not yet
	if c := w.card("a"); c.Condition != services.CardCleaning {
		t.Errorf("before its host says so it is %s", c.Condition)
	}
	a.report(w.cleaned(h))
	if c := w.card("a"); c.Condition != services.CardReady || c.Undo != "" || w.free() != 2 {
		t.Errorf("enabled: %s, %d free", c.Condition, w.free())
	}
	d, err := w.fleet.Card(t.Context(), id)
	w.must(err)
	var kinds []string
	for _, e := range d.Events {
		kinds = append(kinds, e.Kind)
	}
	if !slices.Equal(kinds, []string{"card.cleaned", "card.enable", "card.disable", "card.found"}) || d.Events[1].Address != olga.Address {
		t.Errorf("its history is %v, from %q", kinds, d.Events[1].Address)
	}
}

// F8: a process holds the device; the wait names it, other cards go on.
func TestAHeldDeviceIsNamedWhileItsEnablingWaits(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	h := hostOf("one", "a", "b")
	a.report(h)
	id := w.card("a").ID
	w.must(w.ask(id, services.CardDisable, "x", ""))
	w.must(w.ask(id, services.CardEnable, "", ""))
	held := h
	held.Cards = slices.Clone(h.Cards)
	held.Cards[0].Problem = &agentapi.Problem{Code: agentapi.ProblemHeld, Message: "python3 (pid 4711) has it open", Holder: "python3", PID: 4711, Since: w.time}
	a.report(held)
	d, err := w.fleet.Card(t.Context(), id)
	w.must(err)
	if d.Problem == nil || d.Problem.Holder != "python3" || d.Problem.PID != 4711 || w.free() != 1 {
		t.Errorf("the wait shows %+v, %d other cards are free", d.Problem, w.free())
	}
	var offered []services.CardAction
	for _, c := range d.Choices {
		offered = append(offered, c.Action)
	}
	for _, want := range []services.CardAction{services.CardRetry, services.CardRollBack} {
		if !slices.Contains(offered, want) {
			t.Errorf("%s is not offered: %v", want, offered)
		}
	}
	before := w.card("a").CleanOrder
	w.must(w.ask(id, services.CardRetry, "", ""))
	if c := w.card("a"); c.CleanOrder != before+1 || c.Undo != services.CardDisabled {
		t.Errorf("a retry is order %d, back to %q", c.CleanOrder, c.Undo)
	}
	w.must(w.ask(id, services.CardRollBack, "", ""))
	if c := w.card("a"); c.Condition != services.CardDisabled {
		t.Errorf("rolled back it is %s", c.Condition)
	}
	wantCode(t, w.ask(id, services.CardRollBack, "", ""), services.KindConflict, services.CodeWrongState)
}

func TestACardWhoseResetFailsNeedsAnOperator(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	h := hostOf("one", "a")
	a.report(h)
	id := w.card("a").ID
	w.must(w.ask(id, services.CardQuarantine, "smoke", ""))
	w.must(w.ask(id, services.CardReturn, "", ""))
	failed := h
	failed.Cards = slices.Clone(h.Cards)
	failed.Cards[0].FailedOrder = w.card("a").CleanOrder
	failed.Cards[0].Problem = &agentapi.Problem{Code: agentapi.ProblemReset, Message: "it did not come back", Final: true, Since: w.time}
	a.report(failed)
	if c := w.card("a"); c.Condition != services.CardQuarantined || c.Undo != "" {
		t.Errorf("it is %s", c.Condition)
	}
	d, err := w.fleet.Card(t.Context(), id)
	w.must(err)
	for _, c := range d.Choices {
		if c.Action == services.CardReturn && c.Impact != fleet.ImpactReboot {
			t.Errorf("returning it has the impact %s, want a reboot of its host", c.Impact)
		}
	}
}

func TestRetiringIsForGoodAndNeedsTheCardsName(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	h := hostOf("one", "a", "b")
	a.report(h)
	gpu := w.hold("b")
	wantCode(t, w.ask(w.card("a").ID, services.CardRetire, "", ""), services.KindInvalid, services.CodeConfirm)
	wantCode(t, w.ask(w.card("b").ID, services.CardRetire, "", "b"), services.KindConflict, services.CodeHeld)
	w.must(w.ask(w.card("a").ID, services.CardRetire, "", "a"))
	a.report(h)
	if c := w.card("a"); c.Condition != services.CardRetired || c.MissingSince != nil {
		t.Errorf("it is %s", c.Condition)
	}
	if got := w.drifts(); !slices.Equal(got, []string{"retired-card a"}) {
		t.Errorf("seen again it is told as %v", got)
	}
	page, err := w.fleet.Cards(t.Context(), fleet.CardFilter{Limit: 10})
	w.must(err)
	if len(page.Cards) != 1 || page.Counts.All != 1 || page.Counts.Retired != 1 {
		t.Errorf("%d cards are listed, %+v counted", len(page.Cards), page.Counts)
	}
	wantCode(t, w.ask(w.card("b").ID, services.CardForceRelease, "unpaid", "wrong"), services.KindInvalid, services.CodeConfirm)
	w.must(w.ask(w.card("b").ID, services.CardForceRelease, "unpaid", string(w.card("b").ID)))
	if !slices.Equal(w.released, []services.GPUID{gpu}) {
		t.Errorf("taken: %v", w.released)
	}
	wantCode(t, w.ask("card-00000000", services.CardDisable, "x", ""), services.KindNotFound, services.CodeNotFound)
	wantCode(t, w.ask(w.card("b").ID, "explode", "x", ""), services.KindInvalid, services.CodeInvalidValue)
	wantCode(t, w.ask(w.card("b").ID, services.CardDisable, strings.Repeat("é", 501), ""), services.KindInvalid, services.CodeTooLong)
}

func TestAHeldCardKeepsItsHolderThroughEveryCondition(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	h := hostOf("one", "a")
	a.report(h)
	gpu := w.hold("a")
	for _, ask := range []struct {
		action services.CardAction
		want   services.CardCondition
	}{
		{services.CardDisable, services.CardDisabled}, {services.CardEnable, services.CardReady},
		{services.CardQuarantine, services.CardQuarantined}, {services.CardReturn, services.CardReady},
	} {
		w.must(w.ask(w.card("a").ID, ask.action, "x", ""))
		if c := w.card("a"); c.GPU != gpu || c.Condition != ask.want {
			t.Errorf("%s: held by %q, %s; want %s", ask.action, c.GPU, c.Condition, ask.want)
		}
	}
}

// A card that moved hosts is one card that moved.
func TestACardThatMovesHostsIsOneCardThatMoved(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.report(hostOf("one", "a", "b"), hostOf("two", "c"))
	id := w.card("a").ID
	two := w.card("c").Host
	a.report(hostOf("one", "b"), hostOf("two", "c", "a"))
	c := w.card("a")
	if c.ID != id || c.Host != two || c.MissingSince != nil || len(w.drifts()) != 0 {
		t.Errorf("it is %s on %s, missing since %v, with drifts %v", c.ID, c.Host, c.MissingSince, w.drifts())
	}
	d, err := w.fleet.Card(t.Context(), id)
	w.must(err)
	moved := slices.IndexFunc(d.Events, func(e fleet.Event) bool { return e.Kind == "card.moved" })
	if moved < 0 || !strings.Contains(string(d.Events[moved].Data), "one") || !strings.Contains(string(d.Events[moved].Data), "two") {
		t.Errorf("its history does not tell of the move: %+v", d.Events)
	}
}

func TestACardThatVanishedAndComesBackElsewhereIsTheSame(t *testing.T) {
	w := newWorld(t)
	one, two := w.agent(), w.agent()
	one.report(hostOf("one", "a", "b"))
	two.report(hostOf("two", "c"))
	id := w.card("a").ID
	two.report(hostOf("two", "c", "a")) // its first host has not said that it is gone
	if got := w.drifts(); !slices.Equal(got, []string{"foreign-card a"}) || w.card("a").Host == w.card("c").Host {
		t.Errorf("before its host says so: drifts %v", got)
	}
	one.report(hostOf("one", "b"))
	two.report(hostOf("two", "c", "a"))
	if c := w.card("a"); c.ID != id || c.Host != w.card("c").Host || c.Agent != two.id || c.MissingSince != nil {
		t.Errorf("afterwards it is %s on %s", c.ID, c.Host)
	}
}

func TestACardSeenTwiceAtOnceNeedsAReview(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.report(hostOf("one", "a", "b"), hostOf("two", "c"))
	host := w.card("a").Host
	a.report(hostOf("one", "a", "b"), hostOf("two", "c", "a"))
	if c := w.card("a"); c.Condition != services.CardNeedsReview || c.Host != host || w.free() != 2 {
		t.Errorf("it is %s on %s, %d cards free", c.Condition, c.Host, w.free())
	}
}

func TestWhatChangesOfACardIsWrittenAndTold(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	h := hostOf("one", "a")
	h.Cards[0].Functions = []agentapi.Function{
		{Address: "0000:3b:00.0", Class: "0300", Driver: "nvidia"}, {Address: "0000:3b:00.1", Class: "0403", Driver: "snd_hda_intel"},
		{Address: "0000:3b:00.2", Class: "0c03", Driver: "xhci_hcd"}, {Address: "0000:3b:00.3", Class: "0c80", Driver: ""},
	}
	h.Cards[0].VBIOS, h.Cards[0].Parents = "95.02", []string{"pci0000:3a", "0000:3a:01.0"}
	a.report(h)
	if c := w.card("a"); c.Driver != "nvidia" || c.VBIOS != "95.02" || len(c.Parents) != 2 {
		t.Errorf("at first: %q, %q, %v", c.Driver, c.VBIOS, c.Parents)
	}
	if page, err := w.fleet.Cards(t.Context(), fleet.CardFilter{Limit: 10}); err != nil || len(page.Cards) != 1 {
		t.Errorf("its four functions are %d cards, %v", len(page.Cards), err)
	}
	next := h
	next.Cards = slices.Clone(h.Cards)
	next.Cards[0].PCIAddress, next.Cards[0].VBIOS = "10000:e1:00.0", "95.03"
	next.Cards[0].NUMANode = nil
	next.Cards[0].Functions = []agentapi.Function{{Address: "10000:e1:00.0", Class: "0300", Driver: "vfio-pci"}}
	a.report(next)
	c := w.card("a")
	d, err := w.fleet.Card(t.Context(), c.ID)
	w.must(err)
	var kinds []string
	for _, e := range d.Events {
		kinds = append(kinds, e.Kind)
	}
	slices.Sort(kinds)
	if want := []string{"card.address-changed", "card.driver-changed", "card.firmware-changed", "card.found"}; !slices.Equal(kinds, want) {
		t.Errorf("told %v, want %v", kinds, want)
	}
	traces := w.traces()
	a.report(next)
	if w.traces() != traces {
		t.Error("a report that says nothing new writes a card")
	}
}

// F9: a host that fails a check hands nothing out, and says why.
func TestAHostThatIsNotReadyOffersNothing(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	h := hostOf("one", "a")
	h.Findings = []agentapi.Finding{{Code: agentapi.FindingIOMMUOff, Detail: "no groups", Fix: "intel_iommu=on"}}
	h.NUMA = []agentapi.NUMANode{{ID: 0, Socket: 0, VCores: 32, MemoryMiB: 1 << 19}}
	a.report(h)
	if w.free() != 0 {
		t.Error("its card is offered")
	}
	d, err := w.fleet.Host(t.Context(), w.card("a").Host)
	w.must(err)
	if d.Host.Ready || len(d.Findings) != 1 || d.Findings[0].Fix != "intel_iommu=on" || len(d.NUMA) != 1 || d.Host.Version != "1" {
		t.Errorf("ready %v, findings %+v, nodes %+v, version %q", d.Host.Ready, d.Findings, d.NUMA, d.Host.Version)
	}
	h.Findings[0].Warning = true
	a.report(h)
	if w.free() != 1 {
		t.Error("a warning keeps its card back")
	}
}

func TestModesNeedAReasonAndAConfirmationOfWhatStops(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.report(hostOf("one", "a"))
	host := w.card("a").Host
	w.fates = map[services.HostID][]compute.Fate{host: {{Running: true, Moves: true}, {Running: true, GPUs: 1}, {}}}
	set := func(mode services.HostMode, reason string, confirm bool) error {
		return w.fleet.SetMode(t.Context(), olga, host, fleet.NewMode{Mode: mode, Reason: reason, Confirm: confirm})
	}
	wantCode(t, set("closed", "x", true), services.KindInvalid, services.CodeInvalidValue)
	wantCode(t, set(services.HostDraining, " ", true), services.KindInvalid, services.CodeRequired)
	wantCode(t, set(services.HostMaintenance, "fan", false), services.KindInvalid, services.CodeConfirm)
	wantCode(t, set(services.HostDraining, "fan", false), services.KindInvalid, services.CodeConfirm) // one would move
	if w.free() != 1 || w.tended != 0 {
		t.Error("a refusal changed something")
	}
	w.must(set(services.HostMaintenance, "fan", true))
	d, err := w.fleet.Host(t.Context(), host)
	w.must(err)
	if d.Host.Mode != services.HostMaintenance || d.Host.ModeReason != "fan" || d.Host.ModeActor != olga.Email || w.free() != 0 || w.tended != 1 {
		t.Errorf("it is %+v, %d free, tended %d times", d.Host, w.free(), w.tended)
	}
	w.must(set(services.HostAccepting, "", false))
	if w.free() != 1 {
		t.Error("afterwards its card is not offered")
	}
	wantCode(t, w.fleet.SetMode(t.Context(), olga, "host-00000000", fleet.NewMode{Mode: services.HostAccepting}), services.KindNotFound, services.CodeNotFound)
}

func TestSeveralHostsChangeTogetherOrNotAtAll(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.report(hostOf("one", "a"), hostOf("two", "b"))
	hosts := []services.HostID{w.card("a").Host, "host-00000000", w.card("b").Host}
	in := fleet.NewMode{Mode: services.HostDraining, Reason: "move"}
	wantCode(t, w.fleet.SetModes(t.Context(), olga, hosts, in), services.KindNotFound, services.CodeNotFound)
	if w.free() != 2 {
		t.Error("one of them changed")
	}
	w.must(w.fleet.SetModes(t.Context(), olga, []services.HostID{w.card("a").Host, w.card("b").Host}, in))
	if w.free() != 0 {
		t.Error("not all of them changed")
	}
}

func TestTokensAndAgentsAreWithdrawn(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	secret, err := w.fleet.IssueToken(ctx, olga, zone, time.Hour)
	w.must(err)
	page, err := w.fleet.Agents(ctx, fleet.AgentFilter{Limit: 10})
	w.must(err)
	if len(page.Tokens) != 1 || page.Tokens[0].CreatedBy != olga.Email {
		t.Fatalf("open tokens: %+v", page.Tokens)
	}
	w.must(w.fleet.RevokeToken(ctx, olga, "1"))
	w.must(w.fleet.RevokeToken(ctx, olga, "1")) // changes nothing
	if _, err := w.enrol(secret); refused(err) != agentapi.RefusalUnauthorized {
		t.Errorf("a withdrawn token: %v", err)
	}
	wantCode(t, w.fleet.RevokeToken(ctx, olga, "x"), services.KindNotFound, services.CodeNotFound)
	for _, life := range []time.Duration{0, -time.Hour, 1000 * time.Hour} {
		_, err = w.fleet.IssueToken(ctx, olga, zone, life)
		wantCode(t, err, services.KindInvalid, services.CodeInvalidValue)
	}
	_, err = w.fleet.IssueToken(ctx, olga, "nowhere", time.Hour)
	wantCode(t, err, services.KindInvalid, services.CodeInvalidValue)

	a := w.agent()
	a.report(hostOf("one", "a"))
	w.must(w.fleet.RevokeAgent(ctx, olga, a.id))
	w.must(w.fleet.RevokeAgent(ctx, olga, a.id)) // changes nothing
	if answer, err := a.send(func(r *agentapi.Report) { r.Hosts = []agentapi.HostReport{hostOf("one", "a")} }); err == nil && answer.Accepted {
		t.Error("a revoked agent's report is taken")
	}
	wantCode(t, w.fleet.RevokeAgent(ctx, olga, "agent-00000000"), services.KindNotFound, services.CodeNotFound)
	page, err = w.fleet.Agents(ctx, fleet.AgentFilter{State: "revoked", Limit: 10})
	w.must(err)
	if len(page.Agents) != 1 || page.Total != 1 || page.Agents[0].Hosts != 1 {
		t.Errorf("revoked agents: %+v of %d", page.Agents, page.Total)
	}
}

func TestCapacityAddsUpAndTellsWhatCouldStillStart(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	a := w.agent()
	a.report(hostOf("one", "a", "b", "c", "d", "e"), hostOf("two", "f", "g"), hostOf("three", "h"))
	w.hold("a")
	w.must(w.ask(w.card("b").ID, services.CardQuarantine, "x", ""))
	w.must(w.fleet.SetMode(ctx, olga, w.card("h").Host, fleet.NewMode{Mode: services.HostDraining, Reason: "x"}))
	w.must(w.fleet.Sample(ctx))
	w.must(w.fleet.Sample(ctx)) // the same minute
	w.time = w.time.Add(time.Minute)
	w.must(w.fleet.Sample(ctx))
	c, err := w.fleet.Capacity(ctx, fleet.CapacityFilter{}, fleet.Ranges[0])
	w.must(err)
	if len(c.Cells) != 1 {
		t.Fatalf("%d cells", len(c.Cells))
	}
	x := c.Cells[0]
	if x.Total != 8 || x.Free != 5 || x.Held != 1 || x.Unavailable != 2 || x.Quarantined != 1 || x.Draining != 1 {
		t.Errorf("the cell is %+v", x)
	}
	if len(c.Rooms) != 1 || !slices.Equal(c.Rooms[0].Machines, []int{5, 2, 0, 0}) { // 3 free on one, 2 on two
		t.Errorf("what could start: %+v", c.Rooms)
	}
	if len(c.Trend) != 2 || c.Trend[1].Free != 5 || c.Trend[1].Held != 1 || c.Trend[1].Unavailable != 2 {
		t.Errorf("the trend is %+v", c.Trend)
	}
	none, err := w.fleet.Capacity(ctx, fleet.CapacityFilter{Region: "hikube"}, fleet.Ranges[0])
	w.must(err)
	if len(none.Cells)+len(none.Rooms)+len(none.Trend) != 0 {
		t.Errorf("another region has %+v", none)
	}
	w.time = w.time.Add(3 * 24 * time.Hour)
	w.must(w.fleet.Sample(ctx))
	kept, err := w.fleet.Capacity(ctx, fleet.CapacityFilter{}, fleet.Ranges[3])
	w.must(err)
	if len(kept.Trend) > 2 {
		t.Errorf("old samples are kept: %+v", kept.Trend)
	}
}

func TestSearchFindsTheWholeFleet(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	a := w.agent()
	a.report(hostOf("gpu-one", "SER1AL-a", "b"))
	gpu := w.hold("SER1AL-a")
	card := w.card("SER1AL-a")
	for text, want := range map[string]string{
		"ser1al": string(card.ID), "SER1AL-A": string(card.ID), "0000:3b": string(card.ID), string(gpu): string(card.ID), "GPU-ONE": string(card.Host),
		"alph": "acc-00000001", "held": string(gpu), string(card.Host): string(card.Host),
	} {
		hits, err := w.fleet.Search(ctx, text, 5)
		w.must(err)
		if !slices.ContainsFunc(hits, func(h fleet.Hit) bool { return h.ID == want }) {
			t.Errorf("%q finds %+v, want %s", text, hits, want)
		}
	}
	for _, text := range []string{"", "a", "%", "__", `\`, "nothing-like-it"} {
		if hits, err := w.fleet.Search(ctx, text, 5); err != nil || len(hits) > 0 {
			t.Errorf("%q finds %+v, %v", text, hits, err)
		}
	}
	hits, err := w.fleet.Search(ctx, "ser1al-a", 5)
	w.must(err)
	if hit, ok := fleet.Exact("ser1al-a", hits); !ok || hit.ID != string(card.ID) {
		t.Errorf("the serial leads to %+v, %v", hit, ok)
	}
}

func TestTheCatalogueChangesWithoutBreakingAnything(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	c, err := w.fleet.Catalogue(ctx)
	w.must(err)
	m, _ := c.Model("nvidia-l40")
	version := fleet.Version(m)
	m.Architecture, m.PCIIDs = "Ada", append(m.PCIIDs, "10de:ffff")
	w.must(w.fleet.SaveModel(ctx, olga, m, version))
	m.Architecture = "other"
	wantCode(t, w.fleet.SaveModel(ctx, olga, m, version), services.KindConflict, services.CodeStale)
	for _, bad := range []struct {
		id   string
		pci  string
		code services.Code
	}{
		{"", "", services.CodeRequired}, {"Big", "", services.CodeInvalidValue}, {"vcores", "", services.CodeInvalidValue}, {"nvidia-h100", "", services.CodeTaken},
		{"new", "10de", services.CodeInvalidValue}, {"new", "10de:26b5", services.CodeTaken},
	} {
		x := catalog.Model{ID: bad.id}
		if bad.pci != "" {
			x.PCIIDs = []string{bad.pci}
		}
		wantCode(t, w.fleet.SaveModel(ctx, olga, x, ""), services.KindInvalid, bad.code)
	}
	w.must(w.fleet.SaveModel(ctx, olga, catalog.Model{ID: "nvidia-b200", Memory: catalog.Memory{GB: 192, Type: "HBM3e"}}, ""))
	w.must(w.fleet.DeleteModel(ctx, olga, "nvidia-b200"))
	wantCode(t, w.fleet.DeleteModel(ctx, olga, "nvidia-b200"), services.KindNotFound, services.CodeNotFound)
	wantCode(t, w.fleet.DeleteModel(ctx, olga, "nvidia-h200"), services.KindConflict, services.CodeInUse) // a type has it built in
	w.must(w.fleet.SaveType(ctx, olga, catalog.VMType{Name: "u2.small", VCores: 2, MemoryMiB: 4096, HourlyPrice: "0.25"}, ""))
	for name, code := range map[string]services.Code{"": services.CodeRequired, "tinav7.c8r32": services.CodeInvalidValue, "u2.small": services.CodeTaken} {
		wantCode(t, w.fleet.SaveType(ctx, olga, catalog.VMType{Name: name, VCores: 2, MemoryMiB: 4096}, ""), services.KindInvalid, code)
	}
	wantCode(t, w.fleet.SaveType(ctx, olga, catalog.VMType{Name: "u3", VCores: 0, MemoryMiB: 1, HourlyPrice: "free"}, ""), services.KindInvalid, services.CodeInvalidValue)
	w.must(w.fleet.DeleteType(ctx, olga, "u2.small"))
}

func TestACardOfUnknownModelGetsTheModelThatKnowsIt(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	a := w.agent()
	h := hostOf("one", "a")
	h.Cards[0].DeviceID = "beef"
	a.report(h)
	wantCode(t, w.ask(w.card("a").ID, services.CardReturn, "", ""), services.KindConflict, services.CodeWrongState) // nobody knows what it is
	c, err := w.fleet.Catalogue(ctx)
	w.must(err)
	m, _ := c.Model("nvidia-l40")
	version := fleet.Version(m)
	m.PCIIDs = append(m.PCIIDs, "10de:beef")
	w.must(w.fleet.SaveModel(ctx, olga, m, version))
	if x := w.card("a"); x.Model != "nvidia-l40" || x.Condition != services.CardNeedsReview {
		t.Errorf("it is a %q, %s", x.Model, x.Condition)
	}
	w.must(w.ask(w.card("a").ID, services.CardReturn, "", ""))
	a.report(w.cleaned(h))
	if w.free() != 1 {
		t.Error("returned to service it is not offered")
	}
}

func TestALimitThatAttachmentsBreakShowsThemFirst(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	a := w.agent()
	a.report(hostOf("one", "a"))
	gpu := w.hold("a")
	host := w.card("a").Host
	w.change(func(tx *db.Tx) error {
		if err := tx.InsertVM(ctx, db.VM{
			ID: "i-00000001", Account: "acc-00000001", Zone: zone, Name: "render", Type: "tinav7.c8r32p1", VCores: 8, MemoryMiB: 32 << 10, Generation: "v7",
			Performance: catalog.Highest, Tenancy: catalog.TenancyDefault, Image: "debian-12", Host: host, DesiredPower: services.PowerRunning, CreatedAt: w.time,
		}); err != nil {
			return err
		}
		_, err := tx.MoveGPU(ctx, db.Move{
			GPU: gpu, From: []services.GPUState{services.GPUAllocated}, To: services.GPUAttaching, VM: "i-00000001",
			Event: db.Event{At: w.time, Kind: "gpu.attach-planned", Actor: "x"},
		})
		return err
	})
	offer := fleet.NewOffer{Offered: true, Offer: catalog.Offer{Model: "nvidia-l40", Region: "eu-west-2", MaxVCores: 4, Generations: []string{"v7"}}}
	misfits, err := w.fleet.SaveOffer(ctx, olga, offer)
	wantCode(t, err, services.KindInvalid, services.CodeMisfits)
	if len(misfits) != 1 || misfits[0].Name != "render" || misfits[0].Account != "Alpha" || misfits[0].Broken[0].Limit != services.LimitVCores {
		t.Errorf("shown: %+v", misfits)
	}
	offer.Confirm = true
	_, err = w.fleet.SaveOffer(ctx, olga, offer)
	w.must(err)
	g, err := w.db.AccountGPU(ctx, "acc-00000001", gpu)
	w.must(err)
	if g.State != services.GPUAttaching || g.VM != "i-00000001" {
		t.Errorf("the attachment is %s with %q", g.State, g.VM)
	}
	offer.Offered, offer.Confirm = false, false
	if misfits, err = w.fleet.SaveOffer(ctx, olga, offer); len(misfits) != 1 {
		t.Errorf("withdrawing shows %+v, %v", misfits, err)
	}
	for _, bad := range []catalog.Offer{
		{Model: "nvidia-l40", Region: "nowhere"}, {Model: "nvidia-l40", Region: "eu-west-2", MaxVCores: -1},
		{Model: "nvidia-l40", Region: "eu-west-2", Generations: []string{"seven"}}, {Model: "nvidia-l40", Region: "eu-west-2", HourlyPrice: "-1"},
	} {
		_, err := w.fleet.SaveOffer(ctx, olga, fleet.NewOffer{Offered: true, Offer: bad})
		wantCode(t, err, services.KindInvalid, services.CodeInvalidValue)
	}
}
