package services

import "slices"

// GPUState is where a flexible GPU stands in its life cycle. A released GPU
// and a GPU of another kind have none (empty).
type GPUState string

// The four states, spelled exactly so everywhere.
const (
	GPUAllocated GPUState = "allocated"
	GPUAttaching GPUState = "attaching"
	GPUAttached  GPUState = "attached"
	GPUDetaching GPUState = "detaching"
)

// GPUStates lists the states in the order of the life cycle.
var GPUStates = []GPUState{GPUAllocated, GPUAttaching, GPUAttached, GPUDetaching}

// Valid reports whether s is one of the four states.
func (s GPUState) Valid() bool {
	return s == GPUAllocated || s == GPUAttaching || s == GPUAttached || s == GPUDetaching
}

// GPUKind says how a GPU comes and goes.
type GPUKind string

// The kinds: flexible GPUs live by the life cycle; built-in ones come and go with their VM.
const (
	GPUFlexible GPUKind = "flexible"
	GPUBuiltIn  GPUKind = "built-in"
)

// Power is what an agent saw of a VM, or what the console wants of it. Only
// running, stopped and absent can be wanted.
type Power string

// The power states. Pending means that no agent has reported the VM yet.
const (
	PowerPending  Power = "pending"
	PowerStarting Power = "starting"
	PowerRunning  Power = "running"
	PowerStopping Power = "stopping"
	PowerStopped  Power = "stopped"
	PowerAbsent   Power = "absent"
)

// Valid reports whether p is a known power state.
func (p Power) Valid() bool {
	switch p {
	case PowerPending, PowerStarting, PowerRunning, PowerStopping, PowerStopped, PowerAbsent:
		return true
	}
	return false
}

// PowerAction is what a user asks of a VM's power.
type PowerAction string

// The actions of the power form.
const (
	ActionStart     PowerAction = "start"
	ActionStop      PowerAction = "stop"
	ActionReboot    PowerAction = "reboot"
	ActionStopStart PowerAction = "stop-start"
)

// Valid reports whether a is one of the four actions.
func (a PowerAction) Valid() bool {
	return a == ActionStart || a == ActionStop || a == ActionReboot || a == ActionStopStart
}

// OperationKind is a change of a VM that takes several steps.
type OperationKind string

// The kinds of operation.
const (
	OpCreate    OperationKind = "create"
	OpStart     OperationKind = "start"
	OpStop      OperationKind = "stop"
	OpReboot    OperationKind = "reboot"
	OpStopStart OperationKind = "stop-start"
	OpResize    OperationKind = "resize"
	OpDelete    OperationKind = "delete"
)

// OperationState is how far an operation is.
type OperationState string

// A stuck operation has passed its deadline; it still ends by itself when what
// it waits for comes true, and until then offers retry and cancel.
const (
	OpRunning   OperationState = "running"
	OpStuck     OperationState = "stuck"
	OpDone      OperationState = "done"
	OpFailed    OperationState = "failed"
	OpCancelled OperationState = "cancelled"
)

// CardCondition is the operator's side of a card.
type CardCondition string

// The conditions. Only a ready card is offered.
const (
	CardReady       CardCondition = "ready"
	CardCleaning    CardCondition = "cleaning"
	CardQuarantined CardCondition = "quarantined"
	CardDisabled    CardCondition = "disabled"
	CardMissing     CardCondition = "missing"
	CardNeedsReview CardCondition = "needs_review"
	CardRetired     CardCondition = "retired" // no longer part of the fleet
)

// CardConditions lists the conditions, the ones that need somebody last.
var CardConditions = []CardCondition{
	CardReady, CardCleaning, CardDisabled, CardQuarantined, CardMissing, CardNeedsReview, CardRetired,
}

// Valid reports whether c is one of the conditions.
func (c CardCondition) Valid() bool { return slices.Contains(CardConditions, c) }

// CardAction is what an operator asks of a card.
type CardAction string

// The actions of a card's form.
const (
	CardEnable       CardAction = "enable"        // a disabled card is prepared and offered again
	CardDisable      CardAction = "disable"       // no longer offered
	CardQuarantine   CardAction = "quarantine"    // no longer offered, for a fault
	CardReturn       CardAction = "return"        // a quarantined or reviewed card is prepared and offered again
	CardRetire       CardAction = "retire"        // leaves the fleet
	CardForceRelease CardAction = "force-release" // is taken from its holder
	CardRetry        CardAction = "retry"         // a preparation is ordered anew
	CardRollBack     CardAction = "roll-back"     // a preparation is given up
)

// CardActions lists the actions in the order of the form.
var CardActions = []CardAction{
	CardEnable, CardReturn, CardRetry, CardRollBack, CardDisable, CardQuarantine, CardForceRelease, CardRetire,
}

// Valid reports whether a is one of the actions.
func (a CardAction) Valid() bool { return slices.Contains(CardActions, a) }

// HostMode says whether a host takes new work.
type HostMode string

// The modes of a host.
const (
	HostAccepting   HostMode = "accepting"
	HostDraining    HostMode = "draining"
	HostMaintenance HostMode = "maintenance"
)

// HostModes lists the modes from most work to none.
var HostModes = []HostMode{HostAccepting, HostDraining, HostMaintenance}

// Valid reports whether m is one of the modes.
func (m HostMode) Valid() bool { return slices.Contains(HostModes, m) }

// Storage says where the disks of a zone's VMs lie.
type Storage string

// With shared storage a stopped VM may start on any host of its zone; with
// local storage it stays on its host.
const (
	StorageShared Storage = "shared"
	StorageLocal  Storage = "local"
)

// Role is what a member may do in an account.
type Role string

// The roles: a viewer reads, a member also changes GPUs and VMs, an owner also
// manages the account.
const (
	RoleOwner  Role = "owner"
	RoleMember Role = "member"
	RoleViewer Role = "viewer"
)

// CanWrite reports whether the role may change GPUs and VMs.
func (r Role) CanWrite() bool { return r == RoleOwner || r == RoleMember }

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r == RoleOwner || r == RoleMember || r == RoleViewer }
