package machine

import (
	"os"
	"path"
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

// NVIDIANodes gives the device nodes by which NVIDIA's driver hands out the GPU
// at a PCI address; none where it does not have it.
func NVIDIANodes(r Root, address string) []string {
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
