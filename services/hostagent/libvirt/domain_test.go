package libvirt

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/google/go-cmp/cmp"
	"libvirt.org/go/libvirtxml"

	"berth/services/agentapi"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/pci"
	"berth/services/hostagent/sysfstest"
)

// cardsOf reads the cards of a tree, by the address of their GPU.
func cardsOf(t *testing.T, tree *sysfstest.Tree) (map[string]pci.Card, []machine.Node) {
	t.Helper()
	bus, err := pci.Read(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := machine.Read(machine.Root(tree.Root))
	if err != nil {
		t.Fatal(err)
	}
	cards := map[string]pci.Card{}
	for _, c := range bus.Cards {
		cards[string(c.GPU.Address)] = c
	}
	return cards, facts.Nodes
}

func noted(cards map[string]pci.Card, keys ...string) []notedCard {
	var out []notedCard
	for _, k := range keys {
		out = append(out, notedCard{Key: k, Functions: addresses(cards[k])})
	}
	return out
}

func newDomain(t *testing.T, conf Config) *domain {
	t.Helper()
	conf, err := conf.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	dom := (&Driver{conf: conf}).blank("i-c0ffee01", disks{disk: "/pool/i-c0ffee01.qcow2", seed: "/pool/i-c0ffee01-seed.iso"})
	dom.setSize(agentapi.DesiredVM{VCores: 16, MemoryMiB: 64 << 10})
	return dom
}

func hole(def libvirtxml.Domain) uint64 {
	for _, c := range def.Devices.Controllers {
		if c.PCI != nil && c.PCI.Hole64 != nil {
			return c.PCI.Hole64.Size >> 20
		}
	}
	return 0
}

func TestDefinitionWithCards(t *testing.T) {
	cards, nodes := cardsOf(t, sysfstest.DualL40S(t))
	for name, c := range map[string]struct {
		keys   []string
		vcores int
		cpus   string
		node   string
		gib    uint64 // of the window: at least twice what the cards have
	}{
		"one card":                  {[]string{"0000:16:00.0"}, 16, "0-63", "0", 256},
		"two on the second node":    {[]string{"0000:66:00.0", "0000:76:00.0"}, 16, "64-127", "1", 512},
		"cards of both nodes":       {[]string{"0000:16:00.0", "0000:66:00.0"}, 16, "", "", 512},
		"a VM larger than the node": {[]string{"0000:16:00.0"}, 100, "", "", 256},
		"no card":                   {nil, 16, "", "", 0},
	} {
		dom := newDomain(t, Config{Network: "default"})
		dom.setSize(agentapi.DesiredVM{VCores: c.vcores, MemoryMiB: 64 << 10})
		dom.setCards(noted(cards, c.keys...), cards, nodes)
		node := ""
		if dom.def.NUMATune != nil {
			node = dom.def.NUMATune.Memory.Nodeset
		}
		if dom.def.VCPU.CPUSet != c.cpus || node != c.node || hole(dom.def) != c.gib {
			t.Errorf("%s: processors %q, node %q, window %d GiB; want %q, %q, %d", name, dom.def.VCPU.CPUSet, node, hole(dom.def), c.cpus, c.node, c.gib)
		}
		if got := hostdevs(dom.def); len(got) != len(c.keys) {
			t.Errorf("%s: host devices %v", name, got)
		}
		if (dom.def.QEMUCommandline != nil) != (c.gib > 0) {
			t.Errorf("%s: what OVMF is told: %+v", name, dom.def.QEMUCommandline)
		}
	}
}

func TestCardsComeAndGoWithAllFunctions(t *testing.T) {
	cards, nodes := cardsOf(t, sysfstest.FourFunctions(t))
	dom := newDomain(t, Config{})
	other := hostdev("0000:c1:00.0")
	dom.def.Devices.Hostdevs = append(dom.def.Devices.Hostdevs, other)
	both := noted(cards, "0000:3b:00.0", "0000:5e:00.0")
	dom.setCards(both, cards, nodes)
	if got := hostdevs(dom.def); len(got) != 9 || got[0] != "0000:c1:00.0" || got[4] != "0000:3b:00.3" {
		t.Errorf("host devices %v, want another's and both cards with four functions each", got)
	}
	dom.setCards(both[1:], cards, nodes)
	if args := dom.def.QEMUCommandline.Args; len(args) != 2 || args[1].Value != ovmfWindow+"65536" {
		t.Errorf("OVMF is told %v", args)
	}
	want := []pci.Address{"0000:c1:00.0", "0000:5e:00.0", "0000:5e:00.1", "0000:5e:00.2", "0000:5e:00.3"}
	if diff := cmp.Diff(want, hostdevs(dom.def)); diff != "" {
		t.Error(diff)
	}
	dom.setCards(nil, cards, nodes)
	if diff := cmp.Diff([]pci.Address{"0000:c1:00.0"}, hostdevs(dom.def)); diff != "" {
		t.Error(diff)
	}
}

func TestAddressBeyondDomain0000(t *testing.T) {
	for _, at := range []pci.Address{"10000:e1:00.0", "0000:00:1f.7"} {
		def := libvirtxml.Domain{Devices: &libvirtxml.DomainDeviceList{Hostdevs: []libvirtxml.DomainHostdev{hostdev(at)}}}
		if diff := cmp.Diff([]pci.Address{at}, hostdevs(def)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestMetadataOfOthersStays(t *testing.T) {
	n := note{Run: 3, Reboots: 1, Stopping: 3, Ended: "guest", Cards: []notedCard{{Key: `a<b&"c`, Functions: []pci.Address{"0000:3b:00.0", "0000:3b:00.1"}}}}
	element, err := n.element()
	if err != nil {
		t.Fatal(err)
	}
	before, after := "<os:id xmlns:os='urn:os'>debian<b/></os:id>\n", "<x:y xmlns:x='urn:berth:agent:10'/>"
	got, rest, err := splitMetadata(before + element + after)
	if err != nil || rest != before+after {
		t.Errorf("rest is %q, %v", rest, err)
	}
	got.XMLName, got.Xmlns = n.XMLName, n.Xmlns
	if diff := cmp.Diff(n, *got); diff != "" {
		t.Error(diff)
	}
	if got, rest, err := splitMetadata(before); got != nil || rest != before || err != nil {
		t.Errorf("without a note: %+v, %q, %v", got, rest, err)
	}
	if _, _, err := splitMetadata("<berth:vm xmlns:berth='urn:berth:agent:1' run='x'/>"); err == nil {
		t.Error("a note that can't be read is no error")
	}
}

func TestSeed(t *testing.T) {
	for _, want := range []agentapi.DesiredVM{
		{ID: "i-c0ffee01", SSHKey: "ssh-ed25519 AAAA me@here", UserData: "#!/bin/sh\necho \"hello\"\n"},
		{ID: "i-c0ffee02"},
	} {
		raw, err := seedImage(want)
		if err != nil {
			t.Fatal(err)
		}
		image := filepath.Join(t.TempDir(), "seed.iso")
		if err := os.WriteFile(image, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(image)
		if err != nil {
			t.Fatal(err)
		}
		fs, err := iso9660.Read(file.New(f, true), int64(len(raw)), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if label := strings.TrimSpace(fs.Label()); label != "cidata" {
			t.Errorf("label %q, want cidata", label)
		}
		meta, user := content(t, fs, "meta-data"), content(t, fs, "user-data")
		if !strings.Contains(meta, `"instance-id":"`+want.ID+`"`) || strings.Contains(meta, "public-keys") != (want.SSHKey != "") || !strings.Contains(meta, want.SSHKey) {
			t.Errorf("meta-data %s", meta)
		}
		if user != want.UserData && user != "#cloud-config\n{}\n" {
			t.Errorf("user-data %q", user)
		}
		_ = f.Close()
	}
}

func content(t *testing.T, fs *iso9660.FileSystem, name string) string {
	t.Helper()
	f, err := fs.OpenFile("/"+name, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestConfig(t *testing.T) {
	if c, err := (Config{}).WithDefaults(); err != nil || c.Pool != "berth" || c.Firmware != "efi" || c.Socket == "" || c.URI == "" {
		t.Errorf("defaults are %+v, %v", c, err)
	}
	for want, c := range map[string]Config{
		`"efi" or "bios"`: {Firmware: "uboot"}, "exclude each other": {Network: "a", Bridge: "b"}, "0 or more": {DiskGiB: -1},
	} {
		if _, err := c.WithDefaults(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c, err, want)
		}
	}
}
