package passthrough

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"berth/services/hostagent/internal/atomicfile"
	"berth/services/hostagent/pci"
)

// former is what a function had before its card was taken.
type former struct {
	Address  pci.Address `json:"address"`
	Driver   string      `json:"driver"`   // empty: none
	Override string      `json:"override"` // driver_override; empty: none
}

// loan is a card away from the host, or on its way.
type loan struct {
	Boot      string   `json:"boot"` // of the kernel that has the functions so; another has forgotten
	Functions []former `json:"functions"`
}

// load reads the loans of earlier runs.
func load(file string) (map[string]loan, error) {
	loans := make(map[string]loan)
	raw, err := os.ReadFile(file) //nolint:gosec // in the agent's own state folder
	if errors.Is(err, fs.ErrNotExist) {
		return loans, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &loans)
	}
	if err != nil {
		return nil, fmt.Errorf("read which drivers the cards had: %w", err)
	}
	return loans, nil
}

// remember writes down what a card's functions have now, unless this boot's
// record says what they had.
func (b *Binder) remember(ctx context.Context, key string, card pci.Card) error {
	if l, known := b.loan(key); known && l.covers(card) {
		return nil
	}
	l := loan{Boot: b.boot}
	for _, f := range card.Functions {
		override, err := b.override(ctx, f.Address)
		if err != nil {
			return b.blocked(key, []pci.Address{f.Address}, err)
		}
		l.Functions = append(l.Functions, former{Address: f.Address, Driver: b.driver(f.Address), Override: override})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.store(func(loans map[string]loan) { loans[key] = l })
}

func (l loan) covers(card pci.Card) bool {
	return slices.EqualFunc(l.Functions, card.Functions, func(f former, d pci.Device) bool { return f.Address == d.Address })
}

func (b *Binder) forget(key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.loans[key]; !known {
		return nil
	}
	return b.store(func(loans map[string]loan) { delete(loans, key) })
}

// store changes the record on disk and only then in memory; b.mu is held.
func (b *Binder) store(change func(map[string]loan)) error {
	next := maps.Clone(b.loans)
	change(next)
	raw, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("encode which drivers the cards had: %w", err)
	}
	if err := atomicfile.Write(b.file, append(raw, '\n')); err != nil {
		return fmt.Errorf("keep which drivers the cards had: %w", err)
	}
	b.loans = next
	return nil
}

// Loans are the keys of the cards that are away from the host's drivers, or
// that an interrupted step left half way.
func (b *Binder) Loans() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.loans))
}

func (b *Binder) loan(key string) (loan, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, known := b.loans[key]
	return l, known && l.Boot == b.boot
}
