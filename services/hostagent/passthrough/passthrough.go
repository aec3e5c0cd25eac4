package passthrough

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/pci"
)

// Binder moves the cards of one host. Its methods may be called at the same
// time; for one card they wait for each other.
type Binder struct {
	root   machine.Root
	file   string
	kernel Kernel
	boot   string
	// variants are read once: modules come and go, what they are made for stays.
	variants func() map[string]string

	mu    sync.Mutex // guards what follows
	loans map[string]loan
	busy  map[pci.Address]chan struct{} // writes that have not ended
	turns map[string]chan struct{}      // one step at a time for each card, by key
}

// New reads from file which cards earlier runs took. An error means that the
// file can't be read: without it nobody knows where the cards belong.
func New(root machine.Root, file string, kernel Kernel) (*Binder, error) {
	loans, err := load(file)
	if err != nil {
		return nil, err
	}
	boot, _ := os.ReadFile(filepath.Join(string(root), "proc/sys/kernel/random/boot_id")) // where there is none, all boots are one
	return &Binder{
		root: root, file: file, kernel: kernel, boot: strings.TrimSpace(string(boot)),
		variants: sync.OnceValue(func() map[string]string { return readVariants(root) }),
		loans:    loans, busy: make(map[pci.Address]chan struct{}), turns: make(map[string]chan struct{}),
	}, nil
}

// Taken tells whether each function of a card has the driver by which a VM gets
// it, and none is on its way.
func (b *Binder) Taken(card pci.Card) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !slices.ContainsFunc(card.Functions, func(f pci.Device) bool {
		_, busy := b.busy[f.Address]
		return busy || b.driver(f.Address) != b.vfio(f.Address)
	})
}

// Take gives all functions of a card to vfio and reads back that they came
// over. What is there already is left as it is, and a repeat after an
// interruption finishes it. Errors: *hostagent.Blocked with ProblemGroup, where
// the host needs what would have to leave with the card; ProblemHeld, where a
// process has it open; ProblemBind, where the kernel did not do as told. Then
// the functions that had come over go back.
func (b *Binder) Take(ctx context.Context, key string, card pci.Card) error {
	done, err := b.turn(ctx, key)
	if err != nil {
		return err
	}
	defer done()
	if err := viable(key, card); err != nil {
		return err
	}
	if err := b.remember(ctx, key, card); err != nil {
		return err
	}
	if err := b.unheld(key, card); err != nil {
		return errors.Join(err, b.giveBack(ctx, key)) // an earlier try may have left some
	}
	for _, f := range card.Functions {
		vfio := b.vfio(f.Address)
		if err := b.move(ctx, f.Address, vfio, vfio); err != nil {
			return b.undo(ctx, key, card, err)
		}
	}
	return nil
}

// Return gives all functions of a card their former drivers. A card that was
// not taken, or not since the kernel started, is left as it is. Errors as for
// Take; the card stays on loan then, and a repeat goes on.
func (b *Binder) Return(ctx context.Context, key string) error {
	done, err := b.turn(ctx, key)
	if err != nil {
		return err
	}
	defer done()
	return b.giveBack(ctx, key)
}

func (b *Binder) giveBack(ctx context.Context, key string) error {
	l, known := b.loan(key)
	if !known {
		return b.forget(key)
	}
	var away []pci.Address
	for _, f := range l.Functions {
		if b.driver(f.Address) != f.Driver && b.there(f.Address) {
			away = append(away, f.Address)
		}
	}
	if err := b.holders(key, away); err != nil {
		return err
	}
	if err := b.restore(ctx, key, l.Functions); err != nil {
		return err
	}
	return b.forget(key)
}

func (b *Binder) restore(ctx context.Context, key string, functions []former) error {
	for _, f := range functions {
		if !b.there(f.Address) { // pulled, or fallen off the bus
			continue
		}
		if err := b.move(ctx, f.Address, f.Override, f.Driver); err != nil {
			return b.blocked(key, []pci.Address{f.Address}, err)
		}
	}
	return nil
}

