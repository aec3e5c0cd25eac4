package lab

import (
	"slices"
	"testing"

	"berth/services/catalog"
	"berth/services/hostagent/sim"
)

// unique fails where two hosts share a name, or two cards a serial.
func unique(t *testing.T, fleet map[string][]sim.HostSpec) (hosts, cards int) {
	t.Helper()
	seen := map[string]bool{}
	note := func(id string) {
		if id != "" && seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
	}
	for _, zone := range fleet {
		for _, h := range zone {
			hosts++
			note("host " + h.Name)
			for _, c := range h.Cards {
				cards++
				note(c.Serial)
			}
		}
	}
	return hosts, cards
}

func TestAFleetOfAnySizeIsAsLargeAsItWasAsked(t *testing.T) {
	for _, tt := range []struct{ hosts, cards int }{{1, 1}, {5, 0}, {7, 10}, {300, 8}, {1000, 32}} {
		fleet := anyFleet(tt.hosts, tt.cards)
		if hosts, cards := unique(t, fleet); hosts != tt.hosts || cards != tt.hosts*tt.cards {
			t.Errorf("%d hosts and %d cards, want %d of %d each", hosts, cards, tt.hosts, tt.cards)
		}
		if tt.hosts >= 4 && len(fleet) != 4 {
			t.Errorf("%d hosts stand in %d zones, want 4", tt.hosts, len(fleet))
		}
	}
}

// Each zone has free cards of every model that its region offers, and hosts of
// different shapes stand somewhere.
func TestTheLabHasSomethingOfEverything(t *testing.T) {
	fleet := hosts()
	unique(t, fleet)
	published := catalog.Published()
	for _, p := range published.Places {
		for _, o := range published.Offers {
			if o.Region == p.Region && !has(fleet[p.Zone], published, o.Model) {
				t.Errorf("%s has no %s", p.Zone, o.Model)
			}
		}
	}
	sizes := map[int]bool{}
	for _, zone := range fleet {
		for _, h := range zone {
			sizes[len(h.Cards)] = true
		}
	}
	for _, n := range []int{0, 4, 8, 10} {
		if !sizes[n] {
			t.Errorf("no host has %d cards", n)
		}
	}
}

func has(zone []sim.HostSpec, published catalog.Reference, model string) bool {
	return slices.ContainsFunc(zone, func(h sim.HostSpec) bool {
		return slices.ContainsFunc(h.Cards, func(c sim.CardSpec) bool {
			return slices.ContainsFunc(published.Models, func(m catalog.Model) bool {
				return m.ID == model && slices.Contains(m.PCIIDs, c.VendorID+":"+c.DeviceID)
			})
		})
	})
}
