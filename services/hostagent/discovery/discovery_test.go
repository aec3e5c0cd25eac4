package discovery_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services/agentapi"
	"berth/services/hostagent/discovery"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/pci"
	"berth/services/hostagent/sysfstest"
)

// library is NVIDIA's as a test wants it.
type library struct {
	cards map[pci.Address]discovery.Seen
	err   error
	asked int
}

func (l *library) Cards(context.Context) (map[pci.Address]discovery.Seen, error) {
	l.asked++
	return l.cards, l.err
}

// site is a machine with an agent's state beside it.
type site struct {
	t    *testing.T
	tree *sysfstest.Tree
	lib  *library
	opt  discovery.Options
	host *discovery.Host
}

func newSite(t *testing.T, tree *sysfstest.Tree) *site {
	t.Helper()
	s := &site{t: t, tree: tree, lib: &library{cards: map[pci.Address]discovery.Seen{}}}
	s.opt = discovery.Options{Name: "gpu-par-014", Root: machine.Root(tree.Root), Library: s.lib, Identities: filepath.Join(t.TempDir(), "cards.json")}
	s.restart()
	return s
}

func (s *site) restart() {
	s.t.Helper()
	host, err := discovery.New(s.opt)
	if err != nil {
		s.t.Fatal(err)
	}
	s.host = host
}

