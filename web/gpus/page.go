package gpus

import (
	"context"
	"strings"
	"time"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is a GPU's page.
type Page struct {
	layout.Shell
	GPU     GPU
	Limits  Limits
	Quota   *Quota                 // for its model in its region; nil: not shown
	Machine *Machine               // nil: none
	Pending *Pending               // nil: it waits for nothing
	Attach  *Attach                // the picker; nil: it can't be attached now
	Events  []components.Happening // newest first
	Broken  []services.Violation   // why the last action was refused
	Key     string                 // idempotency: drawn anew for each rendering
}

// GPU is the object itself.
type GPU struct {
	ID                 services.GPUID
	Name               string
	Kind               services.GPUKind
	Model              string
	Memory             catalog.Memory
	Generation         string // empty: any
	Zone               string
	Region             string
	State              services.GPUState // empty: released, or built in
	Since              time.Time         // of the state
	AllocatedAt        time.Time
	ReleasedAt         time.Time // zero: it is still held
	DeleteOnVMDeletion bool
	DriverBranch       string // the oldest NVIDIA branch that knows the model; empty: unknown
}

// Released reports whether it has left the account.
func (g GPU) Released() bool { return !g.ReleasedAt.IsZero() }

// BuiltIn reports whether it comes and goes with its VM.
func (g GPU) BuiltIn() bool { return g.Kind == services.GPUBuiltIn }

// Limits are those of the GPU's model in its region, and what it costs there.
// Zero does not bind.
type Limits struct {
	MaxVCores    int
	MaxMemoryMiB int
	Generations  []string
	HourlyPrice  string // in euros, "2.5000"; empty: none is named
}

// Quota is how many GPUs of a model the account has in a region.
type Quota struct {
	Region string
	Model  string
	Used   int
	Max    *int // nil: unlimited
}

// Machine is the VM that a GPU is attached to, or will be, or leaves.
type Machine struct {
	ID          services.VMID
	Name        string
	Power       services.Power
	PowerSince  time.Time
	Type        string
	VCores      int
	MemoryMiB   int
	Generation  string
	Performance string
	Peers       []Peer // its other GPUs
	Operation   *components.Progress
}

// Peer is another GPU of the same machine.
type Peer struct {
	ID    services.GPUID
	Name  string
	Model string
	State services.GPUState // empty: built in
}

// Stopped reports whether a change takes effect without interrupting anything.
func (m Machine) Stopped() bool { return m.Power == services.PowerStopped }

// PerGPU is the number of vCores for each GPU, the given one counted too.
func (m Machine) PerGPU() int { return m.VCores / (len(m.Peers) + 1) }

// Pending is why the GPU is not yet what it is to become.
type Pending struct {
	OnHost     bool      // the machine is stopped, its host has to confirm; else the machine has to stop
	Since      time.Time // of this wait
	Deadline   time.Time // zero: none, since the wait is the user's own
	HostSilent bool
	HostSeen   time.Time // the host's last report
	Problem    *Problem  // what the host says keeps it
}

// Problem is what a host reported.
type Problem struct {
	Message string // for people who run hosts, in English
	Holder  string // who holds the device; empty: nobody is known
	PID     int
	Since   time.Time
	Final   bool // the host has given up until something changes
}

// Attach is the picker of machines.
type Attach struct {
	Machines []Choice
	Chosen   services.VMID
	More     int // machines that the picker leaves out
}

// Choice is a machine that the GPU can be attached to, or not and why.
type Choice struct {
	ID      services.VMID
	Name    string
	Type    string
	Power   services.Power
	Reasons []services.Violation
}

func (a Attach) options(ctx context.Context) []components.Option {
	options := make([]components.Option, 0, len(a.Machines))
	for _, m := range a.Machines {
		options = append(options, components.Option{
			Value: string(m.ID), Label: m.Name,
			Detail:   i18n.T(ctx, "gpu.machine-detail", "Type", m.Type, "Power", i18n.T(ctx, "power."+string(m.Power))),
			Reason:   components.Reasons(ctx, m.Reasons),
			Selected: m.ID == a.Chosen && len(m.Reasons) == 0,
		})
	}
	return options
}

// possible reports whether any machine can be chosen.
func (a Attach) possible() bool {
	for _, m := range a.Machines {
		if len(m.Reasons) == 0 {
			return true
		}
	}
	return false
}

func (p Page) region() components.Region {
	events := []string{components.GPUEvent(string(p.GPU.ID))}
	if p.Machine != nil {
		events = append(events, components.VMEvent(string(p.Machine.ID)))
	}
	if p.Attach != nil {
		events = append(events, components.EventVMs)
	}
	return components.Region{ID: "gpu", Fragment: urls.GPUFragment(p.GPU.ID), Events: events}
}

func (p Page) key(form string) string { return p.Key + "-" + form }

// overdue reports whether the host has had its time.
func (p Page) overdue() bool {
	return p.Pending != nil && !p.Pending.Deadline.IsZero() && p.Now.After(p.Pending.Deadline)
}

// stuck reports whether a wait needs somebody.
func (p Page) stuck() bool {
	return p.overdue() || p.Pending != nil && p.Pending.Problem != nil && p.Pending.Problem.Final
}

func (p Page) pendingLook() components.Look {
	if p.stuck() {
		return components.Look{Tone: components.ToneBad, Icon: components.IconWarning}
	}
	return components.Look{Tone: components.ToneWait, Icon: components.IconClock}
}

// restartable reports whether stopping and starting the machine would end the wait.
func (p Page) restartable() bool {
	return p.CanWrite() && p.Pending != nil && !p.Pending.OnHost && p.Machine != nil && p.Machine.Operation == nil &&
		p.Machine.Power == services.PowerRunning
}

// working counts the GPUs that work in the machine now and would be
// interrupted by a stop.
func (p Page) working() int {
	n := 0
	if p.GPU.State == services.GPUDetaching {
		n++
	}
	for _, o := range p.Machine.Peers {
		if o.State == services.GPUAttached || o.State == services.GPUDetaching || o.State == "" {
			n++
		}
	}
	return n
}

// factLine follows the model's name: ", 80 GB HBM3, generation v7, eu-west-2a".
func factLine(ctx context.Context, g GPU) string {
	line := ""
	if memory := components.Memory(ctx, g.Memory); memory != "" {
		line += ", " + memory
	}
	if g.Generation != "" {
		line += ", " + i18n.T(ctx, "gpu.generation-is", "Generation", g.Generation)
	}
	return line + ", " + g.Zone
}

// words write the quota with its use; none at all never reads as unlimited.
func (q Quota) words(ctx context.Context) string {
	if q.Max == nil {
		return i18n.T(ctx, "gpu.quota-unlimited", "Used", q.Used)
	}
	return i18n.T(ctx, "gpu.quota-of", "Used", q.Used, "Max", *q.Max)
}

// words list the limits of a machine that takes the GPU.
func (l Limits) words(ctx context.Context) string {
	var parts []string
	if l.MaxVCores > 0 {
		parts = append(parts, i18n.T(ctx, "gpu.max-vcores", "Count", l.MaxVCores))
	}
	if l.MaxMemoryMiB > 0 {
		parts = append(parts, i18n.GiB(ctx, l.MaxMemoryMiB))
	}
	if len(l.Generations) > 0 {
		parts = append(parts, strings.Join(l.Generations, i18n.T(ctx, "gpu.or")))
	}
	if len(parts) == 0 {
		return i18n.T(ctx, "gpu.any-size")
	}
	return strings.Join(parts, ", ")
}
