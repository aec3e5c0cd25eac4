package machine_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services/hostagent/machine"
	"berth/services/hostagent/sysfstest"
)

func TestFacts(t *testing.T) {
	got, err := machine.Read(machine.Root(sysfstest.DualL40S(t).Root))
	if err != nil {
		t.Fatal(err)
	}
	want := machine.Facts{
		CPUVendor: "GenuineIntel", CPUModel: "Intel(R) Xeon(R) Platinum 8480C", Threads: 128, MemoryMiB: 1 << 20,
		Nodes: []machine.Node{
			{ID: 0, Socket: 0, Threads: 64, MemoryMiB: 512 << 10, CPUs: "0-63"},
			{ID: 1, Socket: 1, Threads: 64, MemoryMiB: 512 << 10, CPUs: "64-127"},
		},
		Kernel: "6.1.0-28-amd64", CommandLine: "BOOT_IMAGE=/vmlinuz root=/dev/nvme0n1p2 ro intel_iommu=on iommu=pt", IOMMU: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHugepagesAreCountedInMiB(t *testing.T) {
	tree := sysfstest.VMD(t)
	tree.File("proc/meminfo", "MemTotal: 1048576 kB\nHugePages_Total: 8\nHugepagesize: 1048576 kB\n")
	if f, err := machine.Read(machine.Root(tree.Root)); err != nil || f.HugepagesMiB != 8192 || f.MemoryMiB != 1024 {
		t.Errorf("%+v, %v; want 8192 MiB in huge pages of 1024", f, err)
	}
}

func TestMachineThatCannotBeRead(t *testing.T) {
	for _, missing := range []string{"proc/cpuinfo", "proc/meminfo"} {
		tree := sysfstest.VMD(t)
		tree.Remove(missing)
		if f, err := machine.Read(machine.Root(tree.Root)); err == nil {
			t.Errorf("without %s: %+v and no error", missing, f)
		}
	}
}

func TestOddListsOfProcessors(t *testing.T) {
	for text, want := range map[string]int{"0-3,8,10-11\n": 7, "": 0, "x": 0, "0-": 0, "5-2": 0, "0-99999999": 8192, "1,x": 1} {
		tree := sysfstest.VMD(t)
		tree.File("sys/devices/system/node/node0/cpulist", text)
		f, err := machine.Read(machine.Root(tree.Root))
		if err != nil || f.Nodes[0].Threads != want {
			t.Errorf("%q: %d, %v; want %d", text, f.Nodes[0].Threads, err, want)
		}
	}
}

func TestCritical(t *testing.T) {
	bonded := sysfstest.DualL40S(t)
	nic := "sys/devices/pci0000:00/0000:00:1f.6/net/eth0"
	bonded.File(nic+"/address", "")
	bonded.Link("sys/devices/virtual/net/bond0/lower_eth0", nic)
	bonded.Link("sys/class/net/bond0", "sys/devices/virtual/net/bond0")
	bonded.File("proc/net/route", "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\nbond0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\n")

	mapped := sysfstest.DualL40S(t)
	disk := "sys/devices/pci0000:00/0000:00:17.0/ata1/block/sda/sda2"
	mapped.File(disk+"/dev", "8:2\n")
	mapped.Link("sys/devices/virtual/block/dm-0/slaves/sda2", disk)
	mapped.Link("sys/dev/block/253:0", "sys/devices/virtual/block/dm-0")
	mapped.File("proc/self/mountinfo", "22 1 253:0 / / rw - ext4 /dev/mapper/root rw\n23 22 0:21 / /proc rw - proc rw\n")

	route6 := sysfstest.SharedGroup(t)
	route6.Remove("proc/net/route")
	zeros := "00000000000000000000000000000000"
	route6.File("proc/net/ipv6_route", zeros+" 00 "+zeros+" 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eno1\n")

	for name, c := range map[string]struct {
		tree    *sysfstest.Tree
		address string
		why     string
	}{
		"default route":            {sysfstest.SharedGroup(t), "0000:02:00.0", "the network card of the default route (eno1)"},
		"default route of IPv6":    {route6, "0000:02:00.0", "the network card of the default route (eno1)"},
		"default route by a bond":  {bonded, "0000:00:1f.6", "the network card of the default route (bond0)"},
		"boot disk":                {sysfstest.VMD(t), "10000:e2:00.0", "the disk of /"},
		"boot disk behind a layer": {mapped, "0000:00:17.0", "the disk of /"},
		"controller above it":      {sysfstest.VMD(t), "0000:c0:05.5", "the disk of /"},
		"card beside it":           {sysfstest.VMD(t), "10000:e1:00.0", ""},
		"card of a shared group":   {sysfstest.SharedGroup(t), "0000:01:00.0", ""},
		"nothing to be known from": {sysfstest.DualL40S(t), "0000:16:00.0", ""},
	} {
		if got := machine.Critical(machine.Root(c.tree.Root))[c.address]; got != c.why {
			t.Errorf("%s: %s is needed for %q, want %q", name, c.address, got, c.why)
		}
	}
}

func TestHolders(t *testing.T) {
	tree := sysfstest.DualL40S(t)
	for pid, node := range map[int]string{4242: "/dev/nvidia3", 4243: "/dev/nvidia4", 4244: "/dev/null"} {
		proc := fmt.Sprintf("proc/%d", pid)
		tree.File(proc+"/comm", fmt.Sprintf("python%d\n", pid))
		tree.File(proc+"/fd/.keep", "")
		if err := os.Symlink(node, tree.Root+"/"+proc+"/fd/7"); err != nil {
			t.Fatal(err)
		}
	}
	tree.File("proc/driver/nvidia/gpus/0000:46:00.0/information", "Model: \t\t NVIDIA L40S\nDevice Minor: \t 3\n")
	root := machine.Root(tree.Root)
	nodes := machine.Nodes(root, "0000:46:00.0")
	if diff := cmp.Diff([]machine.Holder{{PID: 4242, Name: "python4242"}}, machine.Holders(root, nodes...)); diff != "" {
		t.Errorf("nodes %v: %s", nodes, diff)
	}
}

func TestNodes(t *testing.T) {
	tree := sysfstest.FourFunctions(t)
	home := "sys/devices/pci0000:3b/0000:3b:00.1/"
	tree.File(home+"sound/card1/pcmC1D3p/uevent", "MAJOR=116\nDEVNAME=snd/pcmC1D3p\n")
	tree.File(home+"sound/card1/uevent", "")
	tree.File(home+"0000:3c:00.0/sound/card2/controlC2/uevent", "DEVNAME=snd/controlC2\n")
	root := machine.Root(tree.Root)
	for address, want := range map[string][]string{
		"0000:3b:00.1": {"/dev/snd/pcmC1D3p", "/dev/vfio/0"}, "0000:5e:00.0": {"/dev/vfio/1"}, "0000:ff:00.0": nil,
	} {
		if diff := cmp.Diff(want, machine.Nodes(root, address)); diff != "" {
			t.Errorf("%s: %s", address, diff)
		}
	}
}

func TestHolderOnThisMachine(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, h := range machine.Holders("/", os.DevNull) {
		if h.PID == os.Getpid() && h.Name != "" {
			return
		}
	}
	t.Error("this process is not among the holders of what it has open")
}
