// Package sysfstest builds file systems that look like those of machines with
// GPUs: sysfs, procfs and the device nodes, as far as Berth reads them.
package sysfstest

import (
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Tree is a file system under construction.
type Tree struct {
	t    testing.TB
	Root string
}

// Device is one PCI function to be put into a tree.
type Device struct {
	Address string // "0000:3b:00.0"
	// Above is the path from the root complex down: "pci0000:3a/0000:3a:01.0".
	Above     string
	ID        string // "10de:2331"
	Subsystem string // "10de:1626"; empty: none
	Class     string // six digits: "030200"
	Driver    string // empty: none
	Group     int    // IOMMU group; below 0: none
	NUMA      int    // -1: unknown
	// BARs are sizes in MiB; 0 leaves one out, as the upper half of a 64-bit one does.
	BARs   []int
	Resets string // reset_method; empty: none
}

// New gives an empty machine.
func New(t testing.TB) *Tree {
	t.Helper()
	tree := &Tree{t: t, Root: t.TempDir()}
	tree.dir("sys/bus/pci/devices")
	return tree
}

// Add puts devices in.
func (tree *Tree) Add(devices ...Device) {
	tree.t.Helper()
	for _, d := range devices {
		tree.add(d)
	}
}

func (tree *Tree) add(d Device) {
	tree.t.Helper()
	home := path.Join("sys/devices", d.Above, d.Address)
	vendor, device, _ := strings.Cut(d.ID, ":")
	tree.File(home+"/vendor", "0x"+vendor+"\n")
	tree.File(home+"/device", "0x"+device+"\n")
	tree.File(home+"/class", "0x"+d.Class+"\n")
	tree.File(home+"/numa_node", fmt.Sprintf("%d\n", d.NUMA))
	tree.File(home+"/driver_override", "(null)\n")
	tree.File(home+"/resource", windows(d.BARs))
	tree.File(home+"/config", littleEndian(vendor)+littleEndian(device))
	tree.File(home+"/modalias", modalias(d))
	if v, dev, ok := strings.Cut(d.Subsystem, ":"); ok {
		tree.File(home+"/subsystem_vendor", "0x"+v+"\n")
		tree.File(home+"/subsystem_device", "0x"+dev+"\n")
	}
	if d.Resets != "" {
		tree.File(home+"/reset_method", d.Resets+"\n")
		tree.File(home+"/reset", "")
	}
	if d.Group >= 0 {
		group := fmt.Sprintf("sys/kernel/iommu_groups/%d", d.Group)
		tree.dir(group + "/devices")
		tree.Link(home+"/iommu_group", group)
		tree.Link(group+"/devices/"+d.Address, home)
		tree.dir("sys/class/iommu/dmar0")
	}
	if d.Driver != "" {
		tree.dir("sys/bus/pci/drivers/" + d.Driver)
		tree.Link(home+"/driver", "sys/bus/pci/drivers/"+d.Driver)
	}
	tree.Link("sys/bus/pci/devices/"+d.Address, home)
}

// littleEndian turns four hex digits into the bytes of configuration space.
func littleEndian(digits string) string {
	raw, _ := hex.DecodeString(digits) // of constants
	slices.Reverse(raw)
	return string(raw)
}

func modalias(d Device) string {
	wide := func(id string, n int) string { return strings.Repeat("0", n-len(id)) + strings.ToUpper(id) }
	vendor, device, _ := strings.Cut(d.ID, ":")
	subVendor, subDevice, _ := strings.Cut(d.Subsystem, ":")
	class := wide(d.Class, 6)
	return fmt.Sprintf("pci:v%sd%ssv%ssd%sbc%ssc%si%s\n", wide(vendor, 8), wide(device, 8), wide(subVendor, 8), wide(subDevice, 8), class[:2], class[2:4], class[4:])
}

// windows writes a resource file: one line for each of 13 regions.
func windows(mib []int) string {
	const memory64Prefetch, memory32 = 0x14220c, 0x40200
	var b strings.Builder
	at := uint64(1) << 40
	for i := range 13 {
		if i >= len(mib) || mib[i] == 0 {
			b.WriteString("0x0000000000000000 0x0000000000000000 0x0000000000000000\n")
			continue
		}
		size, flags := uint64(mib[i])<<20, memory64Prefetch
		if i == 0 {
			flags = memory32
		}
		fmt.Fprintf(&b, "%#016x %#016x %#016x\n", at, at+size-1, flags)
		at += size
	}
	return b.String()
}

// File writes a file, and the folders above it.
func (tree *Tree) File(name, text string) {
	tree.t.Helper()
	tree.dir(path.Dir(name))
	if err := os.WriteFile(filepath.Join(tree.Root, name), []byte(text), 0o600); err != nil {
		tree.t.Fatal(err)
	}
}

// Link makes name a symbolic link to another place of the tree, relative as in
// sysfs.
func (tree *Tree) Link(name, to string) {
	tree.t.Helper()
	tree.dir(path.Dir(name))
	rel, err := filepath.Rel(path.Dir(name), to)
	if err != nil {
		tree.t.Fatal(err)
	}
	if err := os.Symlink(rel, filepath.Join(tree.Root, name)); err != nil {
		tree.t.Fatal(err)
	}
}

// Remove takes a file or folder away.
func (tree *Tree) Remove(name string) {
	tree.t.Helper()
	if err := os.RemoveAll(filepath.Join(tree.Root, name)); err != nil {
		tree.t.Fatal(err)
	}
}

func (tree *Tree) dir(name string) {
	tree.t.Helper()
	if err := os.MkdirAll(filepath.Join(tree.Root, name), 0o750); err != nil {
		tree.t.Fatal(err)
	}
}
