package hostagent

import (
	"errors"
	"sync"

	"berth/services/agentapi"
)

// errUnseen: a partial inspection does not show a card, so nothing is known of it.
var errUnseen = errors.New("the card could not be looked at")

// verify checks the cards that a VM is to get against what was seen: that the
// right card stands at the address, in the group that the console knows, and
// that no other VM has it.
func verify(vm string, devices []agentapi.Device, in Inspection) error {
	for _, d := range devices {
		if err := verifyDevice(vm, d, in); err != nil {
			return err
		}
	}
	return nil
}

func verifyDevice(vm string, d agentapi.Device, in Inspection) error {
	card := in.card(d.Key)
	switch {
	case card == nil && in.Partial:
		return errUnseen
	case card == nil:
		return Block(agentapi.ProblemIdentity, d.Key, "this host has no card %s; another may stand at %s", d.Key, d.PCIAddress)
	case card.PCIAddress != d.PCIAddress:
		return Block(agentapi.ProblemIdentity, d.Key, "the card is at %s, not at %s", card.PCIAddress, d.PCIAddress)
	case !sameGroup(card.IOMMUGroup, d.IOMMUGroup):
		return Block(agentapi.ProblemGroup, d.Key, "the card's IOMMU group is not the one that the console knows")
	}
	if holder := in.Holders[d.Key]; holder != "" && holder != vm {
		return inUse(d.Key, holder)
	}
	return nil
}

func inUse(card, holder string) *Blocked {
	b := Block(agentapi.ProblemInUse, card, "%s has the card", holder)
	b.Problem.Holder = holder
	return b
}

func sameGroup(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// claims keeps two workers of one host from taking the same card while neither
// is seen to have it. A claim is taken before the inspection that decides, and
// given back after one that shows the outcome.
type claims struct {
	mu sync.Mutex
	by map[string]string // card key → who is about to take it
}

// take claims all cards for owner, or none and says which other has one.
func (c *claims) take(owner string, cards []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, card := range cards {
		if other, taken := c.by[card]; taken && other != owner {
			return inUse(card, other)
		}
	}
	if c.by == nil {
		c.by = make(map[string]string)
	}
	for _, card := range cards {
		c.by[card] = owner
	}
	return nil
}

func (c *claims) release(owner string, cards []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, card := range cards {
		if c.by[card] == owner {
			delete(c.by, card)
		}
	}
}
