package admin

import (
	"testing"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/webtest"
)

func TestFleetShowsWhatNeedsAnOperator(t *testing.T) {
	p := Page{
		Shell: webtest.Shell(), Hosts: 3, Cards: 8, Free: 2, Held: 3, Unavailable: 3, Silent: 1, NotReady: 1,
		Drifts:     []components.Drift{{Kind: "foreign-card", Subject: "<script>", Detail: "seen on x", Since: webtest.Now.Add(-time.Hour)}},
		MoreDrifts: 4,
		Away: []Away{
			{ID: "host-00000001", Name: "gpu-1", Zone: "z", Silent: true, Seen: webtest.Now.Add(-time.Hour), Held: 3, Machines: 2},
			{ID: "host-00000002", Name: "gpu-2", Zone: "z"},
		},
		Out: []Out{{ID: "card-00000001", HostName: "gpu-1", Address: "10000:3b:00.0", Status: services.CardQuarantined, Reason: "<b>", Since: webtest.Now}},
		Operations: []Stuck{{Account: "Beta", HostName: "gpu-1", Progress: components.Progress{
			ID: "op-00000001", Kind: services.OpStart, State: services.OpStuck, Steps: []string{"boot"}, Reason: "late", VMName: "render", Now: webtest.Now,
		}}},
		Agents: Agents{All: 3, Expired: 1, Expiring: 1},
		Pools:  []Pool{{Zone: "z", Model: "nvidia-h100", Free: 2, Held: 3, Unavailable: 1, Total: 6}, {Zone: "z", Total: 1, Unavailable: 1}},
	}
	doc := webtest.Both(t, View(p))
	for _, want := range []string{
		`[data-drift="foreign-card"]`, `[data-need="host"][data-id="host-00000001"] a[href="/admin/hosts/host-00000001"]`,
		`[data-need="card"] a[href="/admin/cards/card-00000001"]`, `[data-need="operation"][data-id="op-00000001"]`, `[data-need="certificates"]`,
		`a[href="/admin/cards?model=none&zone=z"]`, `a[href="/admin/hosts?state=silent"]`,
	} {
		if doc.Find(want).Length() == 0 {
			t.Errorf("nothing matches %s", want)
		}
	}
	if doc.Find("#main script, #main b").Length() != 0 {
		t.Error("a text is taken for HTML")
	}
	if doc.Find(".needs > li").Length() != 7 {
		t.Errorf("%d lines, want 7", doc.Find(".needs > li").Length())
	}
}

func TestACalmFleetSaysSo(t *testing.T) {
	doc := webtest.Both(t, View(Page{Shell: webtest.Shell()}))
	if doc.Find(`.note[data-tone="ok"]`).Length() != 1 || doc.Find(".needs").Length() != 0 {
		t.Error("nothing needs anybody, and the page does not say so")
	}
}

func TestEveryKindOfDriftHasAName(t *testing.T) {
	for _, kind := range []string{
		"empty-report", "foreign-card", "foreign-vm", "foreign-host", "card-missing", "unknown-model", "card-elsewhere", "vm-missing", "broken-report",
		"retired-card",
	} {
		p := Page{Shell: webtest.Shell(), Drifts: []components.Drift{{Kind: kind, Subject: "s", Since: webtest.Now}}}
		webtest.Both(t, View(p)) // finds keys without a text
	}
}
