package sysfstest

import (
	"fmt"
	"strings"
	"testing"
)

// Ids of what stands in the shapes, from the PCI ID database.
const (
	h100SXM    = "10de:2330"
	l40s       = "10de:26b9"
	a100PCIe   = "10de:20b5"
	rtx6000    = "10de:1e30" // Quadro RTX 6000: GPU, audio, USB and UCSI in one slot
	nvswitch   = "10de:22a3"
	plxSwitch  = "1000:c030"
	connectX7  = "15b3:1021"
	nvmeDrive  = "144d:a80a"
	sapphire   = "GenuineIntel/143/Intel(R) Xeon(R) Platinum 8480C"
	rome       = "AuthenticAMD/49/AMD EPYC 7742 64-Core Processor"
	teslaBARs  = 16    // MiB of BAR 0
	memoryH100 = 81920 // MiB; the BAR is the next power of two
)

// DGXH100 is eight SXM cards, each under a PCIe switch of its own beside a
// network card, four to a socket, with four NVSwitches.
func DGXH100(t testing.TB) *Tree {
	t.Helper()
	tree := New(t)
	tree.CPU(sapphire, 2, 56, 1024)
	for i, bus := range []string{"1b", "43", "52", "61", "9d", "c3", "d1", "df"} {
		up := fmt.Sprintf("pci0000:%02x", 0x1a+i*0x18)
		bridge := up + fmt.Sprintf("/0000:%02x:01.0", 0x1a+i*0x18)
		tree.Add(
			Device{Address: bridge[len(up)+1:], Above: up, ID: plxSwitch, Class: "060400", Group: 100 + i, NUMA: i / 4},
			Device{Address: "0000:" + bus + ":00.0", Above: bridge, ID: h100SXM, Subsystem: "10de:16c1", Class: "030200", Driver: "nvidia",
				Group: 20 + i, NUMA: i / 4, BARs: []int{teslaBARs, 0, nextPowerOfTwo(memoryH100), 0, 32}, Resets: "flr bus"},
			Device{Address: fmt.Sprintf("0000:%02x:00.0", 0xe0+i), Above: up, ID: connectX7, Class: "020700", Driver: "mlx5_core", Group: 40 + i, NUMA: i / 4})
	}
	for i := range 4 {
		tree.Add(Device{Address: fmt.Sprintf("0000:0%d:00.0", 5+i), Above: "pci0000:00", ID: nvswitch, Class: "068000", Driver: "nvidia-nvswitch", Group: 60 + i})
	}
	return tree.ready()
}

// DualL40S is eight L40S in a machine of two sockets.
func DualL40S(t testing.TB) *Tree {
	t.Helper()
	tree := New(t)
	tree.CPU(sapphire, 2, 32, 512)
	for i := range 8 {
		bus := fmt.Sprintf("%02x", 0x16+i*0x10)
		tree.Add(Device{Address: "0000:" + bus + ":00.0", Above: "pci0000:" + bus, ID: l40s, Subsystem: "10de:1851", Class: "030200", Driver: "nvidia",
			Group: i, NUMA: i / 4, BARs: []int{16, 65536, 0, 32}, Resets: "flr bus"})
	}
	return tree.ready()
}

// A100Bridge is two A100 PCIe joined by an NVLink bridge, which the PCI bus
// does not show, on one socket whose NUMA node the firmware does not tell.
func A100Bridge(t testing.TB) *Tree {
	t.Helper()
	tree := New(t)
	tree.CPU(rome, 1, 64, 256)
	for i, bus := range []string{"21", "41"} {
		tree.Add(Device{Address: "0000:" + bus + ":00.0", Above: "pci0000:" + bus, ID: a100PCIe, Subsystem: "10de:1533", Class: "030200", Driver: "nvidia",
			Group: 10 + i, NUMA: -1, BARs: []int{16, 0, 131072, 0, 32}, Resets: "flr bus"})
	}
	return tree.ready()
}

// FourFunctions is two cards of four functions each: GPU, audio, USB and UCSI.
// Each slot is a group of its own.
func FourFunctions(t testing.TB) *Tree {
	t.Helper()
	tree := New(t)
	tree.CPU(sapphire, 1, 16, 128)
	for i, bus := range []string{"3b", "5e"} {
		for f, fn := range []struct{ id, class, driver string }{
			{rtx6000, "030000", "nvidia"}, {"10de:10f7", "040300", "snd_hda_intel"}, {"10de:1ad6", "0c0330", "xhci_hcd"}, {"10de:1ad7", "0c8000", "nvidia-gpu"},
		} {
			d := Device{Address: fmt.Sprintf("0000:%s:00.%d", bus, f), Above: "pci0000:" + bus, ID: fn.id, Subsystem: "10de:129f", Class: fn.class,
				Driver: fn.driver, Group: i, NUMA: 0, Resets: "bus"}
			if f == 0 {
				d.BARs = []int{16, 256, 0, 32}
			}
			tree.Add(d)
		}
	}
	return tree.ready()
}

