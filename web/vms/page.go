package vms

import (
	"slices"
	"time"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is a machine's page.
type Page struct {
	layout.Shell
	VM        Machine
	GPUs      []GPU                // open ones, built-in ones too
	Operation *components.Progress // the open one, else the last; nil: none
	Pending   *Pending             // what planned GPUs wait for; nil: none is planned
	Limits    *Limits              // of its GPUs' model in its region; nil: it has no flexible GPU
	Driver    *Driver              // for its GPUs' model; nil: it has none
	Attach    *Attach              // the picker; nil: it can't take flexible GPUs
	Events    []components.Happening
	Broken    []services.Violation // why the last action was refused
	Key       string               // idempotency: drawn anew for each rendering
}

// Machine is the object itself.
type Machine struct {
	ID          services.VMID
	Name        string
	Type        string
	VCores      int
	MemoryMiB   int
	Generation  string
	Performance catalog.Performance
	Tenancy     catalog.Tenancy
	Inference   bool // its type has GPUs built in
	Zone        string
	Region      string
	Storage     services.Storage
	Image       string // by the name that people know, e.g. "Debian 12"
	SSHKey      string // empty: none
	UserData    string // empty: none
	Power       services.Power
	PowerSince  time.Time
	Wanted      services.Power // what was ordered last: running, stopped or absent
	CreatedAt   time.Time
	DeletedAt   time.Time // zero: it is there
	Resumes     bool      // its host is in maintenance: it starts by itself when that ends
}

// Deleted reports whether it was deleted; its host may still be cleaning up.
func (m Machine) Deleted() bool { return !m.DeletedAt.IsZero() }

// shown is the power that the page's head shows.
func (m Machine) shown() services.Power {
	if m.Deleted() {
		return services.PowerAbsent
	}
	return m.Power
}

// GPU is one that the machine has, awaits or is to lose.
type GPU struct {
	ID                 services.GPUID
	Name               string
	Model              string
	Kind               services.GPUKind
	State              services.GPUState // empty: built in
	Since              time.Time         // of the state
	DeleteOnVMDeletion bool
}

// BuiltIn reports whether it comes and goes with the machine.
func (g GPU) BuiltIn() bool { return g.Kind == services.GPUBuiltIn }

// Waits reports whether it waits for a stop or for the host.
func (g GPU) Waits() bool {
	return g.State == services.GPUAttaching || g.State == services.GPUDetaching
}

// works reports whether a stop would take it from running programs.
func (g GPU) works() bool {
	return g.BuiltIn() || g.State == services.GPUAttached || g.State == services.GPUDetaching
}

// Pending is what planned GPUs wait for.
type Pending struct {
	OnHost     bool      // the machine is stopped, its host has to confirm; else the machine has to stop
	Since      time.Time // of the longest wait
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

// Limits are those of a GPU model in a region. Zero does not bind.
type Limits struct {
	Model        string
	Region       string
	MaxVCores    int
	MaxMemoryMiB int
	Generations  []string // empty: any
}

// Driver says which driver people are to install in the machine.
type Driver struct {
	Model  string
	Branch string // the oldest NVIDIA branch that knows the model; empty: unknown
}

// Attach is the picker of GPUs, several at once.
type Attach struct {
	GPUs   []Choice         // selectable ones first
	Chosen []services.GPUID // of a refused form
	More   int              // GPUs that the picker leaves out
}

// Choice is a GPU that the machine can get, or not and why.
type Choice struct {
	ID      services.GPUID
	Name    string
	Model   string
	Zone    string
	Reasons []services.Violation
}

// possible reports whether any GPU can be chosen.
func (a Attach) possible() bool {
	return slices.ContainsFunc(a.GPUs, func(c Choice) bool { return len(c.Reasons) == 0 })
}

func (a Attach) chosen(c Choice) bool { return len(c.Reasons) == 0 && slices.Contains(a.Chosen, c.ID) }

func (p Page) region() components.Region {
	return components.Region{
		ID: "vm", Fragment: urls.VMFragment(p.VM.ID), Events: []string{components.VMEvent(string(p.VM.ID)), components.EventGPUs},
	}
}

func (p Page) key(form string) string { return p.Key + "-" + form }

// open is the operation under way; nil: none.
func (p Page) open() *components.Progress {
	if p.Operation != nil && p.Operation.Open() {
		return p.Operation
	}
	return nil
}

// told is the operation that the page shows: one under way, or one that failed
// and may be tried again.
func (p Page) told() *components.Progress {
	if p.open() == nil && (p.Operation == nil || p.Operation.State != services.OpFailed) {
		return nil
	}
	return p.Operation
}

// can reports whether an action on the power would be accepted now.
func (p Page) can(a services.PowerAction) bool {
	if !p.CanWrite() || p.VM.Deleted() || p.open() != nil && a != services.ActionStop {
		return false
	}
	switch a {
	case services.ActionStart:
		return p.VM.Wanted == services.PowerStopped
	case services.ActionReboot:
		return p.VM.Wanted == services.PowerRunning && p.VM.Power == services.PowerRunning
	default:
		return p.VM.Wanted == services.PowerRunning
	}
}

func (p Page) gpus(is func(GPU) bool) []GPU {
	var out []GPU
	for _, g := range p.GPUs {
		if is(g) {
			out = append(out, g)
		}
	}
	return out
}

// working lists the GPUs that a stop would take from running programs.
func (p Page) working() []GPU { return p.gpus(GPU.works) }

// planned lists the GPUs that change at the next stop.
func (p Page) planned() []GPU { return p.gpus(GPU.Waits) }

// kept lists the GPUs that stay in the account when the machine is deleted.
func (p Page) kept() []GPU {
	return p.gpus(func(g GPU) bool { return !g.BuiltIn() && !g.DeleteOnVMDeletion })
}

// released lists the GPUs that leave the account with the machine.
func (p Page) released() []GPU {
	return p.gpus(func(g GPU) bool { return g.BuiltIn() || g.DeleteOnVMDeletion })
}

// staying counts the GPUs that the machine has after its next stop.
func (p Page) staying() int {
	return len(p.gpus(func(g GPU) bool { return g.State != services.GPUDetaching }))
}

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

func (p Page) maxVCores() int {
	if p.Limits == nil {
		return 0
	}
	return p.Limits.MaxVCores
}

func (p Page) maxMemoryMiB() int {
	if p.Limits == nil {
		return 0
	}
	return p.Limits.MaxMemoryMiB
}

// allocation fills in the form that allocates a GPU for the machine.
func (p Page) allocation() urls.Allocation {
	a := urls.Allocation{Zone: p.VM.Zone}
	if p.Limits != nil {
		a.Model = p.Limits.Model
	}
	return a
}

// detachTitle is the key of what a detachment means now.
func detachTitle(p Page) string {
	if p.VM.Power == services.PowerStopped {
		return "gpu.detach-now"
	}
	return "gpu.detach-later"
}
