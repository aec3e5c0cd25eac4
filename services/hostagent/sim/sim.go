package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent"
)

// Driver simulates hosts. All its methods may be called at the same time.
type Driver struct {
	statePath string
	log       *slog.Logger
	changes   chan struct{}

	mu      sync.Mutex
	latency Latency
	hosts   []*host
	altered chan struct{} // closed and replaced with each change
	timers  map[*time.Timer]struct{}
	closed  bool
	saved   []byte // what the state file holds
}

var _ hostagent.Driver = (*Driver)(nil)

type host struct {
	spec     HostSpec
	cards    []*card
	vms      []*vm
	foreign  map[string][]string // VMs of others, by name → keys of their cards
	disks    map[string]bool     // by VM
	findings []agentapi.Finding  // as set; the rest of the checklist is well
	blind    error               // what Inspect returns
	partial  bool                // Inspect does not see the VMs
}

type card struct {
	spec       CardSpec
	cleaned    int64
	failed     int64
	problem    *agentapi.Problem
	gone       bool
	cleaning   bool
	hold       *hold
	failResets int
}

// hold is a process that has a card's device open.
type hold struct {
	process string
	pid     int
	hidden  bool // not found before the unbind, which then hangs
}

// vm is what a hypervisor would keep of one. Exported fields go into the state file.
type vm struct {
	ID        string
	VCores    int
	MemoryMiB int64
	Image     string
	Power     string
	Run       int64
	Reboots   int64
	StoppedBy string
	Devices   []string // keys of cards
	Change    *change  // under way
	deaf      bool     // the guest ignores the power button
	failStart []string // messages of the next starts
}

// change is what a VM is doing until a moment.
type change struct {
	Kind  changeKind
	Until time.Time
	By    string           // who shuts it down
	Count hostagent.Counts // kept when it is done
}

type changeKind string

const (
	booting      changeKind = "boot"
	shuttingDown changeKind = "shutdown"
	rebooting    changeKind = "reboot"
)

// New builds the hosts of c, as the state file left them where there is one.
func New(c Config) (*Driver, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	d := &Driver{
		statePath: c.StatePath, log: c.Logger, latency: c.Latency,
		changes: make(chan struct{}, 1), altered: make(chan struct{}), timers: make(map[*time.Timer]struct{}),
	}
	if d.log == nil {
		d.log = slog.Default()
	}
	for _, spec := range c.Hosts {
		h := &host{spec: spec, foreign: map[string][]string{}, disks: map[string]bool{}}
		for _, cs := range spec.Cards {
			h.cards = append(h.cards, &card{spec: cs, failResets: cs.FailResets})
		}
		for _, f := range spec.Findings {
			h.setFinding(f)
		}
		d.hosts = append(d.hosts, h)
	}
	return d, d.load()
}

// Close ends everything that is under way; the state file keeps it, so that a
// driver made from the file goes on with it.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for t := range d.timers {
		t.Stop()
	}
	clear(d.timers)
	return nil
}

// Name is "sim".
func (d *Driver) Name() string { return "sim" }

// Hosts names the simulated hosts.
func (d *Driver) Hosts(context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := make([]string, len(d.hosts))
	for i, h := range d.hosts {
		names[i] = h.spec.Name
	}
	return names, nil
}

// Changes delivers after each change.
func (d *Driver) Changes() <-chan struct{} { return d.changes }

// Inspect shows a host as it is now.
func (d *Driver) Inspect(ctx context.Context, name string) (hostagent.Inspection, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, err := d.host(name)
	switch {
	case err != nil:
		return hostagent.Inspection{}, err
	case ctx.Err() != nil:
		return hostagent.Inspection{}, ctx.Err()
	case h.blind != nil:
		return hostagent.Inspection{}, h.blind
	}
	in := hostagent.Inspection{Host: h.report(), Holders: h.holders(), Partial: h.partial}
	if h.partial {
		in.Host.VMs = []agentapi.VMReport{}
	}
	return in, nil
}

func (h *host) report() agentapi.HostReport {
	r := agentapi.HostReport{
		Name: h.spec.Name, Generation: h.spec.Generation, VCores: h.spec.VCores, MemoryMiB: h.spec.MemoryMiB,
		Kernel: h.spec.Kernel, NUMA: h.numa(), Findings: h.readiness(),
		Cards: make([]agentapi.CardReport, 0, len(h.cards)), VMs: make([]agentapi.VMReport, 0, len(h.vms)),
	}
	for _, c := range h.cards {
		if !c.gone {
			r.Cards = append(r.Cards, h.reportCard(c))
		}
	}
	for _, v := range h.vms {
		r.VMs = append(r.VMs, h.reportVM(v))
	}
	return r
}

