// Package passthrough takes cards from the host's drivers for VMs, and gives
// them back: through driver_override, with all functions of the slot, and never
// waiting longer than its context. What the drivers were is on disk before
// anything is touched, so that a card finds its way home whatever happens to
// the agent meanwhile.
package passthrough
