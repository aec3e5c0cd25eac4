package compute_test

import (
	"fmt"
	"slices"
	"testing"

	"berth/services"
	"berth/services/compute"
)

// fleet is so many hosts of eight L40.
func fleetOf(hosts int) map[string][]shape {
	shapes := make([]shape, hosts)
	for i := range shapes {
		shapes[i] = shape{name: fmt.Sprintf("host-%04d", i), generation: "v7", cards: slices.Repeat([]string{l40}, 8)}
	}
	return map[string][]shape{"eu-west-2a": shapes}
}

// Taking a card costs the same whatever the size of the fleet: compare the two.
func BenchmarkAllocateAndRelease(b *testing.B) {
	for _, hosts := range []int{10, 500} {
		b.Run(fmt.Sprintf("cards=%d", hosts*8), func(b *testing.B) {
			w := newWorld(b, 100, fleetOf(hosts))
			a := w.accounts[0]
			for b.Loop() {
				id, err := w.compute.Allocate(b.Context(), a, compute.Allocation{Model: "nvidia-l40", Zone: "eu-west-2a"})
				if services.KindOf(err) == services.KindCapacity { // released cards want to be cleaned first
					b.StopTimer()
					w.work(b.Context(), b, w.agents[0])
					b.StartTimer()
					continue
				}
				must(b, err)
				must(b, w.compute.Release(b.Context(), a, id, ""))
			}
		})
	}
}

// A report that changes nothing costs reads alone, in proportion to its cards.
func BenchmarkReport(b *testing.B) {
	for _, hosts := range []int{10, 100} {
		b.Run(fmt.Sprintf("cards=%d", hosts*8), func(b *testing.B) {
			w := newWorld(b, 1, fleetOf(hosts))
			for b.Loop() {
				w.report(b.Context(), b, w.agents[0])
			}
		})
	}
}
