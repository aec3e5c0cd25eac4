package passthrough

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"berth/services/hostagent/machine"
	"berth/services/hostagent/pci"
)

// plain is the driver that gives any device to a VM.
const plain = "vfio-pci"

// vfio names the driver by which a VM gets the function at an address: the one
// of the kernel's vfio drivers that is made for the device most of all, where it
// is loaded, else vfio-pci. Modules tell what they are made for in
// modules.alias, as patterns such as vfio_pci:v000010DEd00002342sv*sd*bc*sc*i*.
func (b *Binder) vfio(at pci.Address) string {
	modalias, err := os.ReadFile(filepath.Join(string(b.root), attribute(at, "modalias")))
	if err != nil {
		return plain
	}
	device := strings.Replace(strings.TrimSpace(string(modalias)), "pci:", "vfio_pci:", 1)
	best, wildcards := plain, allWild
	for pattern, driver := range b.variants() {
		n := strings.Count(pattern, "*")
		if fits, err := path.Match(pattern, device); err == nil && fits && n < wildcards && b.root.HasDriver(driver) {
			best, wildcards = driver, n
		}
	}
	return best
}

// allWild is the number of fields of a pattern, as vfio-pci's own leaves all open.
const allWild = 7

// readVariants gives the vfio drivers by the pattern of what they are made for.
func readVariants(root machine.Root) map[string]string {
	release, err := os.ReadFile(filepath.Join(string(root), "proc/sys/kernel/osrelease"))
	if err != nil {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(string(root), "lib/modules", strings.TrimSpace(string(release)), "modules.alias"))
	if err != nil {
		return nil
	}
	out := make(map[string]string)
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "alias" && strings.HasPrefix(f[1], "vfio_pci:") {
			out[f[1]] = f[2]
		}
	}
	return out
}
