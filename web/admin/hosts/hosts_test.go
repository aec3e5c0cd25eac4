package hosts

import (
	"strings"
	"testing"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/urls"
	"berth/web/webtest"
)

func list(rows ...Row) List {
	return List{
		Shell: webtest.Shell(), Listing: components.Listing{Path: urls.AdminHosts, Shown: len(rows), Total: 1234, Next: "host-00000009", Column: "name"},
		Rows: rows, Count: func(state string) int { return len(state) }, Zones: []string{"z"}, Regions: []string{"r"}, Models: []string{"m"}, Versions: []string{"1"},
	}
}

func TestListShowsWhatEachHostIs(t *testing.T) {
	doc := webtest.Both(t, ListView(list(
		Row{ID: "host-00000001", Name: "<b>gpu</b>", Zone: "z", Generation: "v7", Mode: services.HostAccepting, Ready: true, Vouched: true, Cards: 8, Free: 3, Held: 4},
		Row{ID: "host-00000002", Name: "two", Mode: services.HostMaintenance, ModeReason: "fan", Vouched: true, Seen: webtest.Now},
		Row{ID: "host-00000003", Name: "three", Mode: services.HostDraining, Ready: true},
	)))
	for _, want := range []string{
		`[data-total="1234"]`, `tr[data-id="host-00000002"][data-state="maintenance"]`, `a[rel=next][href="/admin/hosts?after=host-00000009"]`,
		`tr[data-id="host-00000001"] a[href="/admin/cards?host=host-00000001"]`, `a.sorter[href="/admin/hosts?sort=-name"]`,
		`input[name=host][value="host-00000003"]`, `th[aria-sort=ascending]`,
	} {
		if doc.Find(want).Length() != 1 {
			t.Errorf("%d match %s", doc.Find(want).Length(), want)
		}
	}
	if doc.Find("td b").Length() != 0 {
		t.Error("a host's name is taken for HTML")
	}
	for id, want := range map[string]string{"host-00000001": "ready", "host-00000002": "not ready", "host-00000003": "silent"} {
		if text := webtest.Text(doc.Find(`tr[data-id="` + id + `"]`)); !strings.Contains(text, want) {
			t.Errorf("%s: %q does not say %q", id, text, want)
		}
	}
}

func TestEmptyListsSayWhatToDo(t *testing.T) {
	none := webtest.Both(t, ListView(list()))
	if text := webtest.Text(none.Find(".empty")); !strings.Contains(text, "enrolment token") {
		t.Errorf("without hosts it says %q", text)
	}
	l := list()
	l.Query.Zone = "elsewhere"
	narrowed := webtest.Both(t, ListView(l))
	if narrowed.Find(`.empty a[href="/admin/hosts"]`).Length() != 1 || narrowed.Find(`option[value=elsewhere][selected]`).Length() != 1 {
		t.Error("a list that is narrowed to nothing shows no way back, or not what narrows it")
	}
}

func page() Page {
	group, node := 0, 1
	return Page{
		Shell: webtest.Shell(),
		Host: Host{
			ID: "host-00000001", Name: "gpu-1", Zone: "z", Generation: "v7", VCores: 64, MemoryMiB: 1 << 20, Mode: services.HostAccepting, Ready: true,
			Vouched: true, Seen: webtest.Now.Add(-2 * time.Second), Agent: "agent-00000001", Version: "1", Driver: "sim", ExpiresAt: webtest.Now,
		},
		Cards: []Card{
			{ID: "card-00000001", Model: "nvidia-h100", PCIAddress: "0000:3b:00.0", IOMMUGroup: &group, NUMANode: &node, Status: services.CardReady},
			{ID: "card-00000002", PCIAddress: "10000:3c:00.0", Status: services.CardNeedsReview, GPU: "fgpu-00000001", GPUName: "<i>x", State: services.GPUAllocated},
			{ID: "card-00000003", Model: "nvidia-h100", PCIAddress: "0000:3d:00.0", NUMANode: &node, Status: services.CardReady, GPU: "fgpu-00000002", VMName: "render", AccountName: "Alpha"},
		},
		Machines: []Machine{
			{ID: "i-00000001", Name: "plain", Owner: "Alpha", Running: true, Moves: true, Power: services.PowerRunning, VCores: 4, MemoryMiB: 2048},
			{ID: "i-00000002", Name: "render", Owner: "Alpha", Running: true, GPUs: 1, Power: services.PowerRunning, VCores: 8, MemoryMiB: 2048},
			{ID: "i-00000003", Name: "off", Owner: "Beta", Power: services.PowerStopped, Resumes: true},
		},
		Checks: []Check{
			{Code: "iommu-off", OK: true, Detail: "42 groups"}, {Code: "nouveau-bound", Detail: "3b:00.0", Fix: "blacklist nouveau"},
			{Code: "from-tomorrow", Warning: true, Detail: "?"},
		},
	}
}

