package hostagent

import (
	"slices"

	"berth/services/agentapi"
)

// action is one step towards what is wanted.
type action string

const (
	actNone   action = "none"   // nothing is left to do
	actWait   action = "wait"   // something is under way, or unknown
	actDefine action = "define" // make the VM, without cards
	actApply  action = "apply"  // type and cards of a stopped VM
	actStart  action = "start"
	actAdopt  action = "adopt" // take over the start's number for a VM that runs
	actStop   action = "stop"
	actKill   action = "kill" // turn off a VM that is to be removed
	actReboot action = "reboot"
	actRemove action = "remove"
	actClean  action = "clean"
)

// interruptible tells whether a step is broken off when something else is
// wanted. A stop that has begun is carried through: the guest was told.
func (a action) interruptible() bool { return a != actStop && a != actKill && a != actRemove }

// failure is the code of a problem where the driver named none.
func (a action) failure() string {
	switch a {
	case actDefine, actApply:
		return agentapi.ProblemBind
	case actStart:
		return agentapi.ProblemStart
	case actClean:
		return agentapi.ProblemReset
	default:
		return string(a) + "-failed"
	}
}

// nextForVM compares what is wanted of a VM with what was seen.
func nextForVM(want agentapi.DesiredVM, in Inspection) action {
	have := in.vm(want.ID)
	switch {
	case have == nil && in.Partial:
		return actWait
	case want.Power == agentapi.PowerAbsent:
		return nextForRemoval(want, have)
	case have == nil:
		return actDefine
	}
	switch have.Power {
	case agentapi.PowerStopped:
		return nextWhileStopped(want, have)
	case agentapi.PowerRunning:
		return nextWhileRunning(want, have)
	case agentapi.PowerStarting, agentapi.PowerStopping:
		if want.Power == agentapi.PowerStopped {
			return actStop
		}
	}
	return actWait
}

// nextForRemoval turns a VM off at once where its disk goes too, and lets the
// guest shut down where the disk moves on to another host.
func nextForRemoval(want agentapi.DesiredVM, have *agentapi.VMReport) action {
	switch {
	case have == nil:
		return actNone
	case have.Power == agentapi.PowerStopped:
		return actRemove
	case want.KeepDisk:
		return actStop
	default:
		return actKill
	}
}

func nextWhileStopped(want agentapi.DesiredVM, have *agentapi.VMReport) action {
	if !inPlace(want, have) {
		return actApply
	}
	if want.Power == agentapi.PowerRunning && !staysStopped(want, have) {
		return actStart
	}
	return actNone
}

// staysStopped: the start that is wanted was carried out, and the VM has ended
// since without the console's doing.
func staysStopped(want agentapi.DesiredVM, have *agentapi.VMReport) bool {
	ended := have.StoppedBy == agentapi.StoppedByGuest || have.StoppedBy == agentapi.StoppedByCrash
	return ended && have.Run >= want.Run
}

func nextWhileRunning(want agentapi.DesiredVM, have *agentapi.VMReport) action {
	switch {
	case want.Power == agentapi.PowerStopped:
		return actStop
	case have.Run < want.Run:
		return actAdopt
	case have.Reboots < want.Reboots:
		return actReboot
	}
	return actNone
}

// inPlace: the VM has the type and exactly the cards that are wanted.
func inPlace(want agentapi.DesiredVM, have *agentapi.VMReport) bool {
	return have.VCores == want.VCores && have.MemoryMiB == want.MemoryMiB &&
		slices.Equal(slices.Sorted(slices.Values(keys(want.Devices))), slices.Sorted(slices.Values(have.Devices)))
}

func keys(devices []agentapi.Device) []string {
	out := make([]string, len(devices))
	for i, d := range devices {
		out[i] = d.Key
	}
	return out
}

// nextForCard tells whether a cleaning order is still open. A card that is gone
// has none: it is reported missing, and its order is given again if it returns.
func nextForCard(want agentapi.DesiredCard, in Inspection) action {
	have := in.card(want.Key)
	switch {
	case have == nil && in.Partial:
		return actWait
	case have == nil || max(have.CleanedOrder, have.FailedOrder) >= want.CleanOrder:
		return actNone
	}
	return actClean
}
