package readiness_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/services/agentapi"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/pci"
	"berth/services/hostagent/readiness"
	"berth/services/hostagent/sysfstest"
)

func look(t *testing.T, tree *sysfstest.Tree) []agentapi.Finding {
	t.Helper()
	root := machine.Root(tree.Root)
	bus, err := pci.Read(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := machine.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return readiness.Look(readiness.Host{Root: root, Facts: facts, Bus: bus, Cards: bus.Cards, Generation: "v7"})
}

func find(t *testing.T, list []agentapi.Finding, code string) agentapi.Finding {
	t.Helper()
	for _, f := range list {
		if f.Code == code {
			return f
		}
	}
	t.Fatalf("no check %s", code)
	return agentapi.Finding{}
}

func TestHostsThatAreSetUpWellAreReady(t *testing.T) {
	for name, tree := range map[string]*sysfstest.Tree{
		"DGX H100": sysfstest.DGXH100(t), "8 L40S": sysfstest.DualL40S(t), "2 A100": sysfstest.A100Bridge(t), "no card": empty(t),
	} {
		found := look(t, tree)
		if !readiness.Ready(found) {
			t.Errorf("%s is not ready: %+v", name, found)
		}
		for _, f := range found {
			if !f.OK || f.Detail == "" || f.Fix != "" {
				t.Errorf("%s: %+v, want a sentence and nothing to fix", name, f)
			}
		}
	}
}

func empty(t *testing.T) *sysfstest.Tree {
	tree := sysfstest.A100Bridge(t)
	tree.Remove("sys/bus/pci/devices/0000:21:00.0")
	tree.Remove("sys/bus/pci/devices/0000:41:00.0")
	return tree
}

// change makes a well set up host into one with a fault.
func change(tree *sysfstest.Tree, do func(*sysfstest.Tree)) *sysfstest.Tree {
	do(tree)
	return tree
}

func TestFindings(t *testing.T) {
	const l40s = "sys/devices/pci0000:16/0000:16:00.0"
	noIOMMU := func(tree *sysfstest.Tree) { tree.Remove("sys/class/iommu") }
	for name, c := range map[string]struct {
		tree        *sysfstest.Tree
		code        string
		detail, fix string // parts of
		warning     bool
	}{
		"IOMMU off on AMD": {change(sysfstest.A100Bridge(t), func(tree *sysfstest.Tree) {
			noIOMMU(tree)
			tree.File("proc/cmdline", "ro quiet")
		}), agentapi.FindingIOMMUOff, "IOMMU is off", "AMD-Vi", false},
		"IOMMU off on Intel": {change(sysfstest.DualL40S(t), func(tree *sysfstest.Tree) {
			noIOMMU(tree)
			tree.File("proc/cmdline", "ro quiet")
		}), agentapi.FindingIOMMUOff, "IOMMU is off", "intel_iommu=on iommu=pt", false},
		"IOMMU off in the firmware": {change(sysfstest.DualL40S(t), noIOMMU), agentapi.FindingIOMMUOff, "IOMMU is off", "switch on VT-d", false},
		"IOMMU told to be off": {change(sysfstest.A100Bridge(t), func(tree *sysfstest.Tree) {
			noIOMMU(tree)
			tree.File("proc/cmdline", "ro amd_iommu=off quiet")
		}), agentapi.FindingIOMMUOff, "IOMMU is off", "Take amd_iommu=off", false},
		"no vfio-pci": {change(sysfstest.DualL40S(t), func(tree *sysfstest.Tree) { tree.Remove("sys/bus/pci/drivers/vfio-pci") }),
			agentapi.FindingVFIOMissing, "has not loaded vfio-pci.", "modprobe -a vfio-pci,", false},
		"no vfio": {change(sysfstest.DualL40S(t), func(tree *sysfstest.Tree) {
			tree.Remove("sys/bus/pci/drivers/vfio-pci")
			tree.Remove("sys/module/vfio_iommu_type1")
		}), agentapi.FindingVFIOMissing, "vfio-pci and vfio_iommu_type1", "modprobe -a vfio-pci vfio_iommu_type1", false},
		"nouveau": {change(sysfstest.DualL40S(t), func(tree *sysfstest.Tree) {
			tree.Remove(l40s + "/driver")
			tree.Link(l40s+"/driver", "sys/bus/pci/drivers/nouveau")
		}), agentapi.FindingNouveauBound, "nouveau has 0000:16:00.0", "blacklist nouveau", false},
		"group with a card that the host does not need": {change(sysfstest.SharedGroup(t), func(tree *sysfstest.Tree) { tree.Remove("proc/net/route") }),
			agentapi.FindingGroup, "0000:01:00.0 shares group 14 with 0000:02:00.0 (driver mlx5_core)", "ACS", false},
		"group with the network card": {sysfstest.SharedGroup(t), agentapi.FindingGroupCritical,
			"0000:01:00.0 shares a group with 0000:02:00.0, the network card of the default route (eno1)", "another slot", false},
		"group with the boot disk's controller": {sysfstest.VMD(t), agentapi.FindingGroupCritical, "10000:e1:00.0 shares a group with 0000:c0:05.5, the disk of /",
			"another slot", false},
		"card without a group": {change(sysfstest.DualL40S(t), func(tree *sysfstest.Tree) { tree.Remove(l40s + "/iommu_group") }),
			agentapi.FindingGroup, "0000:16:00.0 has no group", "exclude", false},
		"process on a card": {change(sysfstest.DualL40S(t), func(tree *sysfstest.Tree) {
			tree.File("proc/4242/comm", "nvidia-persiste\n")
			tree.File("proc/driver/nvidia/gpus/0000:16:00.0/information", "Device Minor: \t 0\n")
			tree.File("proc/4242/fd/.keep", "")
			if err := os.Symlink("/dev/nvidia0", filepath.Join(tree.Root, "proc/4242/fd/3")); err != nil {
				t.Fatal(err)
			}
		}), agentapi.FindingDriverInUse, "nvidia-persiste (pid 4242) uses 0000:16:00.0", "nvidia-persistenced", true},
		"no reset": {change(sysfstest.DualL40S(t), func(tree *sysfstest.Tree) {
			tree.Remove(l40s + "/reset_method")
			tree.Remove(l40s + "/reset")
		}), agentapi.FindingNoReset, "0000:16:00.0", "quarantined", true},
		"a device that has fallen off the bus": {change(sysfstest.DualL40S(t), func(tree *sysfstest.Tree) { tree.File(l40s+"/vendor", "0xff\n") }),
			agentapi.FindingUnreadable, `"0000:16:00.0"`, "dmesg", true},
	} {
		found := look(t, c.tree)
		f := find(t, found, c.code)
		if f.OK || f.Warning != c.warning || !strings.Contains(f.Detail, c.detail) || !strings.Contains(f.Fix, c.fix) {
			t.Errorf("%s: %+v, want %q and %q, a warning: %t", name, f, c.detail, c.fix, c.warning)
		}
		if readiness.Ready(found) != c.warning {
			t.Errorf("%s: ready is %t", name, !c.warning)
		}
	}
}

func TestNeighbourThatYieldedIsNoFinding(t *testing.T) {
	for _, driver := range []string{"", "vfio-pci", "pci-stub", "mlx5_vfio_pci"} {
		tree := sysfstest.SharedGroup(t)
		tree.Remove("proc/net/route")
		home := "sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0/driver"
		tree.Remove(home)
		if driver != "" {
			tree.Link(home, "sys/bus/pci/drivers/"+driver)
		}
		if f := find(t, look(t, tree), agentapi.FindingGroup); !f.OK {
			t.Errorf("driver %q of the neighbour: %+v", driver, f)
		}
	}
}

func TestGenerationAndLibrary(t *testing.T) {
	h := readiness.Host{Root: machine.Root(sysfstest.DualL40S(t).Root), Facts: machine.Facts{CPUModel: "Xeon 9"}}
	if f := find(t, readiness.Look(h), agentapi.FindingGeneration); f.OK || !f.Warning || !strings.Contains(f.Detail, `"Xeon 9"`) {
		t.Errorf("%+v, want a warning that names the processor", f)
	}
	for _, f := range readiness.Look(h) {
		if f.Code == agentapi.FindingNVMLMissing {
			t.Errorf("a library that was not asked: %+v", f)
		}
	}
	h.Library.Asked = true
	if f := find(t, readiness.Look(h), agentapi.FindingNVMLMissing); !f.OK {
		t.Errorf("a library that answered: %+v", f)
	}
	h.Library.Err = errors.New("the library was not found")
	if f := find(t, readiness.Look(h), agentapi.FindingNVMLMissing); f.OK || !f.Warning || f.Detail != "The library was not found." {
		t.Errorf("a library that is missing: %+v", f)
	}
}

func TestLibvirt(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "libvirt-sock")
	if f := readiness.Libvirt(t.Context(), socket); f.OK || f.Warning || !strings.Contains(f.Fix, "libvirtd") {
		t.Errorf("without a daemon: %+v", f)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if f := readiness.Libvirt(t.Context(), socket); !f.OK || f.Fix != "" {
		t.Errorf("with a daemon: %+v", f)
	}
}