func (s *site) look() discovery.Found {
	s.t.Helper()
	found, err := s.host.Look(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// keys gives the cards' keys by address.
func (s *site) keys() map[string]string {
	out := map[string]string{}
	for _, c := range s.look().Report.Cards {
		out[c.PCIAddress] = c.Key
	}
	return out
}

func (s *site) wantKeys(doing string, want map[string]string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.keys()); diff != "" {
		s.t.Errorf("%s: %s", doing, diff)
	}
}

// driver gives the L40S of SharedGroup at 0000:61:00.0 another driver.
func (s *site) driver(name string) {
	const link = "sys/devices/pci0000:60/0000:61:00.0/driver"
	s.tree.Remove(link)
	s.tree.Link(link, "sys/bus/pci/drivers/"+name)
}

// alone is a host with one card, at 0000:61:00.0.
func alone(t *testing.T) *site {
	tree := sysfstest.SharedGroup(t)
	tree.Remove("sys/bus/pci/devices/0000:01:00.0")
	return newSite(t, tree)
}

func TestReport(t *testing.T) {
	s := newSite(t, sysfstest.FourFunctions(t))
	s.lib.cards["0000:3b:00.0"] = discovery.Seen{Serial: "1654420198833", UUID: "GPU-1", VBIOS: "90.02", Firmware: "550.54"}
	s.opt.Config = discovery.Config{
		Exclude: []string{"0000:5e:00.1"}, ReserveVCores: 4, ReserveMemoryMiB: 8 << 10,
		Generations: []discovery.Generation{{Name: "v6", CPU: "AMD*"}, {Name: "v7", CPU: "Intel(R) Xeon(R) Platinum 84*"}, {Name: "v8", CPU: "*"}},
	}
	s.restart()
	found := s.look()
	group, node := 0, 0
	card := agentapi.CardReport{
		Key: "1654420198833", Serial: "1654420198833", UUID: "GPU-1", VBIOS: "90.02", Firmware: "550.54",
		VendorID: "10de", DeviceID: "1e30", SubsystemID: "10de:129f", PCIAddress: "0000:3b:00.0", IOMMUGroup: &group, NUMANode: &node,
		Functions: []agentapi.Function{
			{Address: "0000:3b:00.0", Class: "0300", Driver: "nvidia"}, {Address: "0000:3b:00.1", Class: "0403", Driver: "snd_hda_intel"},
			{Address: "0000:3b:00.2", Class: "0c03", Driver: "xhci_hcd"}, {Address: "0000:3b:00.3", Class: "0c80", Driver: "nvidia-gpu"},
		},
		Parents: []string{"pci0000:3b"},
	}
	r := found.Report
	if diff := cmp.Diff([]agentapi.CardReport{card}, r.Cards); diff != "" {
		t.Error(diff)
	}
	if r.Name != "gpu-par-014" || r.Generation != "v7" || r.VCores != 28 || r.MemoryMiB != 120<<10 || r.Kernel != "6.1.0-28-amd64" || len(r.NUMA) != 1 || r.VMs == nil {
		t.Errorf("the host is %+v", r)
	}
	if len(r.Findings) == 0 || found.Partial || len(found.Cards["1654420198833"].Functions) != 4 {
		t.Errorf("found %+v", found)
	}
}

func TestIdentityOutlivesVFIOAndRestarts(t *testing.T) {
	s := alone(t)
	s.lib.cards["0000:61:00.0"] = discovery.Seen{Serial: "1", UUID: "GPU-1"}
	s.wantKeys("on the host's driver", map[string]string{"0000:61:00.0": "1"})
	s.driver("vfio-pci")
	s.lib.cards = nil
	s.wantKeys("on vfio", map[string]string{"0000:61:00.0": "1"})
	s.restart()
	s.wantKeys("after a restart", map[string]string{"0000:61:00.0": "1"})
	if c := s.look().Report.Cards[0]; c.Serial != "1" || c.UUID != "GPU-1" {
		t.Errorf("serial and UUID are forgotten: %+v", c)
	}
	s.driver("nvidia")
	s.lib.cards = map[pci.Address]discovery.Seen{"0000:61:00.0": {Serial: "2", UUID: "GPU-2"}}
	s.wantKeys("another card in the slot", map[string]string{"0000:61:00.0": "2"})
}

func TestCardThatMovesIsTheSame(t *testing.T) {
	s := newSite(t, sysfstest.DualL40S(t))
	s.lib.cards = map[pci.Address]discovery.Seen{"0000:16:00.0": {Serial: "1"}, "0000:26:00.0": {Serial: "2"}}
	first := s.keys()
	if first["0000:16:00.0"] != "1" || first["0000:26:00.0"] != "2" || first["0000:36:00.0"] != "10de:26b9:10de:1851@0000:36:00" {
		t.Fatalf("keys are %v", first)
	}
	s.lib.cards = map[pci.Address]discovery.Seen{"0000:16:00.0": {Serial: "2"}, "0000:26:00.0": {Serial: "1"}}
	s.restart()
	if swapped := s.keys(); swapped["0000:16:00.0"] != "2" || swapped["0000:26:00.0"] != "1" {
		t.Errorf("after a swap the keys are %v", swapped)
	}
}

func TestCardThatWasFirstSeenOnVFIOKeepsItsKey(t *testing.T) {
	s := alone(t)
	s.driver("vfio-pci")
	place := map[string]string{"0000:61:00.0": "10de:26b9:@0000:61:00"}
	s.wantKeys("never on the host's driver", place)
	s.driver("nvidia")
	s.lib.cards["0000:61:00.0"] = discovery.Seen{Serial: "1"}
	s.wantKeys("on it", place)
	s.tree.Remove("sys/bus/pci/devices/0000:61:00.0")
	s.wantKeys("gone", map[string]string{})
	s.tree.Link("sys/bus/pci/devices/0000:61:00.0", "sys/devices/pci0000:60/0000:61:00.0")
	s.lib.cards["0000:61:00.0"] = discovery.Seen{Serial: "9"}
	s.restart()
	s.wantKeys("another one in its place", map[string]string{"0000:61:00.0": "9"})
}

func TestSerialOfNothing(t *testing.T) {
	for _, serial := range []string{"", "0", "000000", "N/A", "[N/A]"} {
		s := alone(t)
		s.lib.cards["0000:61:00.0"] = discovery.Seen{Serial: serial, UUID: "GPU-7"}
		s.wantKeys("serial "+serial, map[string]string{"0000:61:00.0": "GPU-7"})
	}
}

func TestLibraryIsAskedNoMoreThanNeeded(t *testing.T) {
	s := alone(t)
	for range 3 {
		s.look()
	}
	if s.lib.asked != 1 {
		t.Errorf("asked %d times while nothing changed, want once", s.lib.asked)
	}
	s.driver("vfio-pci")
	s.look()
	s.driver("nvidia")
	s.look()
	if s.lib.asked != 2 {
		t.Errorf("asked %d times after a card came back, want twice", s.lib.asked)
	}
}

func TestLibraryThatFailsIsAskedAgainAndBreaksNothing(t *testing.T) {
	for name, err := range map[string]error{"hangs": context.DeadlineExceeded, "is missing": discovery.ErrNoLibrary} {
		s := alone(t)
		s.lib.err = err
		s.look()
		found := s.look().Report
		if s.lib.asked != 2 || len(found.Cards) != 1 {
			t.Errorf("a library that %s was asked %d times, cards: %d", name, s.lib.asked, len(found.Cards))
		}
		if i := slices.IndexFunc(found.Findings, func(f agentapi.Finding) bool { return f.Code == agentapi.FindingNVMLMissing && !f.OK }); i < 0 {
			t.Errorf("a library that %s is no finding", name)
		}
	}
}

func TestUnreadableDeviceMakesTheLookPartial(t *testing.T) {
	s := newSite(t, sysfstest.DualL40S(t))
	s.tree.File("sys/devices/pci0000:26/0000:26:00.0/vendor", "")
	if found := s.look(); !found.Partial || len(found.Report.Cards) != 7 {
		t.Errorf("partial is %t with %d cards, want 7 and partial", found.Partial, len(found.Report.Cards))
	}
}

func TestNothingCanBeSeen(t *testing.T) {
	for _, missing := range []string{"sys/bus/pci/devices", "proc/cpuinfo"} {
		s := alone(t)
		s.tree.Remove(missing)
		if found, err := s.host.Look(t.Context()); err == nil {
			t.Errorf("without %s: %+v and no error", missing, found)
		}
	}
}

func TestIdentitiesThatCannotBeKept(t *testing.T) {
	s := alone(t)
	if err := os.WriteFile(s.opt.Identities, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := discovery.New(s.opt); err == nil || !strings.Contains(err.Error(), "which card is which") {
		t.Errorf("a broken file: error %v", err)
	}
	s.opt.Identities = filepath.Join(t.TempDir(), "not", "there")
	s.restart()
	if _, err := s.host.Look(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that can't be written: error %v", err)
	}
}