func TestMaintenanceIsPreviewedByMachine(t *testing.T) {
	doc := webtest.Both(t, View(page()))
	for _, c := range []struct{ form, fate, ids string }{
		{"mode-maintenance", "stops", "i-00000002"}, {"mode-maintenance", "moves", "i-00000001"}, {"mode-maintenance", "stays", ""},
		{"mode-draining", "stops", ""}, {"mode-draining", "moves", "i-00000001"}, {"mode-draining", "stays", "i-00000002"},
	} {
		var ids []string
		for _, n := range doc.Find("#" + c.form + ` [data-fate="` + c.fate + `"] li`).EachIter() {
			ids = append(ids, n.AttrOr("data-id", ""))
		}
		if got := strings.Join(ids, " "); got != c.ids {
			t.Errorf("%s %s: %q, want %q", c.form, c.fate, got, c.ids)
		}
	}
	if doc.Find(`#mode-maintenance input[name=confirm][type=checkbox]`).Length() != 1 {
		t.Error("what stops machines needs no confirmation")
	}
	if doc.Find(`#mode-accepting`).Length() != 0 {
		t.Error("the mode that it is in is offered")
	}
}

func TestReadinessSaysWhatToDo(t *testing.T) {
	doc := webtest.Both(t, View(page()))
	if text := webtest.Text(doc.Find(`[data-check="nouveau-bound"]`)); !strings.Contains(text, "blacklist nouveau") || !strings.Contains(text, "nouveau is bound") {
		t.Errorf("the failed check says %q", text)
	}
	if doc.Find(`[data-check="iommu-off"][data-ok=true]`).Length() != 1 || doc.Find(`[data-check="from-tomorrow"][data-tone=wait]`).Length() != 1 {
		t.Error("checks that passed, or that are unknown, do not show so")
	}
}

func TestARefusedModeKeepsWhatWasTyped(t *testing.T) {
	p := page()
	p.Asked = Asked{Mode: services.HostMaintenance, Reason: "new fan"}
	p.Broken = []services.Violation{{Code: services.CodeConfirm, Field: "confirm", Args: map[string]any{"Moves": 1, "Stops": 1}}}
	doc := webtest.Both(t, View(p))
	if doc.Find(`#mode-maintenance[open] input[name=reason][value="new fan"]`).Length() != 1 || doc.Find(`#mode-draining[open]`).Length() != 0 {
		t.Error("the form does not stay open with its reason")
	}
	if doc.Find(`[data-error=confirm]`).Length() != 1 {
		t.Error("the page does not say what is missing")
	}
}

func TestAHostInMaintenanceSaysHowFarItIs(t *testing.T) {
	p := page()
	p.Host.Mode, p.Host.Reason, p.Host.By, p.Host.Since = services.HostMaintenance, "<fan>", "olga@example.test", webtest.Now
	text := webtest.Text(webtest.Both(t, View(p)).Find("#main"))
	for _, want := range []string{"<fan>", "olga@example.test", "2 machines still run", "1 machine starts again"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestASilentHostSaysSo(t *testing.T) {
	p := page()
	p.Host.Vouched, p.Host.Ready = false, false
	if n := webtest.Both(t, View(p)).Find(`.banner[data-tone=bad]`).Length(); n != 2 {
		t.Errorf("%d banners, want one for the silence and one for the checks", n)
	}
}
