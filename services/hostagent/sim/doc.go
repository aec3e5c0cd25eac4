// Package sim is the driver without hardware: hosts, cards and VMs in memory
// that take their time and break when they are told to.
//
// The lab and the tests run the same agent with it that runs with a real
// driver. With a state file the simulated hosts outlive the process as real ones
// would: VMs go on running and what was booting finishes.
//
// A fault is injected by a method of Driver, at any time, while the agent works.
package sim
