package pci_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services/hostagent/pci"
	"berth/services/hostagent/sysfstest"
)

func read(t testing.TB, tree *sysfstest.Tree) pci.Scan {
	t.Helper()
	s, err := pci.Read(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]pci.Address{
		"0000:3b:00.0": "0000:3b:00.0", "00000000:3B:00.0": "0000:3b:00.0", "10000:e1:00.0": "10000:e1:00.0", "00010000:E1:00.0": "10000:e1:00.0",
		"": "", "3b:00.0": "", "0000:3b:00": "", "0000:3b:00.8": "", "0000:3b:20.0": "", "0000:3b:00.0/../..": "", "<b>:00:00.0": "", "0000:3b:00.0\n": "",
	} {
		got, err := pci.ParseAddress(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	if got := pci.Address("10000:e1:00.3").Slot(); got != "10000:e1:00" {
		t.Errorf("slot %q", got)
	}
}

// What each machine is made of: cards by their GPU's address, with functions,
// group, node, parents, neighbours and the size of their largest window.
func TestShapes(t *testing.T) {
	type card struct {
		GPU        pci.Address
		Functions  int
		Group      int
		NUMA       int // -1: unknown
		Parents    string
		Neighbours []pci.Address
		LargestGiB uint64
	}
	alone := func(a string, group, numa int, gib uint64) card {
		return card{GPU: pci.Address("0000:" + a + ":00.0"), Functions: 1, Group: group, NUMA: numa, Parents: "pci0000:" + a, LargestGiB: gib}
	}
	for name, c := range map[string]struct {
		tree *sysfstest.Tree
		want []card
	}{
		"eight L40S on two sockets": {sysfstest.DualL40S(t), []card{
			alone("16", 0, 0, 64), alone("26", 1, 0, 64), alone("36", 2, 0, 64), alone("46", 3, 0, 64),
			alone("56", 4, 1, 64), alone("66", 5, 1, 64), alone("76", 6, 1, 64), alone("86", 7, 1, 64)}},
		"two A100 whose node is unknown": {sysfstest.A100Bridge(t), []card{alone("21", 10, -1, 128), alone("41", 11, -1, 128)}},
		"cards of four functions": {sysfstest.FourFunctions(t), []card{
			{GPU: "0000:3b:00.0", Functions: 4, Parents: "pci0000:3b"}, {GPU: "0000:5e:00.0", Functions: 4, Group: 1, Parents: "pci0000:5e"}}},
		"a group shared with a network card": {sysfstest.SharedGroup(t), []card{
			{GPU: "0000:01:00.0", Functions: 1, Group: 14, Parents: "pci0000:00 0000:00:01.0", Neighbours: []pci.Address{"0000:02:00.0"}, LargestGiB: 64},
			{GPU: "0000:61:00.0", Functions: 1, Group: 30, Parents: "pci0000:60", LargestGiB: 64}}},
		"a domain beyond 0000": {sysfstest.VMD(t), []card{
			{GPU: "10000:e1:00.0", Functions: 1, Group: 7, Parents: "pci0000:c0 0000:c0:05.5 pci10000:e0 10000:e0:01.0",
				Neighbours: []pci.Address{"0000:c0:05.5"}, LargestGiB: 64}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, c.tree)
			var got []card
			for _, k := range s.Cards {
				g := card{GPU: k.GPU.Address, Functions: len(k.Functions), Group: *k.GPU.IOMMUGroup, NUMA: -1, Parents: strings.Join(k.GPU.Parents, " ")}
				if k.GPU.NUMANode != nil {
					g.NUMA = *k.GPU.NUMANode
				}
				for _, n := range k.Neighbours {
					g.Neighbours = append(g.Neighbours, n.Address)
				}
				for _, b := range k.BARs {
					g.LargestGiB = max(g.LargestGiB, b.Bytes>>30)
				}
				got = append(got, g)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || len(s.Unreadable) > 0 {
				t.Errorf("unreadable %v; cards:\n%s", s.Unreadable, diff)
			}
		})
	}
}

func TestSwitchesAreNoCards(t *testing.T) {
	s := read(t, sysfstest.DGXH100(t))
	if len(s.Cards) != 8 || len(s.Devices) != 8*3+4 {
		t.Fatalf("%d cards among %d devices, want 8 among 28", len(s.Cards), len(s.Devices))
	}
	for i, c := range s.Cards {
		if c.GPU.Device != "2330" || len(c.Functions) != 1 || len(c.Neighbours) > 0 || len(c.GPU.Parents) != 2 || *c.GPU.NUMANode != i/4 {
			t.Errorf("card %d: %+v", i, c)
		}
	}
}

func TestEachFunctionKeepsItsDriver(t *testing.T) {
	c := read(t, sysfstest.FourFunctions(t)).Cards[0]
	var drivers []string
	for _, f := range c.Functions {
		drivers = append(drivers, f.Driver)
	}
	if want := []string{"nvidia", "snd_hda_intel", "xhci_hcd", "nvidia-gpu"}; !slices.Equal(drivers, want) {
		t.Errorf("drivers %v, want %v", drivers, want)
	}
	if want := []pci.BAR{{Index: 0, Bytes: 16 << 20}, {Index: 1, Bytes: 256 << 20, Prefetch: true}, {Index: 3, Bytes: 32 << 20, Prefetch: true}}; !cmp.Equal(want, c.BARs) {
		t.Error(cmp.Diff(want, c.BARs))
	}
}

func TestWhatCannotBeReadHidesNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		spoil      func(*sysfstest.Tree)
		unreadable string
		cards      int
		incomplete bool // the first card left
	}{
		"no class":                 {func(m *sysfstest.Tree) { m.Remove("sys/bus/pci/devices/0000:3b:00.0/class") }, "0000:3b:00.0", 1, false},
		"a class that is none":     {func(m *sysfstest.Tree) { m.File("sys/bus/pci/devices/0000:3b:00.0/class", "0xZZ") }, "0000:3b:00.0", 1, false},
		"an id that is markup":     {func(m *sysfstest.Tree) { m.File("sys/bus/pci/devices/0000:3b:00.0/device", "<b>") }, "0000:3b:00.0", 1, false},
		"a vendor of nothing":      {func(m *sysfstest.Tree) { m.File("sys/bus/pci/devices/0000:3b:00.0/vendor", "") }, "0000:3b:00.0", 1, false},
		"a node out of range":      {func(m *sysfstest.Tree) { m.File("sys/bus/pci/devices/0000:3b:00.0/numa_node", "99999999999\n") }, "0000:3b:00.0", 1, false},
		"an entry that is no slot": {func(m *sysfstest.Tree) { m.File("sys/bus/pci/devices/lost+found/x", "") }, "lost+found", 2, false},
		"an unreadable function":   {func(m *sysfstest.Tree) { m.Remove("sys/bus/pci/devices/0000:3b:00.2/vendor") }, "0000:3b:00.2", 2, true},
		"windows of nonsense":      {func(m *sysfstest.Tree) { m.File("sys/bus/pci/devices/0000:3b:00.0/resource", "1 2") }, "0000:3b:00.0", 2, false},
		"a group that is no number": {func(m *sysfstest.Tree) {
			m.Remove("sys/bus/pci/devices/0000:3b:00.0/iommu_group")
			m.Link("sys/bus/pci/devices/0000:3b:00.0/iommu_group", "sys/kernel/iommu_groups/none")
		}, "0000:3b:00.0", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			tree := sysfstest.FourFunctions(t)
			c.spoil(tree)
			s := read(t, tree)
			if len(s.Unreadable) != 1 || s.Unreadable[0].Name != c.unreadable || s.Unreadable[0].Err == nil || len(s.Cards) != c.cards {
				t.Fatalf("unreadable %v, %d cards; want %s, %d", s.Unreadable, len(s.Cards), c.unreadable, c.cards)
			}
			if got := s.Cards[0].Incomplete; got != c.incomplete {
				t.Errorf("incomplete %v, want %v", got, c.incomplete)
			}
		})
	}
}

