package handlers_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"berth/services"
	"berth/services/compute"
)

// A page of a list costs the same whatever the list's length: compare the two.
func BenchmarkPages(b *testing.B) {
	for _, held := range []int{10, 400} {
		w := newWorld(b)
		w.hold(b, held)
		alice := w.signIn(alice)
		for _, path := range []string{"/", "/gpus", "/gpus?q=12", "/gpus/new", "/vms", "/catalog", "/activity"} {
			b.Run(fmt.Sprintf("%s gpus=%d", path, held), func(b *testing.B) {
				for b.Loop() {
					alice.get(path).wants(http.StatusOK)
				}
			})
		}
	}
}

// hold lets Alpha hold so many GPUs.
func (w *world) hold(b *testing.B, n int) {
	b.Helper()
	w.addHost("eu-west-2a", slices.Repeat([]string{l40}, n+1)...)
	w.must(w.tenancy.SetQuota(b.Context(), w.accounts["Alpha"], "eu-west-2", "nvidia-l40", &n))
	actor := services.Actor{Email: alice, Account: w.accounts["Alpha"], Role: services.RoleOwner}
	for i := range n {
		_, err := w.compute.Allocate(b.Context(), actor, compute.Allocation{Model: "nvidia-l40", Zone: "eu-west-2a", Name: fmt.Sprintf("gpu-%d", i)})
		w.must(err)
	}
}
