// Package agentapi is the protocol between the console and the programs on the
// hosts: JSON over HTTP with mutual TLS, agents dial out. docs/agent-protocol.md
// describes it for those who write an agent in another language.
//
// The protocol is level-triggered. The console hands out the whole desired
// state of an agent's hosts with a revision; the agent converges on it and
// reports what it sees together with the revision that it has reached.
// Replaying any message is harmless.
package agentapi

import "time"

// Paths of the protocol on the console's agent listener.
const (
	PathEnrol   = "/agent/v1/enrol"   // POST, token instead of a client certificate
	PathRenew   = "/agent/v1/renew"   // POST
	PathReport  = "/agent/v1/report"  // POST
	PathDesired = "/agent/v1/desired" // GET ?since=N&wait=30s
)

// Power states of a VM, as wanted (running, stopped, absent) and as seen.
const (
	PowerStarting = "starting"
	PowerRunning  = "running"
	PowerStopping = "stopping"
	PowerStopped  = "stopped"
	PowerAbsent   = "absent"
)

// Who stopped a VM.
const (
	StoppedByConsole = "console" // the desired state said so
	StoppedByGuest   = "guest"   // a power-off from inside
	StoppedByCrash   = "crash"   // anything else
)

// Codes of problems that an agent reports. Consoles treat unknown ones as text.
const (
	ProblemHeld        = "held"         // a process holds the device; Holder and PID say which
	ProblemIdentity    = "identity"     // another card stands at that address
	ProblemGroup       = "group"        // the IOMMU group holds something that may not be bound
	ProblemInUse       = "in-use"       // another VM of this host has the card
	ProblemBind        = "bind-failed"  // the driver did not take the device
	ProblemReset       = "reset-failed" // the card did not come back from its reset
	ProblemStart       = "start-failed" // the hypervisor refused to start the VM
	ProblemUnsupported = "unsupported"  // the host can't do what is wanted
)

// Codes of refusals.
const (
	RefusalBadRequest      = "bad-request"      // 400: the body or query can't be read
	RefusalTokenUsed       = "token-used"       // 401: its agent has reported already
	RefusalTokenExpired    = "token-expired"    // 401
	RefusalUnauthorized    = "unauthorized"     // 401: no such token; no client certificate, or one that was replaced
	RefusalRevoked         = "revoked"          // 401: the operator withdrew the agent
	RefusalRevisionUnknown = "revision-unknown" // 409: since is larger than any revision made; ask again with 0
	RefusalTooLarge        = "too-large"        // 413: the body is over its limit
	RefusalUnavailable     = "unavailable"      // 503: try again later
)

// Codes of the readiness checks that every driver for a machine with cards
// reports. A check is named after what it would find.
const (
	FindingIOMMUOff     = "iommu-off"
	FindingVFIOMissing  = "vfio-modules-missing"
	FindingNouveauBound = "nouveau-bound"

	// Further checks, of drivers that look for them.
	FindingDriverInUse   = "driver-in-use"         // a process on the host uses a card
	FindingGroup         = "group-not-viable"      // an IOMMU group holds what can't be bound with its card
	FindingGroupCritical = "group-critical-device" // an IOMMU group holds what the host needs
	FindingReset         = "reset-failed"          // a card did not come back from its reset
	FindingNoReset       = "no-reset"              // a card has no way to be reset, so it can't be cleaned
	FindingUnreadable    = "device-unreadable"     // sysfs lists a device and does not describe it
	FindingGeneration    = "cpu-generation"        // the configuration names no CPU generation for this processor
	FindingNVMLMissing   = "nvml-missing"          // NVIDIA's management library does not answer
	FindingLibvirt       = "libvirt-unreachable"   // the daemon that runs the VMs does not answer
)

// ReasonStale is why a report was not taken that is no newer than the last.
const ReasonStale = "stale"

// EnrolRequest exchanges a one-time token for a client certificate.
type EnrolRequest struct {
	Token string `json:"token"` // as `berth enrol` printed it
	CSR   string `json:"csr"`   // PKCS#10, PEM; its subject is ignored
	Agent Agent  `json:"agent"`
}

