// Package machine reads what a host is besides its PCI bus, from procfs and
// sysfs: processor, memory, NUMA nodes, kernel, modules, what its network and
// its boot disk hang on, and which process has a device open. It changes
// nothing.
package machine

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Facts are a machine at one moment.
type Facts struct {
	CPUVendor string // "GenuineIntel", "AuthenticAMD"
	CPUModel  string // "AMD EPYC 7742 64-Core Processor"
	Threads   int    // logical processors
	MemoryMiB int64
	// HugepagesMiB is the memory set aside in huge pages of the default size.
	HugepagesMiB int64
	Nodes        []Node
	Kernel       string // "6.1.0-28-amd64"
	CommandLine  string // the kernel's
	IOMMU        bool   // it is on: there are units and groups
}

// Node is a NUMA node.
type Node struct {
	ID        int
	Socket    int
	Threads   int
	MemoryMiB int64
	CPUs      string // "0-63,128-191"
}

// Root is where a machine's file system lies: "/" for this one.
type Root string

func (r Root) path(name string) string { return filepath.Join(string(r), name) }

// text is a file without the space around it; "" where it can't be read.
func (r Root) text(name string) string {
	raw, err := os.ReadFile(r.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

func (r Root) exists(name string) bool {
	_, err := os.Lstat(r.path(name))
	return err == nil
}

func (r Root) list(name string) []os.DirEntry {
	entries, err := os.ReadDir(r.path(name))
	if err != nil {
		return nil
	}
	return entries
}

// Read looks at the machine. An error means that processor or memory can't be
// told; of the rest what is not there is left empty.
func Read(r Root) (Facts, error) {
	f := Facts{
		Kernel: r.text("proc/sys/kernel/osrelease"), CommandLine: r.text("proc/cmdline"),
		IOMMU: len(r.list("sys/class/iommu")) > 0 && len(r.list("sys/kernel/iommu_groups")) > 0,
		Nodes: r.nodes(),
	}
	if err := r.cpu(&f); err != nil {
		return Facts{}, err
	}
	memory := fields(r.text("proc/meminfo"))
	kib, ok := memory["MemTotal"]
	if !ok {
		return Facts{}, errors.New("/proc/meminfo does not give MemTotal")
	}
	f.MemoryMiB = kib >> 10
	f.HugepagesMiB = memory["HugePages_Total"] * memory["Hugepagesize"] >> 10
	return f, nil
}

func (r Root) cpu(f *Facts) error {
	s := bufio.NewScanner(strings.NewReader(r.text("proc/cpuinfo")))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "processor":
			f.Threads++
		case "vendor_id":
			f.CPUVendor = value
		case "model name":
			f.CPUModel = value
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("read /proc/cpuinfo: %w", err)
	}
	if f.Threads == 0 {
		return errors.New("/proc/cpuinfo lists no processor")
	}
	return nil
}

var numbered = regexp.MustCompile(`^node([0-9]{1,4})$`)

func (r Root) nodes() []Node {
	var nodes []Node
	for _, e := range r.list("sys/devices/system/node") {
		m := numbered.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		id, _ := strconv.Atoi(m[1]) // digits alone
		dir := "sys/devices/system/node/" + e.Name()
		cpus := cpuList(r.text(dir + "/cpulist"))
		n := Node{ID: id, Threads: len(cpus), CPUs: r.text(dir + "/cpulist"), MemoryMiB: fields(nodePrefix.ReplaceAllString(r.text(dir+"/meminfo"), ""))["MemTotal"] >> 10}
		if len(cpus) > 0 {
			n.Socket, _ = strconv.Atoi(r.text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpus[0])))
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return a.ID - b.ID })
	return nodes
}

// nodePrefix is what meminfo of a node has before each field.
var nodePrefix = regexp.MustCompile(`(?m)^Node \d+ `)

// fields reads lines such as "MemTotal:  1024 kB".
func fields(text string) map[string]int64 {
	out := make(map[string]int64)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		words := strings.Fields(value)
		if len(words) == 0 {
			continue
		}
		if n, err := strconv.ParseInt(words[0], 10, 64); err == nil {
			out[name] = n
		}
	}
	return out
}

// maxCPUs bounds what a broken list can make; the kernel's own bound is 8192.
const maxCPUs = 8192

// cpuList reads "0-3,8,10-11". What is no list gives what stands before it.
func cpuList(text string) []int {
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			return out
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(to); err != nil {
				return out
			}
		}
		for n := max(a, 0); n <= b && len(out) < maxCPUs; n++ {
			out = append(out, n)
		}
	}
	return out
}

// HasDriver tells whether the kernel has a PCI driver, built in or loaded.
func (r Root) HasDriver(name string) bool { return r.exists("sys/bus/pci/drivers/" + name) }

// HasModule tells whether a module is loaded, or built in with parameters.
func (r Root) HasModule(name string) bool {
	return r.exists("sys/module/" + strings.ReplaceAll(name, "-", "_"))
}