func (b *Binder) there(at pci.Address) bool {
	_, err := os.Stat(filepath.Join(string(b.root), pci.Devices, string(at)))
	return err == nil
}

// turn waits until no other step moves the card.
func (b *Binder) turn(ctx context.Context, key string) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	turn, known := b.turns[key]
	if !known {
		turn = make(chan struct{}, 1)
		b.turns[key] = turn
	}
	b.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("another step with card %s has not ended: %w", key, ctx.Err())
	}
}

// viable tells whether the card can leave the host by itself.
func viable(key string, card pci.Card) error {
	if card.GPU.IOMMUGroup == nil {
		return hostagent.Block(agentapi.ProblemGroup, key, "%s has no IOMMU group: the IOMMU is off", card.GPU.Address)
	}
	if card.Incomplete {
		return hostagent.Block(agentapi.ProblemIdentity, key, "not all functions at %s can be read", card.GPU.Address.Slot())
	}
	for _, n := range card.Neighbours {
		if !pci.Yields(n.Driver) {
			return hostagent.Block(agentapi.ProblemGroup, key, "%s (driver %s) shares IOMMU group %d with %s", n.Address, n.Driver, *card.GPU.IOMMUGroup, card.GPU.Address)
		}
	}
	return nil
}

// unheld looks for processes before anything is touched: an unbind would wait
// for them.
func (b *Binder) unheld(key string, card pci.Card) error {
	var bound []pci.Address
	for _, f := range card.Functions {
		if b.driver(f.Address) != b.vfio(f.Address) {
			bound = append(bound, f.Address)
		}
	}
	return b.holders(key, bound)
}

// lookDeadline bounds the search for a holder: what sysfs tells of a device that
// the kernel is at work on may not come.
const lookDeadline = 2 * time.Second

// holders names the first process that has one of the functions open. Nobody is
// named where that can't be told in time.
func (b *Binder) holders(key string, functions []pci.Address) error {
	found := make(chan error, 1)
	go func() {
		for _, at := range functions {
			if h := machine.Holders(b.root, machine.Nodes(b.root, string(at))...); len(h) > 0 {
				found <- held(key, at, h[0])
				return
			}
		}
		found <- nil
	}()
	select {
	case err := <-found:
		return err
	case <-time.After(lookDeadline):
		return nil
	}
}

func held(key string, at pci.Address, h machine.Holder) error {
	err := hostagent.Block(agentapi.ProblemHeld, key, "%s (pid %d) has %s open", h.Name, h.PID, at)
	err.Problem.Holder, err.Problem.PID = h.Name, h.PID
	return err
}

// blocked makes of an error what an operator can do something about. A process
// that is found now is the cause of a write that did not end.
func (b *Binder) blocked(key string, functions []pci.Address, cause error) error {
	if errors.Is(cause, context.Canceled) {
		return cause
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		if err := b.holders(key, functions); err != nil {
			return err
		}
	}
	err := hostagent.Block(agentapi.ProblemBind, key, "%v", cause)
	err.Cause = cause
	return err
}

// undoDeadline bounds the way back, which goes on though ctx has ended.
const undoDeadline = 10 * time.Second

// undo gives back what had come over. A function that the kernel is still at
// work on is not waited for; its card stays on loan.
func (b *Binder) undo(ctx context.Context, key string, card pci.Card, cause error) error {
	functions := make([]pci.Address, len(card.Functions))
	for i, f := range card.Functions {
		functions[i] = f.Address
	}
	err := b.blocked(key, functions, cause)
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoDeadline)
	defer cancel()
	l, _ := b.loan(key)
	free := slices.DeleteFunc(slices.Clone(l.Functions), func(f former) bool { return b.stuck(f.Address) })
	if len(free) < len(l.Functions) {
		return errors.Join(err, b.restore(back, key, free))
	}
	return errors.Join(err, b.giveBack(back, key))
}
