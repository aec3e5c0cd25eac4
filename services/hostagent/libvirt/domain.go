package libvirt

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	rpc "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"berth/services/agentapi"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/pci"
)

// domain is a VM as libvirt has it: Berth's or somebody else's.
type domain struct {
	ref           rpc.Domain
	def           libvirtxml.Domain // persistent, without the note
	note          *note             // nil: not Berth's
	state, reason int32
	pci           []pci.Address // of all host devices, in the definition or in the VM that runs
}

func (d *domain) stopped() bool {
	return rpc.DomainState(d.state) == rpc.DomainShutoff || rpc.DomainState(d.state) == rpc.DomainCrashed
}

// read describes a domain. A nil one has gone meanwhile.
func (d *Driver) read(ctx context.Context, ref rpc.Domain) (*domain, error) {
	dom, err := ask(ctx, d.link, func(to daemon) (*domain, error) {
		dom := &domain{ref: ref}
		var err error
		if dom.state, dom.reason, err = to.DomainGetState(ref, 0); err != nil {
			return nil, err
		}
		if err := dom.define(to, rpc.DomainXMLInactive); err != nil {
			return nil, err
		}
		if !dom.stopped() {
			err = dom.addDevices(to)
		}
		return dom, err
	})
	if is(err, rpc.ErrNoDomain) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at domain %.40q: %w", ref.Name, err)
	}
	return dom, nil
}

// define reads the persistent definition.
func (d *domain) define(to daemon, flags rpc.DomainXMLFlags) error {
	raw, err := to.DomainGetXMLDesc(d.ref, flags)
	if err != nil {
		return err
	}
	if err := d.def.Unmarshal(raw); err != nil {
		return fmt.Errorf("read its definition: %w", err)
	}
	if d.def.Metadata != nil {
		if d.note, d.def.Metadata.XML, err = splitMetadata(d.def.Metadata.XML); err != nil {
			return err
		}
	}
	d.pci = hostdevs(d.def)
	return nil
}

// addDevices adds those of the VM that runs: somebody may have changed either.
func (d *domain) addDevices(to daemon) error {
	raw, err := to.DomainGetXMLDesc(d.ref, 0)
	if is(err, rpc.ErrNoDomain) {
		return nil
	}
	if err != nil {
		return err
	}
	var live libvirtxml.Domain
	if err := live.Unmarshal(raw); err != nil {
		return fmt.Errorf("read the definition it runs with: %w", err)
	}
	d.pci = append(d.pci, hostdevs(live)...)
	return nil
}

// hostdevs lists the PCI functions that a definition hands to a VM.
func hostdevs(def libvirtxml.Domain) []pci.Address {
	var out []pci.Address
	if def.Devices == nil {
		return nil
	}
	for _, h := range def.Devices.Hostdevs {
		if h.SubsysPCI == nil || h.SubsysPCI.Source == nil || h.SubsysPCI.Source.Address == nil {
			continue
		}
		a := h.SubsysPCI.Source.Address
		out = append(out, pci.Address(fmt.Sprintf("%04x:%02x:%02x.%x", value(a.Domain), value(a.Bus), value(a.Slot), value(a.Function))))
	}
	return out
}

func value(n *uint) uint {
	if n == nil {
		return 0
	}
	return *n
}

// blank is a new VM without cards.
func (d *Driver) blank(vm string, at disks) *domain {
	kind, cpu := "kvm", &libvirtxml.DomainCPU{Mode: "host-passthrough", Migratable: "off"}
	if d.conf.Emulate {
		kind, cpu = "qemu", nil
	}
	def := libvirtxml.Domain{
		Type: kind, Name: vm, CPU: cpu,
		OS:         &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Arch: "x86_64", Machine: "q35", Type: "hvm"}},
		Features:   &libvirtxml.DomainFeatureList{ACPI: &libvirtxml.DomainFeature{}, APIC: &libvirtxml.DomainFeatureAPIC{}},
		Clock:      &libvirtxml.DomainClock{Offset: "utc"},
		OnReboot:   "restart",
		OnCrash:    "destroy",
		Devices:    d.devices(at),
		OnPoweroff: "destroy",
	}
	if d.conf.Firmware == firmwareEFI {
		def.OS.Firmware = firmwareEFI
	}
	return &domain{def: def, note: &note{}, state: int32(rpc.DomainShutoff)}
}

