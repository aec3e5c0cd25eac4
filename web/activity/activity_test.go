package activity

import (
	"testing"
	"time"

	"berth/web/components"
	"berth/web/urls"
	"berth/web/webtest"
)

func page() Page {
	return Page{Shell: webtest.Shell(), Events: []components.Happening{
		{ID: 7, At: webtest.Now.Add(-time.Minute), Kind: "gpu.attached", Actor: "host", GPU: "fgpu-1f8a33b2", GPUName: "<i>one</i>", VM: "i-5be20f11", VMName: "lab", From: "attaching", To: "attached"},
		{ID: 6, At: webtest.Now.Add(-time.Hour), Kind: "gpu.allocated", Actor: "a@lab.test", GPU: "fgpu-1f8a33b2", GPUName: "<i>one</i>", To: "allocated"},
	}}
}

func TestEventsLeadToTheirObjects(t *testing.T) {
	doc := webtest.Both(t, View(page()))
	if n := doc.Find(`#happenings a[data-id="fgpu-1f8a33b2"]`).Length(); n != 2 {
		t.Errorf("%d links to the GPU, want 2", n)
	}
	if doc.Find("#happenings i").Length() != 0 {
		t.Error("a name is taken for HTML")
	}
}

func TestPagesLeadOnAndBack(t *testing.T) {
	p := page()
	p.Query, p.Next = urls.ActivityQuery{Kind: "gpu", Before: 9}, 6
	doc := webtest.Both(t, View(p))
	if href := doc.Find(`a[rel=next]`).AttrOr("href", ""); href != "/activity?before=6&kind=gpu" {
		t.Errorf("the next page is %q", href)
	}
	if doc.Find(`.pages a[href="/activity?kind=gpu"]`).Length() != 1 {
		t.Error("nothing leads back to the first page")
	}
}

func TestOnlyTheFirstPageIsLive(t *testing.T) {
	p := page()
	first := webtest.Both(t, View(p)).Find("#activity").AttrOr("hx-trigger", "")
	p.Query.Before = 9
	later := webtest.Both(t, View(p)).Find("#activity").AttrOr("hx-trigger", "")
	if first == later {
		t.Errorf("both are fetched anew by %q", first)
	}
}

func TestEmptyListSaysSo(t *testing.T) {
	p := Page{Shell: webtest.Shell(), Query: urls.ActivityQuery{GPU: "fgpu-1f8a33b2"}, About: "one"}
	if doc := webtest.Both(t, View(p)); doc.Find(`.empty a[href="/activity"]`).Length() != 1 {
		t.Error("nothing leads out of the filter")
	}
}