func (h *host) reportCard(c *card) agentapi.CardReport {
	s := c.spec
	r := agentapi.CardReport{
		Key: s.Key(), Serial: s.Serial, VendorID: s.VendorID, DeviceID: s.DeviceID, SubsystemID: s.SubsystemID,
		PCIAddress: s.PCIAddress, IOMMUGroup: s.IOMMUGroup, NUMANode: s.NUMANode, VBIOS: s.VBIOS, Firmware: s.Firmware, Parents: s.Parents,
		CleanedOrder: c.cleaned, FailedOrder: c.failed, Functions: make([]agentapi.Function, len(s.Functions)),
	}
	if c.problem != nil {
		p := *c.problem
		r.Problem = &p
	}
	bound := h.holder(s.Key()) != ""
	for i, f := range s.Functions {
		r.Functions[i] = agentapi.Function{Address: f.Address, Class: f.Class, Driver: f.Driver}
		if bound {
			r.Functions[i].Driver = "vfio-pci"
		}
	}
	return r
}

// reportVM leaves out cards that have vanished: they can't be read back.
func (h *host) reportVM(v *vm) agentapi.VMReport {
	r := agentapi.VMReport{
		ID: v.ID, Power: v.Power, Run: v.Run, Reboots: v.Reboots, StoppedBy: v.StoppedBy,
		VCores: v.VCores, MemoryMiB: v.MemoryMiB, Devices: make([]string, 0, len(v.Devices)),
	}
	for _, key := range v.Devices {
		if c := h.card(key); c != nil && !c.gone {
			r.Devices = append(r.Devices, key)
		}
	}
	return r
}

// readiness is the checklist of a host that is set up well, but for what
// SetFinding has put there.
func (h *host) readiness() []agentapi.Finding {
	list := []agentapi.Finding{
		{Code: agentapi.FindingIOMMUOff, OK: true, Detail: fmt.Sprintf("the IOMMU is on, %d cards have a group", len(h.cards))},
		{Code: agentapi.FindingVFIOMissing, OK: true, Detail: "vfio-pci is loaded"},
		{Code: agentapi.FindingNouveauBound, OK: true, Detail: "nouveau has none of the cards"},
	}
	for _, f := range h.findings {
		if i := slices.IndexFunc(list, func(l agentapi.Finding) bool { return l.Code == f.Code }); i >= 0 {
			list[i] = f
		} else {
			list = append(list, f)
		}
	}
	return list
}

func (h *host) setFinding(f agentapi.Finding) {
	h.findings = slices.DeleteFunc(h.findings, func(old agentapi.Finding) bool { return old.Code == f.Code })
	h.findings = append(h.findings, f)
}

// numa spreads the host's cores and memory evenly over its nodes, one to a socket.
func (h *host) numa() []agentapi.NUMANode {
	n := max(1, h.spec.NUMANodes)
	nodes := make([]agentapi.NUMANode, n)
	for i := range nodes {
		nodes[i] = agentapi.NUMANode{ID: i, Socket: i, VCores: h.spec.VCores / n, MemoryMiB: h.spec.MemoryMiB / int64(n)}
	}
	return nodes
}

// holders tells which VM has which card.
func (h *host) holders() map[string]string {
	out := make(map[string]string)
	for _, c := range h.cards {
		if name := h.holder(c.spec.Key()); name != "" {
			out[c.spec.Key()] = name
		}
	}
	return out
}

func (h *host) holder(key string) string {
	for _, v := range h.vms {
		if slices.Contains(v.Devices, key) {
			return v.ID
		}
	}
	for name, cards := range h.foreign {
		if slices.Contains(cards, key) {
			return name
		}
	}
	return ""
}

// card finds a card by its key; nil: there never was one.
func (h *host) card(key string) *card {
	i := slices.IndexFunc(h.cards, func(c *card) bool { return c.spec.Key() == key })
	if i < 0 {
		return nil
	}
	return h.cards[i]
}

func (h *host) vm(id string) *vm {
	i := slices.IndexFunc(h.vms, func(v *vm) bool { return v.ID == id })
	if i < 0 {
		return nil
	}
	return h.vms[i]
}

func (d *Driver) host(name string) (*host, error) {
	i := slices.IndexFunc(d.hosts, func(h *host) bool { return h.spec.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no simulated host %q", name)
	}
	return d.hosts[i], nil
}

func (d *Driver) find(hostName, id string) (*host, *vm, error) {
	h, err := d.host(hostName)
	if err != nil {
		return nil, nil, err
	}
	v := h.vm(id)
	if v == nil {
		return nil, nil, fmt.Errorf("host %s has no VM %s", hostName, id)
	}
	return h, v, nil
}

// alter is called with d.mu held after each change: it saves it and tells
// everybody who waits.
func (d *Driver) alter() {
	d.save()
	close(d.altered)
	d.altered = make(chan struct{})
	select {
	case d.changes <- struct{}{}:
	default:
	}
}

// until waits, with d.mu held before and after, for something to be so.
func (d *Driver) until(ctx context.Context, so func() bool) error {
	for !so() {
		altered := d.altered
		d.mu.Unlock()
		var err error
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-altered:
		}
		d.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// rest lets time pass, with d.mu held before and after.
func (d *Driver) rest(ctx context.Context, t time.Duration) error {
	if t <= 0 {
		return ctx.Err()
	}
	d.mu.Unlock()
	defer d.mu.Lock()
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// after calls do with d.mu held once t has passed, unless the driver is closed
// before; d.mu is held.
func (d *Driver) after(t time.Duration, do func()) {
	if d.closed {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(t, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.timers, timer)
		if !d.closed {
			do()
		}
	})
	d.timers[timer] = struct{}{}
}