func (d *Driver) devices(at disks) *libvirtxml.DomainDeviceList {
	list := &libvirtxml.DomainDeviceList{
		Controllers: []libvirtxml.DomainController{{Type: "pci", Index: new(uint(0)), Model: "pcie-root"}},
		Disks: []libvirtxml.DomainDisk{
			{
				Device: "disk", Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "qcow2", Discard: "unmap"}, Source: fileSource(at.disk),
				Target: &libvirtxml.DomainDiskTarget{Dev: "vda", Bus: "virtio"}, Boot: &libvirtxml.DomainDeviceBoot{Order: 1},
			},
			{
				Device: "cdrom", Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: "raw"}, Source: fileSource(at.seed),
				Target: &libvirtxml.DomainDiskTarget{Dev: "sda", Bus: "sata"}, ReadOnly: &libvirtxml.DomainDiskReadOnly{},
			},
		},
		Serials:    []libvirtxml.DomainSerial{{Source: pty(), Target: &libvirtxml.DomainSerialTarget{Port: new(uint(0))}}},
		Consoles:   []libvirtxml.DomainConsole{{Source: pty(), Target: &libvirtxml.DomainConsoleTarget{Type: "serial", Port: new(uint(0))}}},
		MemBalloon: &libvirtxml.DomainMemBalloon{Model: "none"}, // memory of a VM with a card is pinned
		RNGs: []libvirtxml.DomainRNG{{
			Model: "virtio", Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
		}},
	}
	if source := d.conf.interfaceSource(); source != nil {
		list.Interfaces = []libvirtxml.DomainInterface{{Source: source, Model: &libvirtxml.DomainInterfaceModel{Type: "virtio"}}}
	}
	return list
}

func fileSource(path string) *libvirtxml.DomainDiskSource {
	return &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: path}}
}

func pty() *libvirtxml.DomainChardevSource {
	return &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}}
}

// setSize gives a definition its vCores and memory.
func (d *domain) setSize(want agentapi.DesiredVM) {
	d.def.VCPU = &libvirtxml.DomainVCPU{Value: uint(max(want.VCores, 0)), Placement: "static"}
	d.def.Memory = &libvirtxml.DomainMemory{Unit: "MiB", Value: uint(max(want.MemoryMiB, 0))}
	d.def.CurrentMemory = nil
}

func (d *domain) size() (vcores int, memoryMiB int64) {
	if d.def.VCPU != nil {
		vcores = int(d.def.VCPU.Value) //nolint:gosec // of a VM
	}
	if m := d.def.Memory; m != nil {
		memoryMiB = int64(m.Value >> 10) //nolint:gosec // libvirt gives KiB
		if m.Unit == "MiB" {
			memoryMiB = int64(m.Value) //nolint:gosec // of a VM
		}
	}
	return vcores, memoryMiB
}

// setCards gives a definition its cards: the functions of each, a window for
// their memory, and processors and memory of their NUMA node where the VM fits
// it. Host devices that are none of Berth's cards stay.
func (d *domain) setCards(list []notedCard, known map[string]pci.Card, nodes []machine.Node) {
	mine := map[pci.Address]bool{}
	for _, c := range append(slices.Clone(d.note.Cards), list...) {
		for _, f := range c.Functions {
			mine[f] = true
		}
	}
	d.def.Devices.Hostdevs = slices.DeleteFunc(d.def.Devices.Hostdevs, func(h libvirtxml.DomainHostdev) bool {
		at := hostdevs(libvirtxml.Domain{Devices: &libvirtxml.DomainDeviceList{Hostdevs: []libvirtxml.DomainHostdev{h}}})
		return len(at) == 1 && mine[at[0]]
	})
	for _, c := range list {
		for _, f := range c.Functions {
			d.def.Devices.Hostdevs = append(d.def.Devices.Hostdevs, hostdev(f))
		}
	}
	d.note.Cards = list
	d.setWindow(list, known)
	d.setNode(list, known, nodes)
}

// hostdev hands a function to a VM. It is bound already, so libvirt is not to
// move it.
func hostdev(at pci.Address) libvirtxml.DomainHostdev {
	return libvirtxml.DomainHostdev{
		Managed: "no",
		SubsysPCI: &libvirtxml.DomainHostdevSubsysPCI{
			Driver: &libvirtxml.DomainHostdevSubsysPCIDriver{Name: "vfio"},
			Source: &libvirtxml.DomainHostdevSubsysPCISource{Address: addressOf(at)},
		},
	}
}

