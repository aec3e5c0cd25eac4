package components

import (
	"context"
	"strings"
	"time"

	"berth/services"
	"berth/web/i18n"
)

// Progress is an operation on a VM, step by step.
type Progress struct {
	ID       services.OperationID
	Kind     services.OperationKind
	State    services.OperationState
	Steps    []string // "halt", "settle", ...; texts "step.<name>"
	At       int      // index of the present step; len(Steps) where all are done
	Reason   string   // why it is stuck or failed, "late" or "error.no-capacity"; empty: none
	Detail   string   // what the host says, for people who can read it
	Actor    string
	Since    time.Time
	Deadline time.Time
	Now      time.Time
	VM       services.VMID
	VMName   string
}

// Open reports whether the operation has still to end.
func (p Progress) Open() bool {
	return p.State == services.OpRunning || p.State == services.OpStuck
}

// Retriable reports whether it can be given another try.
func (p Progress) Retriable() bool {
	return p.State == services.OpStuck || p.State == services.OpFailed
}

// Why says why it is stuck or failed, empty where nothing is known.
func (p Progress) Why(ctx context.Context) string {
	if code, ok := strings.CutPrefix(p.Reason, "error."); ok {
		return Sentence(ctx, services.Violation{Code: services.Code(code), Args: map[string]any{"VM": p.VMName}})
	}
	if p.Reason == "" || !i18n.Has(ctx, "reason."+p.Reason) {
		return p.Reason
	}
	return i18n.T(ctx, "reason."+p.Reason)
}

func (p Progress) look(step int) Look {
	switch {
	case step < p.At || p.State == services.OpDone:
		return Look{ToneOK, IconCheck}
	case step > p.At:
		return Look{ToneHeld, IconDot}
	case p.State == services.OpFailed || p.State == services.OpStuck:
		return Look{ToneBad, IconWarning}
	case p.State == services.OpCancelled:
		return Look{ToneHeld, IconBan}
	}
	return Look{ToneWait, IconClock}
}

// stepState is the word for a step's place, as data-state.
func (p Progress) stepState(step int) string {
	switch {
	case step < p.At || p.State == services.OpDone:
		return "done"
	case step > p.At:
		return "next"
	}
	return string(p.State)
}