// SharedGroup is a card in one IOMMU group with the network card that carries
// the host's default route, as behind a root port without ACS, and one card
// that stands alone.
func SharedGroup(t testing.TB) *Tree {
	t.Helper()
	tree := New(t)
	tree.CPU(rome, 1, 32, 128)
	up := "pci0000:00/0000:00:01.0"
	tree.Add(
		Device{Address: "0000:00:01.0", Above: "pci0000:00", ID: "1022:1483", Class: "060400", Driver: "pcieport", Group: 14},
		Device{Address: "0000:01:00.0", Above: up, ID: l40s, Class: "030200", Driver: "nvidia", Group: 14, Resets: "flr bus", BARs: []int{16, 65536, 0, 32}},
		Device{Address: "0000:02:00.0", Above: up, ID: connectX7, Class: "020000", Driver: "mlx5_core", Group: 14},
		Device{Address: "0000:61:00.0", Above: "pci0000:60", ID: l40s, Class: "030200", Driver: "nvidia", Group: 30, Resets: "flr bus", BARs: []int{16, 65536, 0, 32}})
	tree.Link("sys/class/net/eno1", "sys/devices/"+up+"/0000:02:00.0/net/eno1")
	tree.Link("sys/devices/"+up+"/0000:02:00.0/net/eno1/device", "sys/devices/"+up+"/0000:02:00.0")
	tree.File("proc/net/route", "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"+
		"eno1\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"+"eno1\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\n")
	return tree.ready()
}

// VMD is a card behind Intel's Volume Management Device, in domain 10000, and
// the boot disk beside it.
func VMD(t testing.TB) *Tree {
	t.Helper()
	tree := New(t)
	tree.CPU(sapphire, 1, 24, 96)
	up := "pci0000:c0/0000:c0:05.5/pci10000:e0/10000:e0:01.0"
	tree.Add(
		Device{Address: "0000:c0:05.5", Above: "pci0000:c0", ID: "8086:28c0", Class: "010400", Driver: "vmd", Group: 7},
		Device{Address: "10000:e0:01.0", Above: "pci0000:c0/0000:c0:05.5/pci10000:e0", ID: "8086:a72f", Class: "060400", Driver: "pcieport", Group: 7},
		Device{Address: "10000:e1:00.0", Above: up, ID: l40s, Class: "030200", Driver: "nvidia", Group: 7, Resets: "flr", BARs: []int{16, 65536, 0, 32}},
		Device{Address: "10000:e2:00.0", Above: up, ID: nvmeDrive, Class: "010802", Driver: "nvme", Group: 8})
	disk := "sys/devices/" + up + "/10000:e2:00.0/nvme/nvme0/nvme0n1"
	tree.File(disk+"/nvme0n1p2/dev", "259:2\n")
	tree.Link("sys/dev/block/259:2", disk+"/nvme0n1p2")
	tree.File("proc/self/mountinfo", "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n")
	return tree.ready()
}

// ready adds what a host has that is set up well.
func (tree *Tree) ready() *Tree {
	for _, name := range []string{"vfio-pci", "nvidia"} {
		tree.dir("sys/bus/pci/drivers/" + name)
	}
	tree.dir("sys/module/vfio_iommu_type1")
	tree.File("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n")
	tree.File("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/nvme0n1p2 ro intel_iommu=on iommu=pt\n")
	return tree
}

// CPU describes a processor ("vendor/model/name"), with cores of two threads
// and GiB of memory for each socket, one NUMA node to a socket.
func (tree *Tree) CPU(kind string, sockets, cores, gib int) {
	tree.t.Helper()
	parts := strings.SplitN(kind, "/", 3)
	perSocket := 2 * cores
	var info strings.Builder
	for s := range sockets {
		for i := range perSocket {
			n := s*perSocket + i
			fmt.Fprintf(&info, "processor\t: %d\nvendor_id\t: %s\nmodel\t\t: %s\nmodel name\t: %s\nphysical id\t: %d\n\n", n, parts[0], parts[1], parts[2], s)
		}
		tree.File(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/physical_package_id", s*perSocket), fmt.Sprintf("%d\n", s))
		node := fmt.Sprintf("sys/devices/system/node/node%d", s)
		tree.File(node+"/cpulist", fmt.Sprintf("%d-%d\n", s*perSocket, (s+1)*perSocket-1))
		tree.File(node+"/meminfo", fmt.Sprintf("Node %d MemTotal:       %d kB\nNode %d MemFree:        1024 kB\n", s, gib<<20, s))
	}
	tree.File("proc/cpuinfo", info.String())
	tree.File("proc/meminfo", fmt.Sprintf("MemTotal:       %d kB\nMemFree:        1024 kB\nHugePages_Total:       0\nHugepagesize:       2048 kB\n", sockets*gib<<20))
}

func nextPowerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}
