package passthrough

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/pci"
)

// Reset resets every function of a taken card that can be, by the kernel's best
// method, and looks whether the card answers afterwards. Errors:
// *hostagent.Blocked with ProblemReset.
func (b *Binder) Reset(ctx context.Context, key string, card pci.Card) error {
	done, err := b.turn(ctx, key)
	if err != nil {
		return err
	}
	defer done()
	if len(card.GPU.ResetMethods) == 0 {
		return hostagent.Block(agentapi.ProblemReset, key, "the kernel knows no way to reset %s", card.GPU.Address)
	}
	for _, f := range card.Functions {
		if len(f.ResetMethods) == 0 {
			continue
		}
		if err := b.write(ctx, f.Address, attribute(f.Address, "reset"), "1"); err != nil {
			failed := hostagent.Block(agentapi.ProblemReset, key, "%v", err)
			failed.Cause = err
			return failed
		}
	}
	if !b.answers(card.GPU.Address) {
		return hostagent.Block(agentapi.ProblemReset, key, "%s does not answer after its reset; the host may need a power cycle", card.GPU.Address)
	}
	return nil
}

// answers reads the vendor from the device itself: one that has fallen off the
// bus reads as ones.
func (b *Binder) answers(at pci.Address) bool {
	f, err := os.Open(filepath.Join(string(b.root), attribute(at, "config")))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	vendor := make([]byte, 2)
	if _, err := f.ReadAt(vendor, 0); err != nil {
		return false
	}
	return !slices.Equal(vendor, []byte{0xff, 0xff})
}