// addressOf takes an address apart: domain:bus:device.function.
func addressOf(at pci.Address) *libvirtxml.DomainAddressPCI {
	parts := strings.FieldsFunc(string(at), func(r rune) bool { return r == ':' || r == '.' })
	numbers := make([]*uint, 4)
	for i := range numbers {
		n, _ := strconv.ParseUint(parts[i], 16, 32) // an Address is of that form
		numbers[i] = new(uint(n))
	}
	return &libvirtxml.DomainAddressPCI{Domain: numbers[0], Bus: numbers[1], Slot: numbers[2], Function: numbers[3]}
}

// setWindow makes room above 4 GiB for the memory windows of all cards, twice
// over, since they are aligned to their size: in the host bridge, and in OVMF,
// which by itself finds room for small ones only.
func (d *domain) setWindow(list []notedCard, known map[string]pci.Card) {
	var bytes uint64
	for _, c := range list {
		for _, b := range known[c.Key].BARs {
			bytes += b.Bytes
		}
	}
	var hole *libvirtxml.DomainControllerPCIHole64
	mib := uint64(0)
	if bytes > 0 {
		mib = max(uint64(1)<<bits.Len64(bytes>>20)*2, minWindow)
		hole = &libvirtxml.DomainControllerPCIHole64{Size: mib << 10, Unit: "KiB"}
	}
	for i, c := range d.def.Devices.Controllers {
		if c.Type != "pci" || c.Model != "pcie-root" {
			continue
		}
		if c.PCI == nil {
			d.def.Devices.Controllers[i].PCI = &libvirtxml.DomainControllerPCI{}
		}
		d.def.Devices.Controllers[i].PCI.Hole64 = hole
	}
	d.tellOVMF(mib)
}

// minWindow is the least room above 4 GiB, in MiB.
const minWindow = 64 << 10

// ovmfWindow is OVMF's own setting, in MiB. Libvirt has no word for it and keeps
// the name from its own list of firmware settings, so it goes to QEMU as it is.
const ovmfWindow = "name=opt/ovmf/X-PciMmio64Mb,string="

// tellOVMF sets its window; 0 leaves it to OVMF. Other arguments stay.
func (d *domain) tellOVMF(mib uint64) {
	var args []libvirtxml.DomainQEMUCommandlineArg
	var envs []libvirtxml.DomainQEMUCommandlineEnv
	if c := d.def.QEMUCommandline; c != nil {
		args, envs = c.Args, c.Envs
	}
	if i := slices.IndexFunc(args, func(a libvirtxml.DomainQEMUCommandlineArg) bool { return strings.HasPrefix(a.Value, ovmfWindow) }); i > 0 {
		args = slices.Delete(slices.Clone(args), i-1, i+1)
	}
	if mib > 0 && d.def.OS.Firmware == firmwareEFI {
		args = append(args, libvirtxml.DomainQEMUCommandlineArg{Value: "-fw_cfg"},
			libvirtxml.DomainQEMUCommandlineArg{Value: ovmfWindow + strconv.FormatUint(mib, 10)})
	}
	d.def.QEMUCommandline = nil
	if len(args)+len(envs) > 0 {
		d.def.QEMUCommandline = &libvirtxml.DomainQEMUCommandline{Args: args, Envs: envs}
	}
}

// setNode keeps a VM on the NUMA node of its cards, where they have one in
// common and the VM fits it.
func (d *domain) setNode(list []notedCard, known map[string]pci.Card, nodes []machine.Node) {
	d.def.VCPU.CPUSet, d.def.NUMATune = "", nil
	node := commonNode(list, known)
	vcores, memory := d.size()
	for _, n := range nodes {
		if node == nil || n.ID != *node || n.CPUs == "" || vcores > n.Threads || memory > n.MemoryMiB {
			continue
		}
		d.def.VCPU.CPUSet = n.CPUs
		d.def.NUMATune = &libvirtxml.DomainNUMATune{Memory: &libvirtxml.DomainNUMATuneMemory{Mode: "preferred", Nodeset: strconv.Itoa(n.ID)}}
	}
}

func commonNode(list []notedCard, known map[string]pci.Card) *int {
	var node *int
	for i, c := range list {
		at := known[c.Key].GPU.NUMANode
		if at == nil || i > 0 && *at != *node {
			return nil
		}
		node = at
	}
	return node
}

// encode writes the whole definition with its note.
func (d *domain) encode() (string, error) {
	noted, err := d.note.element()
	if err != nil {
		return "", err
	}
	def := d.def
	rest := ""
	if d.def.Metadata != nil {
		rest = d.def.Metadata.XML
	}
	def.Metadata = &libvirtxml.DomainMetadata{XML: noted + rest}
	raw, err := def.Marshal()
	if err != nil {
		return "", fmt.Errorf("write definition: %w", err)
	}
	return raw, nil
}
