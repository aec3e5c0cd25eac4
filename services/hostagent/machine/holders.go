package machine

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Holder is a process that has a device open.
type Holder struct {
	PID  int
	Name string // of its program
}

// Holders finds the processes that have one of the device nodes open ("/dev/vfio/17").
// Processes of which nothing can be read are not among them.
func Holders(r Root, nodes ...string) []Holder {
	wanted := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		wanted[n] = true
	}
	var out []Holder
	for _, e := range r.list("proc") {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !r.opened(e.Name(), wanted) {
			continue
		}
		out = append(out, Holder{PID: pid, Name: r.text(path.Join("proc", e.Name(), "comm"))})
	}
	return out
}

func (r Root) opened(pid string, nodes map[string]bool) bool {
	fds := path.Join("proc", pid, "fd")
	for _, fd := range r.list(fds) {
		if to, err := os.Readlink(r.path(path.Join(fds, fd.Name()))); err == nil && nodes[to] {
			return true
		}
	}
	return false
}

// Nodes gives the device nodes by which processes use the function at a PCI
// address: those that sysfs lists below it (sound, DRM, VFIO), that of its VFIO
// group, and NVIDIA's.
func Nodes(r Root, address string) []string {
	function := "sys/bus/pci/devices/" + address
	nodes := append(r.nvidiaNodes(address), r.listedNodes(function)...)
	if group, err := os.Readlink(r.path(function + "/iommu_group")); err == nil {
		nodes = append(nodes, "/dev/vfio/"+filepath.Base(group))
	}
	return nodes
}

var pciFunction = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)

// listedNodes reads the name that uevent gives to each node. Functions behind
// this one are others'; its own uevent names no node, and can't be read while
// its driver is exchanged.
func (r Root) listedNodes(function string) []string {
	home, err := filepath.EvalSymlinks(r.path(function))
	if err != nil {
		return nil
	}
	var nodes []string
	_ = filepath.WalkDir(home, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // gone meanwhile
		case e.IsDir() && file != home && pciFunction.MatchString(e.Name()):
			return fs.SkipDir
		case e.Name() != "uevent" || filepath.Dir(file) == home:
			return nil
		}
		raw, _ := os.ReadFile(file) //nolint:gosec // below the function's folder
		for line := range strings.Lines(string(raw)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME="); ok && !slices.Contains(nodes, "/dev/"+name) {
				nodes = append(nodes, "/dev/"+name)
			}
		}
		return nil
	})
	return nodes
}

// nvidiaNodes gives the node by which NVIDIA's driver hands out the GPU; none
// where it does not have it.
func (r Root) nvidiaNodes(address string) []string {
	info := r.text("proc/driver/nvidia/gpus/" + address + "/information")
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != "Device Minor" {
			continue
		}
		if minor, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
			return []string{"/dev/nvidia" + strconv.Itoa(minor)}
		}
	}
	return nil
}
