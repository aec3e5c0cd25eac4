package machine

import (
	"path/filepath"
	"slices"
	"strings"
)

// Critical tells which devices of the bus the host can't do without: the names
// of the folders in sysfs that its default route and its file systems pass
// through, PCI addresses among them, with what they are needed for.
func Critical(r Root) map[string]string {
	needed := make(map[string]string)
	for _, iface := range r.defaultRoutes() {
		r.mark(needed, "sys/class/net/"+iface, "the network card of the default route ("+iface+")")
	}
	for place, number := range r.mounts() {
		r.mark(needed, "sys/dev/block/"+number, "the disk of "+place)
	}
	return needed
}

// mark notes every folder that what a link leads to lies in, and what is below
// it, where it is made of others: a bridge of interfaces, a RAID, a crypt device.
func (r Root) mark(needed map[string]string, link, what string) {
	r.markDepth(needed, link, what, 0)
}

// maxLayers bounds how deep devices are stacked, against loops.
const maxLayers = 8

func (r Root) markDepth(needed map[string]string, link, what string, depth int) {
	home, err := filepath.EvalSymlinks(r.path(link))
	if err != nil || depth > maxLayers {
		return
	}
	for e := range strings.SplitSeq(home, string(filepath.Separator)) {
		if strings.Contains(e, ":") && needed[e] == "" {
			needed[e] = what
		}
	}
	base, err := filepath.EvalSymlinks(string(r))
	if err != nil {
		return
	}
	within, err := filepath.Rel(base, home)
	if err != nil {
		return
	}
	for _, below := range []string{"slaves", "../slaves", "brif"} {
		for _, e := range r.list(filepath.Join(within, below)) {
			r.markDepth(needed, filepath.Join(within, below, e.Name()), what, depth+1)
		}
	}
	for _, e := range r.list(within) {
		if strings.HasPrefix(e.Name(), "lower_") { // bonds, bridges, VLANs
			r.markDepth(needed, filepath.Join(within, e.Name()), what, depth+1)
		}
	}
}

// defaultRoutes names the interfaces that IPv4 and IPv6 leave by.
func (r Root) defaultRoutes() []string {
	var out []string
	add := func(iface string) {
		if iface != "lo" && !slices.Contains(out, iface) && filepath.Base(iface) == iface {
			out = append(out, iface)
		}
	}
	for line := range strings.Lines(r.text("proc/net/route")) {
		if f := strings.Fields(line); len(f) > 7 && f[1] == "00000000" && f[7] == "00000000" {
			add(f[0])
		}
	}
	for line := range strings.Lines(r.text("proc/net/ipv6_route")) {
		f := strings.Fields(line)
		if len(f) > 9 && strings.Trim(f[0], "0") == "" && f[1] == "00" {
			add(f[9])
		}
	}
	return out
}

// mounts gives the device numbers of the file systems that a host runs from.
func (r Root) mounts() map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(r.text("proc/self/mountinfo")) {
		f := strings.Fields(line)
		if len(f) < 5 || strings.HasPrefix(f[2], "0:") {
			continue
		}
		switch f[4] {
		case "/", "/boot", "/boot/efi", "/usr", "/var", "/home":
			out[f[4]] = f[2]
		}
	}
	return out
}
