package fleet_test

import (
	"strings"
	"testing"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
	"berth/services/fleet"
)

// told lists the kinds of events of hosts, oldest first.
func (w *world) told() string {
	w.Helper()
	rows, err := w.db.ListAudit(w.Context(), db.AuditFilter{Family: "host", Limit: 50})
	w.must(err)
	var kinds []string
	for _, r := range rows {
		kinds = append([]string{r.Kind}, kinds...)
	}
	return strings.Join(kinds, " ")
}

func TestAHostThatFallsSilentIsToldOnceAndSoIsItsReturn(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.report(hostOf("one", "s1"))
	w.must(w.fleet.NoteSilence(t.Context()))
	silence := func() {
		t.Helper()
		if _, err := w.raw.ExecContext(t.Context(), `update hosts set confirmed_until = now() - interval '1 second' where name = 'one'`); err != nil {
			t.Fatal(err)
		}
	}
	silence()
	w.must(w.fleet.NoteSilence(t.Context()))
	if got := w.told(); strings.Contains(got, "silent") {
		t.Errorf("a console that has just begun says %q: its hosts had no time to report", got)
	}
	w.time = w.time.Add(time.Minute)
	for range 3 {
		w.must(w.fleet.NoteSilence(t.Context()))
	}
	a.report(hostOf("one", "s1"))
	a.report(hostOf("one", "s1"))
	if got, want := w.told(), "host.enrolled host.silent host.back"; got != want {
		t.Errorf("told: %q, want %q", got, want)
	}
	silence()
	w.must(w.fleet.NoteSilence(t.Context()))
	if got := w.told(); !strings.HasSuffix(got, "host.back host.silent") {
		t.Errorf("a second silence is not told: %q", got)
	}
}

func TestReadinessThatChangesIsTold(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	host := hostOf("one", "s1")
	a.report(host)
	host.Findings = []agentapi.Finding{{Code: agentapi.FindingNouveauBound}, {Code: agentapi.FindingReset, Warning: true}, {Code: "iommu-off", OK: true}}
	a.report(host)
	a.report(host)
	host.Findings[0].OK = true
	a.report(host)
	if got, want := w.told(), "host.enrolled host.not-ready host.ready"; got != want {
		t.Errorf("told: %q, want %q", got, want)
	}
	rows, err := w.db.ListAudit(t.Context(), db.AuditFilter{Family: "host", Limit: 50})
	w.must(err)
	if data := string(rows[1].Data); !strings.Contains(data, `"nouveau-bound"`) {
		t.Errorf("it does not say what keeps the host: %s", data)
	}
}

func TestAPreparationHasADeadline(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	a.report(hostOf("one", "s1"))
	id := w.card("s1").ID
	w.must(w.ask(id, services.CardDisable, "burn-in", ""))
	d, err := w.fleet.Card(t.Context(), id)
	w.must(err)
	if d.Deadline != nil {
		t.Errorf("a disabled card is due at %v", d.Deadline)
	}
	w.must(w.ask(id, services.CardEnable, "", ""))
	d, err = w.fleet.Card(t.Context(), id)
	w.must(err)
	if d.Deadline == nil || !d.Deadline.Equal(w.time.Add(3*time.Minute)) {
		t.Errorf("the preparation is due at %v, want in three minutes from %v", d.Deadline, w.time)
	}
}

func TestTheStartPagesTrendIsOneOfTheRanges(t *testing.T) {
	w := newWorld(t)
	w.agent().report(hostOf("one", "s1", "s2"))
	w.must(w.fleet.Sample(t.Context()))
	o, err := w.fleet.Overview(t.Context())
	w.must(err)
	if fleet.OverviewRange >= len(fleet.Ranges) || len(o.Trend) != 1 || o.Trend[0].Free != 2 {
		t.Errorf("the trend is %+v, want one point with two free cards", o.Trend)
	}
}
