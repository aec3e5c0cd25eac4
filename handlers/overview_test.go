package handlers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services"
)

// The overview follows a GPU from state to state and names what it waits for.
func TestTheOverviewTellsWhatWaitsAndForWhat(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40)
	b := w.signIn(alice)
	b.get("/").wants(200).lacks(`main [data-id^="fgpu-"]`)
	vm := string(w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "tinav7.c8r32p1"))
	gpu := idIn(b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a", "name", "first").leads("/gpus/"))
	sees := func(what string, want ...string) {
		t.Helper()
		for _, path := range []string{"/", "/fragments/overview"} {
			got := b.get(path).wants(200).found(`#overview [data-id="`+gpu+`"] [data-state], #overview [data-id="`+gpu+`"][data-state]`, "data-state")
			if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
				t.Errorf("%s, %s: %s", what, path, diff)
			}
		}
	}
	sees("allocated", "allocated")
	b.post("/gpus/"+gpu+"/attach", "vm", vm).leads("/gpus/")
	sees("planned", "attaching")
	b.get("/").says("trainer")
	b.post("/vms/"+vm+"/power", "action", "stop-start").leads("/vms/")
	for range 4 {
		h.work()
	}
	sees("attached")
	b.post("/gpus/" + gpu + "/detach").leads("/gpus/")
	sees("to be detached", "detaching")
	b.post("/session/region", "region", "hikube", "back", "/").leads("/")
	sees("in another region")
}

func TestTheSidebarCountsWhatIsThere(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40, l40)
	b := w.signIn(alice)
	vm := string(w.addVM(h, w.actor(alice, "Alpha", services.RoleOwner), "trainer", "tinav7.c8r32p1"))
	gpu := b.post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	b.post(gpu+"/attach", "vm", vm).leads("/gpus/")
	for who, want := range map[string]map[string]string{
		alice: {"/gpus .nav-count": "1", "/vms .nav-count": "1", "/gpus .nav-waiting [aria-hidden]": "1"},
		vera:  {"/gpus .nav-count": "1", "/vms .nav-count": "1", "/gpus .nav-waiting [aria-hidden]": "1"},
		bob:   {"/gpus .nav-count": "", "/vms .nav-count": "", "/gpus .nav-waiting [aria-hidden]": ""},
	} {
		b := w.signIn(who)
		for _, path := range []string{"/gpus", "/fragments/nav?section=gpus"} {
			nav := b.get(path).wants(200).has(`.nav a[href="/gpus"][aria-current]`)
			got := map[string]string{}
			for place := range want {
				href, part, _ := strings.Cut(place, " ")
				got[place] = nav.Find(`.nav a[href="` + href + `"] ` + part).Text()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s at %s: %s", who, path, diff)
			}
		}
	}
	b.get("/fragments/nav?section=nonsense").wants(200).lacks("[aria-current]")
}