// RenewRequest asks for a new certificate before the present one expires.
type RenewRequest struct {
	CSR string `json:"csr"` // PKCS#10, PEM
}

// Certificate answers enrolment and renewal.
type Certificate struct {
	AgentID     string    `json:"agent_id"`
	Certificate string    `json:"certificate"` // PEM
	CA          string    `json:"ca"`          // PEM, to check the console by
	ExpiresAt   time.Time `json:"expires_at"`  // renew when a third of the life is left
}

// Agent says which program speaks.
type Agent struct {
	Version string `json:"version"`
	Driver  string `json:"driver"` // "sim", "libvirt", ...
}

// Report is what an agent sees. Messages of one agent are ordered by
// (Epoch, Sequence); the console ignores one that is not newer than the last.
type Report struct {
	Epoch    int64        `json:"epoch"`    // grows with each start of the agent
	Sequence int64        `json:"sequence"` // grows with each report of one epoch
	Revision int64        `json:"revision"` // the desired revision that is reached in full, or was worked through with Problems
	Partial  bool         `json:"partial"`  // something could not be looked at: what is not listed is unknown, not gone
	Agent    Agent        `json:"agent"`
	Hosts    []HostReport `json:"hosts"`
}

// ReportAnswer says what became of a report.
type ReportAnswer struct {
	Accepted bool   `json:"accepted"`
	Reason   string `json:"reason,omitempty"` // why not: "stale", ...
	Revision int64  `json:"revision"`         // the newest desired revision
	// Epoch is the newest epoch that the console has of this agent. One whose
	// report is stale goes on with a larger one.
	Epoch int64 `json:"epoch,omitempty"`
}

// HostReport is one machine.
type HostReport struct {
	Name       string       `json:"name"`       // unique for the agent, e.g. "gpu-par-014"
	Generation string       `json:"generation"` // CPU generation as the operator maps it, e.g. "v7"; empty: unknown
	VCores     int          `json:"vcores"`     // for VMs
	MemoryMiB  int64        `json:"memory_mib"` // for VMs
	Kernel     string       `json:"kernel,omitempty"`
	NUMA       []NUMANode   `json:"numa,omitempty"` // empty: unknown
	Findings   []Finding    `json:"findings"`       // readiness; empty: nothing looked at
	Cards      []CardReport `json:"cards"`
	VMs        []VMReport   `json:"vms"`
}

// NUMANode is a node of a host with its share of cores and memory.
type NUMANode struct {
	ID        int   `json:"id"`
	Socket    int   `json:"socket"`
	VCores    int   `json:"vcores"`
	MemoryMiB int64 `json:"memory_mib"`
}

// Finding is one line of the readiness checklist.
type Finding struct {
	Code   string `json:"code"` // "iommu-off", "nouveau-bound", ...
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what the operator does about it
	// Warning: the check failed, and the host can still hand out its cards.
	Warning bool `json:"warning,omitempty"`
}

// CardReport is one physical GPU with all functions of its slot.
type CardReport struct {
	// Key is the card's identity on its agent: serial, else UUID, else
	// vendor:device:subsystem@slot. It stays while driver and address change.
	Key         string     `json:"key"`
	Serial      string     `json:"serial,omitempty"`
	UUID        string     `json:"uuid,omitempty"`
	VendorID    string     `json:"vendor_id"` // four hex digits, lower case: "10de"
	DeviceID    string     `json:"device_id"` // "26b5"
	SubsystemID string     `json:"subsystem_id,omitempty"`
	PCIAddress  string     `json:"pci_address"` // "0000:3b:00.0", the GPU function
	IOMMUGroup  *int       `json:"iommu_group"` // null: none; 0 is a group
	NUMANode    *int       `json:"numa_node"`   // null: unknown
	Functions   []Function `json:"functions"`
	VBIOS       string     `json:"vbios,omitempty"`    // version; empty: unknown
	Firmware    string     `json:"firmware,omitempty"` // version of the GPU's own processor; empty: unknown
	// Parents are what stands above the card, from its root complex down:
	// "pci0000:3a", "0000:3a:01.0", ... Cards under one switch share its
	// bridge. Empty: unknown.
	Parents []string `json:"parents,omitempty"`
	// CleanedOrder is the number of the last cleaning order that ended well;
	// FailedOrder that of the last one that did not (Problem says why).
	CleanedOrder int64    `json:"cleaned_order"`
	FailedOrder  int64    `json:"failed_order,omitempty"`
	Problem      *Problem `json:"problem,omitempty"`
}

