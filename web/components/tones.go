package components

import (
	"berth/services"
)

// Tone is the colour of a state: what it means for whoever looks at it.
type Tone string

// The tones.
const (
	ToneOK   Tone = "ok"   // as it should be
	ToneWait Tone = "wait" // something is awaited
	ToneBad  Tone = "bad"  // needs somebody
	ToneHeld Tone = "held" // at rest
	ToneInfo Tone = "info" // worth knowing
)

// Look is how a state shows.
type Look struct {
	Tone Tone
	Icon Icon
}

var gpuLooks = map[services.GPUState]Look{
	services.GPUAllocated: {ToneHeld, IconLock},
	services.GPUAttaching: {ToneWait, IconAttaching},
	services.GPUAttached:  {ToneOK, IconCheck},
	services.GPUDetaching: {ToneWait, IconDetaching},
}

// GPULook is how a GPU's state shows; a released one is at rest.
func GPULook(s services.GPUState) Look {
	if l, ok := gpuLooks[s]; ok {
		return l
	}
	return Look{ToneHeld, IconMinus}
}

var powerLooks = map[services.Power]Look{
	services.PowerPending:  {ToneWait, IconClock},
	services.PowerStarting: {ToneWait, IconPlay},
	services.PowerRunning:  {ToneOK, IconPower},
	services.PowerStopping: {ToneWait, IconClock},
	services.PowerStopped:  {ToneHeld, IconStop},
	services.PowerAbsent:   {ToneHeld, IconMinus},
}

// PowerLook is how a VM's power shows.
func PowerLook(p services.Power) Look { return powerLooks[p] }

var operationLooks = map[services.OperationState]Look{
	services.OpRunning:   {ToneWait, IconClock},
	services.OpStuck:     {ToneBad, IconWarning},
	services.OpDone:      {ToneOK, IconCheck},
	services.OpFailed:    {ToneBad, IconWarning},
	services.OpCancelled: {ToneHeld, IconBan},
}

// OperationLook is how an operation's state shows.
func OperationLook(s services.OperationState) Look { return operationLooks[s] }
