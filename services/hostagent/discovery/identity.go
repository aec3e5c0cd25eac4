package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"berth/services/hostagent/internal/atomicfile"
	"berth/services/hostagent/pci"
)

// Seen is what NVIDIA's library tells of a card. While a VM has the card the
// library sees nothing of it.
type Seen struct {
	Serial   string `json:"serial,omitempty"`
	UUID     string `json:"uuid,omitempty"`
	VBIOS    string `json:"vbios,omitempty"`
	Firmware string `json:"firmware,omitempty"`
}

// identity is a card that was seen once. It stays though the card leaves, so
// that one which comes back elsewhere is the same.
type identity struct {
	Key     string      `json:"key"`     // for ever
	Address pci.Address `json:"address"` // where it was last; empty: another card stands there now
	IDs     string      `json:"ids"`     // "10de:26b9:10de:1851"
	Seen
}

// identities remember which card is which while NVML sees nothing. They are
// written before a key is told to anybody.
type identities struct {
	file  string
	Cards []identity `json:"cards"`
}

// loadIdentities starts empty where there is no file. One that can't be read is
// an error: new keys for old cards would look like other cards.
func loadIdentities(file string) (*identities, error) {
	ids := &identities{file: file}
	if file == "" {
		return ids, nil
	}
	raw, err := os.ReadFile(file) //nolint:gosec // in the agent's own state folder
	if errors.Is(err, fs.ErrNotExist) {
		return ids, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, ids)
	}
	if err != nil {
		return nil, fmt.Errorf("read which card is which: %w", err)
	}
	return ids, nil
}

// of tells which card stands at an address now. seen is nil where the library
// sees nothing there.
func (ids *identities) of(gpu pci.Device, seen *Seen) identity {
	pid := gpu.Vendor + ":" + gpu.Device + ":" + gpu.SubsystemID
	i := ids.find(gpu.Address, pid, seen)
	if i < 0 {
		i = len(ids.Cards)
		ids.Cards = append(ids.Cards, identity{IDs: pid})
		ids.Cards[i].Key = ids.newKey(pid+"@"+gpu.Address.Slot(), seen)
	}
	card := &ids.Cards[i]
	if seen != nil {
		card.Seen = *seen
	}
	for j := range ids.Cards {
		if j != i && ids.Cards[j].Address == gpu.Address {
			ids.Cards[j].Address = ""
		}
	}
	card.Address = gpu.Address
	return *card
}

// find looks for a card by what is sure, then by where it was; -1: a new one.
func (ids *identities) find(at pci.Address, pid string, seen *Seen) int {
	if seen != nil {
		i := slices.IndexFunc(ids.Cards, func(c identity) bool {
			return c.IDs == pid && (seen.Serial != "" && c.Serial == seen.Serial || seen.UUID != "" && c.UUID == seen.UUID)
		})
		if i >= 0 {
			return i
		}
	}
	return slices.IndexFunc(ids.Cards, func(c identity) bool {
		return c.IDs == pid && c.Address == at && (seen == nil || compatible(c.Seen, *seen))
	})
}

// compatible tells whether nothing speaks against two sightings being of one
// card. A UUID alone may be new: it changes with a repair that keeps the serial.
func compatible(a, b Seen) bool {
	if a.Serial != "" && b.Serial != "" {
		return a.Serial == b.Serial
	}
	return a.UUID == "" || b.UUID == "" || a.UUID == b.UUID
}

// newKey is the serial, else the UUID, else the place; numbered where a card
// that has moved away has it.
func (ids *identities) newKey(place string, seen *Seen) string {
	key := place
	if seen != nil {
		switch {
		case seen.Serial != "":
			key = seen.Serial
		case seen.UUID != "":
			key = seen.UUID
		}
	}
	taken := func(k string) bool {
		return slices.ContainsFunc(ids.Cards, func(c identity) bool { return c.Key == k })
	}
	for n, base := 2, key; taken(key); n++ {
		key = fmt.Sprintf("%s#%d", base, n)
	}
	return key
}

// save writes what is known, for the next start of the agent.
func (ids *identities) save() error {
	if ids.file == "" {
		return nil
	}
	raw, err := json.MarshalIndent(ids, "", "  ")
	if err != nil {
		return fmt.Errorf("encode which card is which: %w", err)
	}
	return atomicfile.Write(ids.file, append(raw, '\n'))
}

// same tells whether nothing has changed since.
func (ids *identities) same(before []identity) bool { return slices.Equal(ids.Cards, before) }

// serial drops what NVML writes for cards without one.
func serial(s string) string {
	if t := strings.Trim(s, "0 "); t == "" || strings.EqualFold(t, "N/A") || strings.EqualFold(t, "[N/A]") {
		return ""
	}
	return s
}
