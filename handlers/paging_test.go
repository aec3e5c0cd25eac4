package handlers_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/services/compute"
)

// turn reads a list page by page, each by the link of the one before.
func (b *browser) turn(path, selector string) (ids []string, pages int) {
	b.w.t.Helper()
	for path != "" {
		page := b.get(path).wants(200)
		ids = append(ids, page.found(selector, "data-id")...)
		path, pages = page.Find("a[rel=next]").AttrOr("href", ""), pages+1
		if pages > 20 {
			b.w.t.Fatalf("the pages have no end: %s", path)
		}
	}
	return ids, pages
}

func TestPagesFollowEachOtherThoughNamesAreAlike(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.addHost("eu-west-2a", slices.Repeat([]string{l40}, 121)...)
	a := w.actor(alice, "Alpha", services.RoleOwner)
	w.must(w.tenancy.SetQuota(t.Context(), a.Account, "eu-west-2", "nvidia-l40", nil))
	var gpus, vms []string
	for i := range 120 {
		gpu, err := w.compute.Allocate(t.Context(), a, compute.Allocation{Model: "nvidia-l40", Zone: h.zone, Name: fmt.Sprintf("same %d", i%2)})
		w.must(err)
		vm, err := w.compute.CreateVM(t.Context(), a, compute.NewVM{Name: fmt.Sprintf("same %d", i%2), Zone: h.zone, Type: "tinav7.c1r1"})
		w.must(err)
		gpus, vms = append(gpus, string(gpu)), append(vms, string(vm))
	}
	bobs, err := w.compute.Allocate(t.Context(), w.actor(bob, "Beta", services.RoleOwner), compute.Allocation{Model: "nvidia-l40", Zone: h.zone, Name: "same 1"})
	w.must(err)

	b := w.signIn(alice)
	sorted := func(ids []string) []string { return slices.Sorted(slices.Values(ids)) }
	for path, want := range map[string][]string{"/gpus": gpus, "/vms": vms} {
		for _, query := range []string{"", "?sort=name", "?sort=-name", "?sort=created", "?q=same&zone=eu-west-2a"} {
			got, pages := b.turn(path+query, "tr[data-id]")
			if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" || pages != 3 {
				t.Errorf("%s%s on %d pages, want 3: %s", path, query, pages, diff)
			}
		}
		oldest, _ := b.turn(path+"?sort=created", "tr[data-id]")
		newest, _ := b.turn(path, "tr[data-id]")
		slices.Reverse(newest)
		if diff := cmp.Diff(oldest, newest); diff != "" {
			t.Errorf("%s, newest first, is not oldest first turned round: %s", path, diff)
		}
		part := b.get("/fragments" + path + "?sort=name&after=" + want[0]).wants(200).lacks(".sidebar")
		if diff := cmp.Diff(b.get(path+"?sort=name&after="+want[0]).found("tr[data-id]", "data-id"), part.found("tr[data-id]", "data-id")); diff != "" {
			t.Errorf("the fragment of %s shows another page: %s", path, diff)
		}
	}
	if got, pages := w.signIn(bob).turn("/gpus?after="+gpus[0], "tr[data-id]"); pages != 1 || (len(got) > 0 && got[0] != string(bobs)) {
		t.Errorf("behind another account's GPU: %v", got)
	}
	found := b.get("/search?q=same").wants(200)
	if n := found.Find(".found li[data-id^=fgpu-]").Length(); n != 20 {
		t.Errorf("search shows %d GPUs, want 20 of them", n)
	}
	found.says("There are more").has(`a[href="/gpus?q=same"]`).has(`a[href="/vms?q=same"]`)
}

// Somebody follows a link to a page whose rows have gone meanwhile.
func TestAPageBehindTheLastRowIsNoEmptyAccount(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	b := w.signIn(alice)
	gpu := idIn(b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/"))
	vm := string(w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "u1.large"))
	for path, id := range map[string]string{
		"/gpus?after=" + gpu: gpu, "/gpus?after=fgpu-00000000": gpu, "/fragments/gpus?after=" + gpu: gpu, "/vms?after=" + vm: vm, "/vms?after=i-00000000": vm,
	} {
		b.get(path).wants(200).has(`tr[data-id="` + id + `"]`)
	}
	b.get("/activity?before=1").wants(200).has("[data-event]")
}

// varying is what differs between two answers about the same thing.
var varying = regexp.MustCompile(`name="idempotency_key" value="[^"]*"|since=[^"&]*|<time[^>]*>[^<]*</time>|datetime="[^"]*"`)

func TestHowManyCardsAreFreeIsNoTenantsBusiness(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", slices.Repeat([]string{l40}, 8)...)
	b := w.signIn(alice)
	paths := []string{
		"/catalog", "/catalog/nvidia-l40", "/catalog?compare=nvidia-l40", "/gpus/new", "/gpus/new?model=nvidia-l40&zone=eu-west-2a",
		"/vms/new?zone=eu-west-2a&type=tinav7.c8r32p1", "/gpus", "/search?q=l40", "/activity",
	}
	read := func() map[string]string {
		all := map[string]string{}
		for _, path := range paths {
			html, err := b.get(path).wants(200).Find("main").Html()
			w.must(err)
			all[path] = varying.ReplaceAllString(html, "")
		}
		return all
	}
	few := read()
	h.cards = slices.Repeat([]string{l40}, 40)
	h.work()
	if diff := cmp.Diff(few, read()); diff != "" {
		t.Errorf("with 40 free cards instead of 8: %s", diff)
	}
	h.cards = []string{h100} // the others are missing
	h.work()
	if cmp.Equal(few, read()) {
		t.Error("that none is free is told nowhere")
	}
}
