package pci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// NVIDIA is its vendor id as sysfs gives it, without 0x.
const NVIDIA = "10de"

// Device is one PCI function as sysfs describes it.
type Device struct {
	Address     Address
	Vendor      string // four hex digits, lower case
	Device      string
	SubsystemID string // vendor and device, "10de:169d"; empty: none
	Class       string // base class and subclass, "0302"
	Driver      string // empty: none
	IOMMUGroup  *int   // nil: none; 0 is a group
	NUMANode    *int   // nil: unknown
	// Parents are what stands above, from the root complex down:
	// "pci0000:3a", "0000:3a:01.0".
	Parents []string
	// ResetMethods are the kernel's, best first ("flr", "bus", ...). Empty: the
	// function can't be reset by itself.
	ResetMethods []string
	Virtual      bool // an SR-IOV function of another device
}

// Bridge tells bridges and switches, NVSwitches among them.
func (d Device) Bridge() bool { return strings.HasPrefix(d.Class, "06") }

// Accelerator tells what is offered as a GPU: VGA (0300), 3D (0302) and other
// display controllers (0380), and processing accelerators (1200), by NVIDIA.
func (d Device) Accelerator() bool {
	if d.Vendor != NVIDIA || d.Virtual {
		return false
	}
	switch d.Class {
	case "0300", "0302", "0380", "1200":
		return true
	}
	return false
}

// Yields tells drivers that a neighbour may have while a VM has a card of the
// same IOMMU group: the kernel calls the group viable then.
func Yields(driver string) bool {
	return driver == "" || driver == "pci-stub" || strings.HasPrefix(driver, "vfio") || strings.HasSuffix(driver, "_vfio_pci")
}

// reader collects the first error of reading a device's attributes.
type reader struct {
	dir string
	err error
}

// read describes the function in a folder of sysfs.
func read(dir string, a Address) (Device, error) {
	r := &reader{dir: dir}
	d := Device{
		Address: a,
		Vendor:  r.hex("vendor", 4), Device: r.hex("device", 4), SubsystemID: r.subsystem(),
		Driver: r.link("driver"), IOMMUGroup: r.group(), NUMANode: r.node(),
		Parents: r.parents(), ResetMethods: r.resets(), Virtual: r.link("physfn") != "",
	}
	d.Class = r.class()
	if r.err != nil {
		return Device{Address: a}, fmt.Errorf("read PCI device %s: %w", a, r.err)
	}
	return d, nil
}

func (r *reader) fail(name string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", name, err)
	}
}

// text is an attribute without the space around it; "" where there is none.
func (r *reader) text(name string) string {
	raw, err := os.ReadFile(filepath.Join(r.dir, name)) //nolint:gosec // below the root of sysfs that was given
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.fail(name, err)
	}
	return strings.TrimSpace(string(raw))
}

// hex is an attribute such as 0x10de without its prefix.
func (r *reader) hex(name string, digits int) string {
	text := r.text(name)
	s, ok := strings.CutPrefix(strings.ToLower(text), "0x")
	if _, err := strconv.ParseUint(s, 16, 64); !ok || err != nil || len(s) != digits {
		r.fail(name, fmt.Errorf("%.40q is no number of %d hex digits after 0x", text, digits))
		return ""
	}
	return s
}

// class drops the programming interface, the last of three bytes.
func (r *reader) class() string {
	c := r.hex("class", 6)
	return c[:min(4, len(c))]
}

// subsystem is empty on bridges, which have none.
func (r *reader) subsystem() string {
	if r.text("subsystem_vendor") == "" || r.text("subsystem_device") == "" {
		return ""
	}
	return r.hex("subsystem_vendor", 4) + ":" + r.hex("subsystem_device", 4)
}

// link is the last element of what a symbolic link leads to; "" where there is none.
func (r *reader) link(name string) string {
	to, err := os.Readlink(filepath.Join(r.dir, name))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.fail(name, err)
		}
		return ""
	}
	return filepath.Base(to)
}

func (r *reader) group() *int {
	link := r.link("iommu_group")
	if link == "" {
		return nil
	}
	return r.number("iommu_group", link)
}

// node is nil for -1, by which the kernel says that it does not know.
func (r *reader) node() *int {
	text := r.text("numa_node")
	if text == "" || text == "-1" {
		return nil
	}
	return r.number("numa_node", text)
}

func (r *reader) number(name, text string) *int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		r.fail(name, fmt.Errorf("%.40q is no number", text))
		return nil
	}
	i := int(n)
	return &i
}

var rootComplex = regexp.MustCompile(`^pci[0-9a-f]{4,8}:[0-9a-f]{2}$`)

// parents reads them from where the folder really lies:
// .../devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0.
func (r *reader) parents() []string {
	home, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		r.fail("parents", err)
		return nil
	}
	var up []string
	for e := range strings.SplitSeq(filepath.Dir(home), string(filepath.Separator)) {
		if rootComplex.MatchString(e) || addressForm.MatchString(e) {
			up = append(up, e)
		}
	}
	return up
}

// resets reads the methods; kernels before 5.15 say only that there is one.
func (r *reader) resets() []string {
	if methods := strings.Fields(r.text("reset_method")); len(methods) > 0 {
		return methods
	}
	if _, err := os.Stat(filepath.Join(r.dir, "reset")); err == nil {
		return []string{"unnamed"}
	}
	return nil
}