func TestVirtualFunctionsAreNoCards(t *testing.T) {
	tree := sysfstest.DualL40S(t)
	tree.Add(sysfstest.Device{Address: "0000:16:00.4", Above: "pci0000:16", ID: "10de:26b9", Class: "030200", Group: 90, NUMA: 0})
	tree.Link("sys/bus/pci/devices/0000:16:00.4/physfn", "sys/devices/pci0000:16/0000:16:00.0")
	s := read(t, tree)
	if len(s.Cards) != 8 || len(s.Cards[0].Functions) != 1 {
		t.Errorf("%d cards, the first of %d functions; want 8 of 1", len(s.Cards), len(s.Cards[0].Functions))
	}
}

func TestHostWithoutABus(t *testing.T) {
	if _, err := pci.Read(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that there is no such folder", err)
	}
}

// Whatever sysfs holds, the bus is read without a panic, and what was read is
// sound.
func FuzzDevice(f *testing.F) {
	f.Add("0x10de", "0x2330", "0x030200", "0", "0x0 0x0 0x0\n", "flr bus")
	f.Add("", "", "", "-1", "", "")
	f.Add("0x10de", "0xffffffff", "0x12000000", "18446744073709551616", "0xffffffffffffffff 0x0 0x200\n0 1 2", "\x00")
	f.Fuzz(func(t *testing.T, vendor, device, class, numa, resource, resets string) {
		tree := sysfstest.New(t)
		home := "sys/bus/pci/devices/0000:3b:00.0/"
		for name, text := range map[string]string{"vendor": vendor, "device": device, "class": class, "numa_node": numa, "resource": resource, "reset_method": resets} {
			tree.File(home+name, text)
		}
		s := read(t, tree)
		if len(s.Devices) == 0 && len(s.Unreadable) == 0 {
			t.Error("the device is neither described nor reported as unreadable")
		}
		for _, d := range s.Devices {
			if len(d.Vendor) != 4 || len(d.Device) != 4 || len(d.Class) != 4 || (d.NUMANode != nil && *d.NUMANode < 0) {
				t.Errorf("%+v", d)
			}
		}
	})
}

func TestReadsTheMachineItRunsOn(t *testing.T) {
	if _, err := os.Stat(filepath.Join("/", pci.Devices)); err != nil {
		t.Skip("this machine shows no PCI bus")
	}
	if s, err := pci.Read("/"); err != nil || len(s.Devices) == 0 || len(s.Unreadable) > 0 {
		t.Errorf("%d devices, unreadable %v, %v", len(s.Devices), s.Unreadable, err)
	}
}
