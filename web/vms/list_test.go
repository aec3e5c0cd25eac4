package vms_test

import (
	"strings"
	"testing"

	"berth/services"
	"berth/web/urls"
	"berth/web/vms"
	"berth/web/webtest"
)

func TestListShowsEachMachineWithItsGPUs(t *testing.T) {
	doc := webtest.Both(t, vms.ListView(list()))
	row := doc.Find(`tr[data-id="i-5be20f11"]`)
	if row.Find(`[data-state=running]`).Length() != 1 || !strings.Contains(webtest.Text(row), "24 vCores, 192 GiB") {
		t.Errorf("the row says %q", webtest.Text(row))
	}
	if got := webtest.Text(row.Find("[data-gpus=attached]")) + ", " + webtest.Text(row.Find("[data-gpus=attaching]")); got != "2 attached, 1 attaching" {
		t.Errorf("its GPUs show as %q", got)
	}
	if !strings.Contains(webtest.Text(row), "stop ordered") {
		t.Error("an ordered stop does not show before the host has begun it")
	}
	if doc.Find(`tr[data-id="i-00000002"] [data-gpus=built-in]`).Length() != 1 {
		t.Error("built-in GPUs do not show")
	}
	if text := webtest.Text(doc.Find(`tr[data-id="i-00000003"]`)); !strings.Contains(text, "none") {
		t.Errorf("a machine without GPUs says %q", text)
	}
}

func TestListIsLive(t *testing.T) {
	l := list()
	l.Query = urls.VMQuery{Power: "running", Text: "lab"}
	region := webtest.Both(t, vms.ListFragment(l)).Find("#vms")
	if got := region.AttrOr("hx-get", ""); got != "/fragments/vms?power=running&q=lab" {
		t.Errorf("the list is refreshed from %q", got)
	}
	for _, event := range []string{"vms from:body", "gpus from:body", "refresh from:body"} {
		if !strings.Contains(region.AttrOr("hx-trigger", ""), event) {
			t.Errorf("the list does not listen to %q", event)
		}
	}
}

func TestTabsOfferPassingPowersOnlyWhereAMachineHasOne(t *testing.T) {
	l := list()
	doc := webtest.Both(t, vms.ListView(l))
	if doc.Find("[data-state-filter]").Length() != 2 {
		t.Errorf("tabs: %q", webtest.Text(doc.Find(".pills")))
	}
	l.Counts = append(l.Counts, vms.PowerCount{Power: services.PowerStarting, Count: 1})
	tab := webtest.Both(t, vms.ListView(l)).Find("[data-state-filter=starting]")
	if tab.AttrOr("href", "") != "/vms?power=starting" || webtest.Text(tab) != "starting 1" {
		t.Errorf("the tab leads to %q and says %q", tab.AttrOr("href", ""), webtest.Text(tab))
	}
}

func TestFiltersAreAPlainForm(t *testing.T) {
	l := list()
	l.Query = urls.VMQuery{Power: "stopped", Zone: "eu-west-2b", Text: "lab", Sort: "name"}
	form := webtest.Both(t, vms.ListView(l)).Find("form#vm")
	if form.AttrOr("method", "") != "get" || form.AttrOr("action", "") != "/vms" {
		t.Error("the filters are not sent to /vms")
	}
	for name, want := range map[string]string{"power": "stopped", "sort": "name", "q": "lab"} {
		if got := form.Find("[name="+name+"]").AttrOr("value", ""); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if form.Find("[name=zone] [selected]").AttrOr("value", "") != "eu-west-2b" {
		t.Error("the zone is not chosen")
	}
}

func TestNextPageKeepsTheQuery(t *testing.T) {
	l := list()
	l.Query, l.Next = urls.VMQuery{Power: "running", After: vmID}, "i-00000003"
	doc := webtest.Both(t, vms.ListView(l))
	if got := doc.Find("a[rel=next]").AttrOr("href", ""); got != "/vms?after=i-00000003&power=running" {
		t.Errorf("the next page is %q", got)
	}
	if doc.Find(`.pages a[href="/vms?power=running"]`).Length() != 1 {
		t.Error("nothing leads back to the first page")
	}
}

func TestEmptyListSaysWhatToDo(t *testing.T) {
	l := list()
	l.Rows, l.Counts = nil, nil
	if doc := webtest.Both(t, vms.ListView(l)); doc.Find(`.empty a[href="/vms/new"]`).Length() != 1 {
		t.Error("an empty account is not led to the form")
	}
	l.Query.Text = "zzz"
	if doc := webtest.Both(t, vms.ListView(l)); doc.Find(`.empty a[href="/vms"]`).Length() != 1 {
		t.Error("a filter without a match can't be cleared")
	}
	l.Account.Role = services.RoleViewer
	if webtest.Both(t, vms.ListView(l)).Find(`a[href="/vms/new"]`).Length() != 0 {
		t.Error("a viewer is led to the form")
	}
}