// Function is one PCI function of a card's slot.
type Function struct {
	Address string `json:"address"` // "0000:3b:00.1"
	Class   string `json:"class"`   // "0300"
	Driver  string `json:"driver"`  // empty: none
}

// VMReport is one VM that the console handed to this agent. VMs of others on
// the same host are not reported here.
type VMReport struct {
	ID        string   `json:"id"`       // "i-5be20f11"
	Revision  int64    `json:"revision"` // the newest desired revision that this VM has reached, or is blocked at by Problem; others may be behind
	Power     string   `json:"power"`    // absent: the host has no such VM; it was removed, or Problem kept it from being made
	Run       int64    `json:"run"`      // the start that was last carried out
	Reboots   int64    `json:"reboots"`
	StoppedBy string   `json:"stopped_by,omitempty"` // while stopped
	Devices   []string `json:"devices"`              // keys of the cards in its definition, bound and read back
	VCores    int      `json:"vcores"`
	MemoryMiB int64    `json:"memory_mib"`
	Problem   *Problem `json:"problem,omitempty"` // what keeps it from what is wanted
}

// Problem is why something wanted is not done.
type Problem struct {
	Code    string    `json:"code"`
	Message string    `json:"message"` // for an operator, English
	Card    string    `json:"card,omitempty"`
	Holder  string    `json:"holder,omitempty"` // name of the process or VM that holds it
	PID     int       `json:"pid,omitempty"`
	Since   time.Time `json:"since"`
	// Final: the agent has given up until the desired state changes. Otherwise it keeps trying.
	Final bool `json:"final"`
}

// Desired is the whole desired state of an agent's hosts.
type Desired struct {
	Revision int64         `json:"revision"`
	Hosts    []DesiredHost `json:"hosts"`
}

// DesiredHost lists what one host should have. A VM or card that is not listed
// is none of the agent's business: it is left as it is.
type DesiredHost struct {
	Name  string        `json:"name"`
	VMs   []DesiredVM   `json:"vms"`
	Cards []DesiredCard `json:"cards"`
}

// DesiredVM is one VM. Type and Devices are applied while it is stopped, never
// while it runs; before a start both are in place.
type DesiredVM struct {
	ID    string `json:"id"`
	Power string `json:"power"` // running, stopped or absent
	// Run numbers the starts. A VM that was started for this number and then
	// powered off from inside, or crashed, stays stopped until the number
	// grows. One that runs already takes over a larger number as it is.
	Run int64 `json:"run"`
	// Reboots counts the wanted reboots. While its own count is lower the agent
	// reboots the running VM, once for all that were asked meanwhile. A start
	// settles them as well. A reboot is no stop.
	Reboots   int64    `json:"reboots"`
	KeepDisk  bool     `json:"keep_disk"` // with absent: the VM moves to another host, its disk stays
	VCores    int      `json:"vcores"`
	MemoryMiB int64    `json:"memory_mib"`
	Image     string   `json:"image"`
	SSHKey    string   `json:"ssh_key,omitempty"`
	UserData  string   `json:"user_data,omitempty"` // cloud-init
	Devices   []Device `json:"devices"`
}

// Device is a card to hand to a VM, with what the agent must find there before it binds.
type Device struct {
	Key        string `json:"key"`
	PCIAddress string `json:"pci_address"` // where the console last saw it
	IOMMUGroup *int   `json:"iommu_group"`
}

// DesiredCard is a card to be reset and scrubbed, once no VM has it.
type DesiredCard struct {
	Key        string `json:"key"`
	CleanOrder int64  `json:"clean_order"` // carry out while the own CleanedOrder and FailedOrder are lower
}

// Refusal is the body of every answer outside 2xx.
type Refusal struct {
	Code    string `json:"code"`    // "bad-request", "unauthorized", "revoked", "token-used", "token-expired", ...
	Message string `json:"message"` // what to change
}
