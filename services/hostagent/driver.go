package hostagent

import (
	"context"
	"time"

	"berth/services/agentapi"
)

// Driver is one way to run VMs with cards. Package contract tests what it must
// keep to.
//
// All methods may be called at the same time, for one host too; the agent calls
// at most one of Machines at a time for one VM. A method returns soon after its
// context ends, even where the kernel does not let go of what it started. Errors
// that an operator can do something about are *Blocked.
type Driver interface {
	Inspector
	Machines
	Cleaner
}

// Inspector looks, and changes nothing.
type Inspector interface {
	// Name is the driver's word in reports, e.g. "sim".
	Name() string
	// Hosts names the machines that this driver serves.
	Hosts(ctx context.Context) ([]string, error)
	// Inspect describes one host. An error means that nothing is known, and an
	// Inspection with Partial that what it lacks is unknown.
	Inspect(ctx context.Context, host string) (Inspection, error)
	// Changes delivers after anything changed on any host that an inspection
	// would show. Several changes may come as one.
	Changes() <-chan struct{}
}

// Machines carries out single steps on the VMs of a host. Each converges: what
// is already so is left as it is, and a repeat after an interruption finishes it.
type Machines interface {
	// Apply makes the VM where it does not exist, and gives a stopped VM the
	// vCores, memory and cards of want: cards that it no longer has go back to
	// their former drivers, new ones are bound with all their functions and read
	// back. Image, SSHKey and UserData count only where the VM is made.
	//
	// Right before a card is bound its identity, address and IOMMU group are
	// checked, and that no other VM has it: ProblemIdentity, ProblemGroup,
	// ProblemInUse. A device that a process holds is ProblemHeld with Holder and
	// PID, at the latest when ctx ends; one that did not come over is
	// ProblemBind. After an error the cards that were done stay done.
	// A VM that is not stopped is left alone, with an error.
	Apply(ctx context.Context, host string, want agentapi.DesiredVM) error
	// Start starts a stopped VM, returns when it runs and keeps counts with it,
	// so that Inspect shows them as soon as the VM is running and after any
	// restart. Where the VM runs, it keeps counts and does nothing else. Errors:
	// ProblemStart.
	Start(ctx context.Context, host, vm string, counts Counts) error
	// Stop asks the guest to shut down, after grace turns the VM off, and
	// returns when it is stopped, by the console. A grace of 0 turns it off at
	// once. Once ctx ends it may go on shutting down.
	Stop(ctx context.Context, host, vm string, grace time.Duration) error
	// Reboot restarts the guest without the VM ever being stopped, and keeps
	// reboots with it. On a VM that does not run it is an error.
	Reboot(ctx context.Context, host, vm string, reboots int64) error
	// Remove forgets a stopped VM, gives its cards back, and deletes its disk
	// unless keepDisk. A VM that is not stopped is left alone, with an error.
	Remove(ctx context.Context, host, vm string, keepDisk bool) error
}

// Cleaner makes a card fit for the next tenant.
type Cleaner interface {
	// Clean resets and scrubs a card that no VM has, and keeps order with it as
	// CleanedOrder; or, where it tried and failed or ctx's deadline passed, as
	// FailedOrder, with an error ProblemReset. Other errors (ProblemInUse,
	// ProblemIdentity, a cancelled ctx) mean that it did not try, or not to the
	// end: order is not kept.
	Clean(ctx context.Context, host, card string, order int64) error
}

// Counts are the numbers that a driver keeps with a running VM.
type Counts struct {
	Run     int64
	Reboots int64
}

// Inspection is what a driver sees on one host.
type Inspection struct {
	// Host lists all cards, and the VMs that a console handed out. Problems in it
	// are those that stand by themselves; the agent adds those of its own steps.
	Host agentapi.HostReport
	// Holders tells which VM has a card in its definition, by the card's key.
	// It names VMs of others too.
	Holders map[string]string
	// Partial: something could not be looked at.
	Partial bool
}

func (in Inspection) vm(id string) *agentapi.VMReport {
	for i := range in.Host.VMs {
		if in.Host.VMs[i].ID == id {
			return &in.Host.VMs[i]
		}
	}
	return nil
}

func (in Inspection) card(key string) *agentapi.CardReport {
	for i := range in.Host.Cards {
		if in.Host.Cards[i].Key == key {
			return &in.Host.Cards[i]
		}
	}
	return nil
}
