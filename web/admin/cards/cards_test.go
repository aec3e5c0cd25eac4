package cards

import (
	"strings"
	"testing"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/urls"
	"berth/web/webtest"
)

func TestListShowsHolderConditionAndWhyNotOffered(t *testing.T) {
	rows := []Row{
		{ID: "card-00000001", Model: "nvidia-h100", Serial: "16<b>", Host: "host-00000001", HostName: "gpu-1", Status: services.CardReady, Offered: true},
		{ID: "card-00000002", Vendor: "10de:ffff", HostName: "gpu-1", Status: services.CardNeedsReview, Reason: "unknown model"},
		{ID: "card-00000003", Model: "m", HostName: "gpu-2", Status: services.CardReady, Withheld: "draining"},
		{ID: "card-00000004", Model: "m", HostName: "gpu-2", Status: services.CardReady, GPU: "fgpu-00000001", GPUName: "g", Account: "acc-00000001", AccountName: "Alpha", VMName: "render"},
	}
	l := List{
		Shell: webtest.Shell(), Listing: components.Listing{Path: urls.AdminCards, Shown: 4, Total: 4, Column: "-created"}, Rows: rows,
		Count: func(state string) int { return len(state) % 3 }, Models: []string{"m"}, HostName: "gpu-2", Owner: "Alpha",
	}
	l.Query = urls.ListQuery{Host: "host-00000002", Account: "acc-00000001", State: "retired"}
	doc := webtest.Both(t, ListView(l))
	for id, want := range map[string]string{
		"card-00000001": "free", "card-00000002": "needs review", "card-00000003": "its host is drained", "card-00000004": "g on render",
	} {
		if text := webtest.Text(doc.Find(`tr[data-id="` + id + `"]`)); !strings.Contains(text, want) {
			t.Errorf("%s: %q does not say %q", id, text, want)
		}
	}
	if doc.Find(`.only a[href="/admin/cards?account=acc-00000001&state=retired"]`).Length() != 1 {
		t.Error("the host can't be taken out of the query")
	}
	if doc.Find(`[data-state-filter=retired][aria-current]`).Length() != 1 || doc.Find(`[data-state-filter=free]`).Length() != 1 {
		t.Error("the states to choose from lack the one shown, or one that is always there")
	}
	if doc.Find(`form#cards input[type=hidden][name=host][value="host-00000002"]`).Length() != 1 {
		t.Error("searching forgets the host")
	}
}

func page() Page {
	return Page{
		Shell: webtest.Shell(),
		Card: Card{
			Row:   Row{ID: "card-00000001", Model: "nvidia-l40", Host: "host-00000001", HostName: "gpu-1", Zone: "z", PCIAddress: "0000:3b:00.0", Status: services.CardCleaning},
			Since: webtest.Now.Add(-time.Minute), Deadline: webtest.Now.Add(time.Minute), Preparing: true,
			Problem:   &Problem{Code: "held", Holder: "python3", PID: 4711},
			Functions: []Function{{"0000:3b:00.0", "0300", "vfio-pci"}, {"0000:3b:00.1", "0403", ""}, {"0000:3b:00.2", "fffe", "x"}},
			Parents:   []string{"pci0000:3a", "0000:3a:01.0"},
		},
		Holdings: []Holding{{GPU: "fgpu-00000001", GPUName: "g", Account: "acc-00000001", AccountName: "<Alpha>", From: webtest.Now}},
		Choices: []Choice{
			{Action: services.CardRetry, Impact: "none"}, {Action: services.CardRollBack, Impact: "none"},
			{Action: services.CardForceRelease, Impact: "vm", VMs: []string{"render", "<b>"}}, {Action: services.CardRetire, Impact: "reboot", VMs: []string{"render"}},
			{Action: services.CardDisable, Impact: "none"},
		},
	}
}

func TestAnEnablingSaysHowLongAndWhoHoldsTheDevice(t *testing.T) {
	doc := webtest.Both(t, View(page()))
	box := doc.Find("[data-enabling]")
	if text := webtest.Text(box); !strings.Contains(text, "held by python3 (pid 4711)") || box.Find("time[data-time=elapsed]").Length() != 1 {
		t.Errorf("the wait says %q", text)
	}
	if box.AttrOr("data-tone", "") != "wait" {
		t.Error("before its deadline it is no failure")
	}
}

func TestAfterItsDeadlineAnEnablingFailedWithTheHolder(t *testing.T) {
	p := page()
	p.Card.Deadline = webtest.Now.Add(-time.Second)
	doc := webtest.Both(t, View(p))
	if text := webtest.Text(doc.Find(`[data-enabling][data-tone=bad]`)); !strings.Contains(text, "Failed: held by python3 (pid 4711).") {
		t.Errorf("it says %q", text)
	}
	for _, action := range []string{"retry", "roll-back"} {
		if doc.Find(`form[action="/admin/cards/card-00000001/condition"] input[name=action][value="`+action+`"]`).Length() != 1 {
			t.Errorf("%s is not offered", action)
		}
	}
}

func TestEachActionDeclaresItsImpactBeforeTheClick(t *testing.T) {
	doc := webtest.Both(t, View(page()))
	if text := webtest.Text(doc.Find(`#ask-force-release [data-impact=vm]`)); !strings.Contains(text, "stops and starts render") {
		t.Errorf("a forced release declares %q", text)
	}
	if doc.Find(`#ask-force-release input[name=confirm]`).Length() != 1 || doc.Find(`#ask-disable input[name=confirm]`).Length() != 0 {
		t.Error("what can't be taken back needs no typed confirmation, or something else does")
	}
	if doc.Find("[data-impact] b").Length() != 0 {
		t.Error("a VM's name is taken for HTML")
	}
}

func TestEveryConditionShows(t *testing.T) {
	for _, c := range services.CardConditions {
		p := page()
		p.Card.Status, p.Card.Reason, p.Card.By = c, "because", "olga@example.test"
		if c == services.CardMissing {
			p.Card.MissingSince = webtest.Now
		}
		if webtest.Both(t, View(p)).Find(`.head-title [data-state="`+string(c)+`"]`).Length() != 1 {
			t.Errorf("%s does not show", c)
		}
	}
}

func TestEveryActionHasItsWords(t *testing.T) {
	for _, a := range services.CardActions {
		p := page()
		p.Choices = []Choice{{Action: a, Impact: "vm", VMs: []string{"x"}}}
		webtest.Both(t, View(p)) // finds keys without a text
	}
}
