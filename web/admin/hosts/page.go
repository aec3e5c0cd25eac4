package hosts

import (
	"context"
	"strconv"
	"time"

	"berth/services"
	"berth/web/admin/topology"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is a host's page.
type Page struct {
	layout.Shell
	Host     Host
	Checks   []Check
	Cards    []Card    // by NUMA node and address
	Nodes    []Node    // empty: unknown
	Machines []Machine // by name
	Events   []components.Happening
	Asked    Asked // of a refused change of mode
	Broken   []services.Violation
	Key      string
	Table    bool // the topology is shown as a table
}

// Host is a machine with cards.
type Host struct {
	ID         services.HostID
	Name       string
	Zone       string
	Generation string
	VCores     int
	MemoryMiB  int
	Kernel     string
	Mode       services.HostMode
	Reason     string
	Since      time.Time // of the mode
	By         string    // who set the mode; empty: nobody yet
	Ready      bool
	Vouched    bool
	Seen       time.Time
	AddedAt    time.Time

	Agent     services.AgentID
	Version   string
	Driver    string
	Behind    int // desired revisions that the agent has still to reach
	ExpiresAt time.Time
	Revoked   bool
}

// Check is a line of the readiness checklist.
type Check struct {
	Code    string // "iommu-off"; texts "check.<code>"
	OK      bool
	Warning bool // failed, and the host can still hand out its cards
	Detail  string
	Fix     string
}

// Node is a NUMA node.
type Node struct {
	ID, Socket, VCores int
	MemoryMiB          int
}

// Card is a card of the host.
type Card struct {
	ID          services.CardID
	Model       string // empty: unknown
	PCIAddress  string
	IOMMUGroup  *int
	NUMANode    *int
	Driver      string
	Functions   int
	Parents     []string
	Status      services.CardCondition
	Reason      string
	GPU         services.GPUID // empty: nobody holds it
	GPUName     string
	State       services.GPUState // empty: built in, or not held
	Account     services.AccountID
	AccountName string
	VMName      string
}

// Machine is a VM of the host, with what maintenance does to it.
type Machine struct {
	ID        services.VMID
	Name      string
	Account   services.AccountID
	Owner     string
	Type      string
	VCores    int
	MemoryMiB int
	Power     services.Power
	Running   bool // wanted running
	GPUs      int
	Moves     bool
	NoRoom    bool // it would move, but there is no room now
	Resumes   bool // stopped by maintenance: starts when it ends
}

// Asked is what was asked of a host's mode.
type Asked struct {
	Mode    services.HostMode
	Reason  string
	Confirm bool
}

func (p Page) region() components.Region {
	query := ""
	if p.Table {
		query = "?topology=table"
	}
	return components.Region{
		ID: "host", Fragment: urls.Fragment(urls.Host(p.Host.ID)) + query, Events: []string{components.EventFleet, components.EventOperations},
	}
}

// others are the modes that the host can be put into, by one form each.
func (p Page) others() []services.HostMode {
	var out []services.HostMode
	for _, m := range services.HostModes {
		if m != p.Host.Mode {
			out = append(out, m)
		}
	}
	return out
}

func (p Page) moving(mode services.HostMode) []Machine {
	return p.affected(func(m Machine) bool { return m.Running && m.Moves && mode != services.HostAccepting })
}

func (p Page) stopping(mode services.HostMode) []Machine {
	return p.affected(func(m Machine) bool { return m.Running && !m.Moves && mode == services.HostMaintenance })
}

func (p Page) staying(mode services.HostMode) []Machine {
	return p.affected(func(m Machine) bool { return m.Running && !m.Moves && mode == services.HostDraining })
}

func (p Page) resuming() []Machine { return p.affected(func(m Machine) bool { return m.Resumes }) }

func (p Page) affected(by func(Machine) bool) []Machine {
	var out []Machine
	for _, m := range p.Machines {
		if by(m) {
			out = append(out, m)
		}
	}
	return out
}

// left counts the machines that still run on a host that is to be empty.
func (p Page) left() int {
	n := 0
	for _, m := range p.Machines {
		if m.Power != services.PowerStopped && m.Power != services.PowerAbsent {
			n++
		}
	}
	return n
}

func (p Page) count(of func(Card) bool) int {
	n := 0
	for _, c := range p.Cards {
		if of(c) {
			n++
		}
	}
	return n
}

func (p Page) attached() int {
	return p.count(func(c Card) bool { return c.GPU != "" && c.State != services.GPUAllocated })
}

func (p Page) reserved() int {
	return p.count(func(c Card) bool { return c.State == services.GPUAllocated })
}

func (p Page) out() int {
	return p.count(func(c Card) bool { return c.GPU == "" && c.Status != services.CardReady })
}

// free counts the cards that could be given out if the host took work.
func (p Page) free() int {
	return p.count(func(c Card) bool { return c.GPU == "" && c.Status == services.CardReady })
}

func (p Page) used() (vcores, memoryMiB int) {
	for _, m := range p.Machines {
		vcores += m.VCores
		memoryMiB += m.MemoryMiB
	}
	return vcores, memoryMiB
}

// offers reports whether the host's free cards are given out.
func (h Host) offers() bool { return h.Mode == services.HostAccepting && h.Ready && h.Vouched }

// fits says what machines could still start here.
func (p Page) fits(ctx context.Context) string {
	if !p.Host.offers() || p.free() == 0 {
		return ""
	}
	perNode := map[string]int{}
	for _, c := range p.Cards {
		if c.GPU == "" && c.Status == services.CardReady {
			perNode[number(c.NUMANode)]++
		}
	}
	most := 0
	for _, n := range perNode {
		most = max(most, n)
	}
	return i18n.T(ctx, "hosts.still-fits", "Near", most, "Across", p.free())
}

func number(n *int) string {
	if n == nil {
		return "–"
	}
	return strconv.Itoa(*n)
}

func (c Check) look() components.Look {
	switch {
	case c.OK:
		return components.Look{Tone: components.ToneOK, Icon: components.IconCheck}
	case c.Warning:
		return components.Look{Tone: components.ToneWait, Icon: components.IconInfo}
	}
	return components.Look{Tone: components.ToneBad, Icon: components.IconWarning}
}

// title names a check, by its code where a newer agent sent one that this
// console does not know.
func (c Check) title(ctx context.Context) string {
	key := "check." + c.Code + ".bad"
	if c.OK {
		key = "check." + c.Code + ".ok"
	}
	if !i18n.Has(ctx, key) {
		return c.Code
	}
	return i18n.T(ctx, key)
}

func (p Page) asks(mode services.HostMode) bool { return p.Asked.Mode == mode && len(p.Broken) > 0 }

func (p Page) reasonError(ctx context.Context, mode services.HostMode) string {
	if !p.asks(mode) {
		return ""
	}
	return components.Of(ctx, p.Broken, "reason")
}

func (p Page) confirmError(ctx context.Context, mode services.HostMode) string {
	if !p.asks(mode) {
		return ""
	}
	return components.Of(ctx, p.Broken, "confirm")
}

func asked(p Page, mode services.HostMode) string {
	if p.Asked.Mode != mode {
		return ""
	}
	return p.Asked.Reason
}

// picture is where the cards sit.
func (p Page) picture() topology.Picture {
	nodes := make([]topology.Node, 0, len(p.Nodes))
	for _, n := range p.Nodes {
		nodes = append(nodes, topology.Node(n))
	}
	cards := make([]topology.Card, 0, len(p.Cards))
	for _, c := range p.Cards {
		cards = append(cards, topology.Card{
			ID: c.ID, URL: urls.Card(c.ID), Model: c.Model, PCIAddress: c.PCIAddress, IOMMUGroup: c.IOMMUGroup, NUMANode: c.NUMANode, Driver: c.Driver,
			Functions: c.Functions, Parents: c.Parents, Status: c.Status, Reason: c.Reason, State: c.State, Held: c.GPU != "", Holder: c.holder(),
			Account: c.AccountName,
		})
	}
	return topology.Build(nodes, cards)
}

// holder names who has the card: the machine, else the GPU; empty: nobody.
func (c Card) holder() string {
	if c.VMName != "" {
		return c.VMName
	}
	return c.GPUName
}
