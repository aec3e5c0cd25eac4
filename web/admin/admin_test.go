package admin

import (
	"testing"
	"time"

	"berth/services"
	"berth/web/webtest"
)

func TestFleetShowsWhatNeedsAnOperator(t *testing.T) {
	p := Page{
		Shell: webtest.Shell(),
		Drifts: []Drift{
			{Kind: "foreign-card", Subject: "<script>", Detail: "seen on x", Since: webtest.Now.Add(-time.Hour)},
		},
		Hosts: []Host{
			{ID: "host-00000001", Name: "gpu-1", Zone: "z", Generation: "v7", VCores: 64, MemoryMiB: 1 << 20, Mode: services.HostAccepting, Seen: webtest.Now, Vouched: true},
			{ID: "host-00000002", Name: "gpu-2", Zone: "z", Generation: "v6", Mode: services.HostDraining, Seen: webtest.Now.Add(-time.Hour)},
		},
		Pools:  []Pool{{Zone: "z", Model: "nvidia-h100", Free: 2, Held: 3, Unavailable: 1, Total: 6}, {Zone: "z", Total: 1, Unavailable: 1}},
		Agents: []Agent{{ID: "agent-00000001", Zone: "z", Version: "1", Driver: "sim", Behind: 2, ExpiresAt: webtest.Now}, {ID: "agent-00000002", Revoked: true}},
	}
	doc := webtest.Both(t, View(p))
	if doc.Find(`[data-drift="foreign-card"]`).Length() != 1 || doc.Find("#main script").Length() != 0 {
		t.Error("the drift does not show, or is taken for HTML")
	}
	if doc.Find(`tr[data-id="host-00000002"][data-state=draining]`).Length() != 1 {
		t.Error("the draining host does not show")
	}
}

func TestEveryKindOfDriftHasAName(t *testing.T) {
	for _, kind := range []string{
		"empty-report", "foreign-card", "foreign-vm", "foreign-host", "card-missing", "unknown-model", "card-elsewhere", "vm-missing", "broken-report",
	} {
		p := Page{Shell: webtest.Shell(), Drifts: []Drift{{Kind: kind, Subject: "s", Since: webtest.Now}}}
		webtest.Both(t, View(p)) // finds keys without a text
	}
}
