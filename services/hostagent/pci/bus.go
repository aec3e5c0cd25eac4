package pci

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvlib/pkg/nvpci"
)

// Devices is where sysfs lists the bus, below the root of the file system.
const Devices = "sys/bus/pci/devices"

// Scan is a bus at one moment.
type Scan struct {
	Devices    []Device // by address
	Cards      []Card   // by the address of their GPU
	Unreadable []Unreadable
}

// Unreadable is what sysfs lists and does not describe.
type Unreadable struct {
	Name string // as the folder is called: an address, or what should have been one
	Err  error
}

// Card is one physical GPU with all functions of its slot, bridges left out.
type Card struct {
	GPU       Device
	Functions []Device // the GPU among them, by address
	// Neighbours are the devices of other slots in the IOMMU groups of the
	// functions, bridges left out: they can't stay with the host once a VM has
	// the card.
	Neighbours []Device
	BARs       []BAR
	// Incomplete: a function of the slot can't be read, so what would be bound
	// is not all of the card.
	Incomplete bool
}

// BAR is a memory window of a card's GPU function.
type BAR struct {
	Index    int
	Bytes    uint64
	Prefetch bool // large ones are
}

// PCI resource flags of the kernel, include/linux/ioport.h.
const (
	flagMemory   = 0x200
	flagPrefetch = 0x2000
)

// Read scans the bus of the machine whose file system lies at root ("/" for
// this one). An error means that there is no bus to be seen at all.
func Read(root string) (Scan, error) {
	dir := filepath.Join(root, Devices)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Scan{}, fmt.Errorf("list the PCI bus: %w", err)
	}
	var s Scan
	for _, e := range entries {
		d, err := readEntry(dir, e.Name())
		if err != nil {
			s.Unreadable = append(s.Unreadable, Unreadable{Name: e.Name(), Err: err})
			continue
		}
		s.Devices = append(s.Devices, d)
	}
	slices.SortFunc(s.Devices, func(a, b Device) int { return strings.Compare(string(a.Address), string(b.Address)) })
	s.findCards(nvpci.New(nvpci.WithPCIDevicesRoot(dir), nvpci.WithLogger(silent{})))
	return s, nil
}

func readEntry(dir, name string) (Device, error) {
	a, err := ParseAddress(name)
	if err != nil {
		return Device{}, err
	}
	return read(filepath.Join(dir, name), a)
}

// findCards groups the functions of each slot that has an accelerator.
func (s *Scan) findCards(bus nvpci.Interface) {
	slots, groups := map[string][]Device{}, map[int][]Device{}
	for _, d := range s.Devices {
		if d.Bridge() {
			continue
		}
		slots[d.Address.Slot()] = append(slots[d.Address.Slot()], d)
		if d.IOMMUGroup != nil {
			groups[*d.IOMMUGroup] = append(groups[*d.IOMMUGroup], d)
		}
	}
	for _, slot := range slices.Sorted(maps.Keys(slots)) {
		i := slices.IndexFunc(slots[slot], Device.Accelerator)
		if i < 0 {
			continue
		}
		c := newCard(slots[slot], i, groups)
		c.Incomplete = slices.ContainsFunc(s.Unreadable, func(u Unreadable) bool { return strings.HasPrefix(u.Name, slot+".") })
		bars, err := windows(bus, c.GPU.Address)
		if err != nil {
			s.Unreadable = append(s.Unreadable, Unreadable{Name: string(c.GPU.Address), Err: err})
		}
		c.BARs = bars
		s.Cards = append(s.Cards, c)
	}
}

func newCard(slot []Device, gpu int, groups map[int][]Device) Card {
	c := Card{GPU: slot[gpu]}
	for _, f := range slot {
		if !f.Virtual {
			c.Functions = append(c.Functions, f)
		}
	}
	seen := map[int]bool{}
	for _, f := range c.Functions {
		if f.IOMMUGroup == nil || seen[*f.IOMMUGroup] {
			continue
		}
		seen[*f.IOMMUGroup] = true
		for _, d := range groups[*f.IOMMUGroup] {
			if d.Address.Slot() != c.GPU.Address.Slot() {
				c.Neighbours = append(c.Neighbours, d)
			}
		}
	}
	return c
}

// windows asks for one device, never for the list: one that nvpci can't read
// would hide all others.
func windows(bus nvpci.Interface, a Address) ([]BAR, error) {
	d, err := bus.GetNvidiaDeviceByPciBusID(string(a))
	if err != nil {
		return nil, fmt.Errorf("read memory windows of %s: %w", a, err)
	}
	if d == nil {
		return nil, fmt.Errorf("read memory windows of %s: it has gone meanwhile", a)
	}
	var bars []BAR
	for _, i := range slices.Sorted(maps.Keys(d.Resources)) {
		r := d.Resources[i]
		if i > 5 || r.Flags&flagMemory == 0 || r.End < r.Start { // after the BARs come the ROM and the virtual functions'
			continue
		}
		bars = append(bars, BAR{Index: i, Bytes: uint64(r.End-r.Start) + 1, Prefetch: r.Flags&flagPrefetch != 0})
	}
	return bars, nil
}

// silent drops what nvpci would print: what matters comes as an error.
type silent struct{}

// Warningf drops a line.
func (silent) Warningf(string, ...any) {}
