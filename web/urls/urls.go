// Package urls builds every URL of the console, so that no page assembles one
// from text. Handlers register the same paths.
//
// Pages are whole documents under their own URL. A part of a page that changes
// by itself is a fragment; fragments live under /fragments/, and take the same
// query as their page.
package urls

import (
	"net/url"

	"berth/services"
)

// Pages and actions without parameters.
const (
	Home     = "/"
	Login    = "/login"
	Logout   = "/logout"          // POST
	Events   = "/events"          // the live stream
	Account  = "/session/account" // POST account, back
	Region   = "/session/region"  // POST region (empty: all), back
	Language = "/session/locale"  // POST locale, back
	Theme    = "/session/theme"   // POST theme, back
	GPUsBulk = "/gpus/bulk"       // POST gpu (repeated), action, vm, idempotency_key
	Quotas   = "/quotas"
	Admin    = "/admin"
)

// Fragments without parameters.
const (
	OverviewFragment = "/fragments/overview"
	AdminFragment    = "/fragments/admin"
	PaletteFragment  = "/fragments/palette"
)

// Nav is the sidebar's list, whose counts change by themselves; section is the
// one that the page belongs to.
func Nav(section string) string {
	q := url.Values{}
	set(q, "section", section)
	return with("/fragments/nav", q)
}

func with(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

// GPUQuery narrows, sorts and pages the list of GPUs. The zero value is the
// first page of all, newest first.
type GPUQuery struct {
	State string // a state, or "waiting" for attaching and detaching
	Model string
	Zone  string
	Text  string // q: part of a name or an id
	Sort  string // "name", "-name", "created"; empty: newest first
	After services.GPUID
}

// Values are the query's parameters, without the empty ones.
func (g GPUQuery) Values() url.Values {
	q := url.Values{}
	set(q, "state", g.State)
	set(q, "model", g.Model)
	set(q, "zone", g.Zone)
	set(q, "q", g.Text)
	set(q, "sort", g.Sort)
	set(q, "after", string(g.After))
	return q
}

// Narrowed reports whether the query leaves anything out.
func (g GPUQuery) Narrowed() bool {
	return g.State != "" || g.Model != "" || g.Zone != "" || g.Text != ""
}

// GPUs is the list of GPUs.
func GPUs(q GPUQuery) string { return with("/gpus", q.Values()) }

// GPUsFragment is the list's part that changes by itself.
func GPUsFragment(q GPUQuery) string { return with("/fragments/gpus", q.Values()) }

// Allocation fills in the form that allocates a GPU.
type Allocation struct {
	Model string
	Zone  string
}

// Values are the choice's parameters, without the empty ones.
func (a Allocation) Values() url.Values {
	q := url.Values{}
	set(q, "model", a.Model)
	set(q, "zone", a.Zone)
	return q
}

// NewGPU is the form that allocates a GPU. It is posted to GPUs.
func NewGPU(a Allocation) string { return with("/gpus/new", a.Values()) }

// NewGPUFragment is the form's answer to what is filled in so far.
const NewGPUFragment = "/fragments/gpus/new"

// GPU is a GPU's page.
func GPU(id services.GPUID) string { return "/gpus/" + string(id) }

// GPUFragment is the part of a GPU's page that changes by itself.
func GPUFragment(id services.GPUID) string { return "/fragments/gpus/" + string(id) }

// GPUAttach takes POST vm, idempotency_key.
func GPUAttach(id services.GPUID) string { return GPU(id) + "/attach" }

// GPUDetach takes POST idempotency_key: plans a detachment, or cancels an attachment.
func GPUDetach(id services.GPUID) string { return GPU(id) + "/detach" }

// GPURelease takes POST idempotency_key.
func GPURelease(id services.GPUID) string { return GPU(id) + "/release" }

// GPURename takes POST name, idempotency_key.
func GPURename(id services.GPUID) string { return GPU(id) + "/rename" }

// GPUOnDeletion takes POST delete_on_vm_deletion ("true" or none), idempotency_key.
func GPUOnDeletion(id services.GPUID) string { return GPU(id) + "/on-deletion" }

// VMQuery narrows, sorts and pages the list of VMs.
type VMQuery struct {
	Power string
	Zone  string
	Text  string // q: part of a name or an id
	Sort  string // "name", "-name", "created"; empty: newest first
	After services.VMID
}

// Values are the query's parameters, without the empty ones.
func (v VMQuery) Values() url.Values {
	q := url.Values{}
	set(q, "power", v.Power)
	set(q, "zone", v.Zone)
	set(q, "q", v.Text)
	set(q, "sort", v.Sort)
	set(q, "after", string(v.After))
	return q
}

// Narrowed reports whether the query leaves anything out.
func (v VMQuery) Narrowed() bool { return v.Power != "" || v.Zone != "" || v.Text != "" }

// VMs is the list of VMs; POST makes one.
func VMs(q VMQuery) string { return with("/vms", q.Values()) }

// VMsFragment is the list's part that changes by itself.
func VMsFragment(q VMQuery) string { return with("/fragments/vms", q.Values()) }

// The form that makes a VM, posted to VMs, and its answer while it is filled in.
const (
	NewVM         = "/vms/new"
	NewVMFragment = "/fragments/vms/new"
)

// VM is a VM's page.
func VM(id services.VMID) string { return "/vms/" + string(id) }

// VMFragment is the part of a VM's page that changes by itself.
func VMFragment(id services.VMID) string { return "/fragments/vms/" + string(id) }

// VMPower takes POST action, idempotency_key.
func VMPower(id services.VMID) string { return VM(id) + "/power" }

// VMGPUs takes POST gpu (repeated), idempotency_key: attaches all or none.
func VMGPUs(id services.VMID) string { return VM(id) + "/gpus" }

// VMResize is the form that changes a VM's type; POST type, restart, idempotency_key.
func VMResize(id services.VMID) string { return VM(id) + "/resize" }

// VMResizeTo is the resize form with a type filled in.
func VMResizeTo(id services.VMID, vmType string) string {
	return with(VMResize(id), url.Values{"type": {vmType}})
}

// VMResizeFragment is the resize form's answer while it is filled in.
func VMResizeFragment(id services.VMID) string { return VMFragment(id) + "/resize" }

// VMDelete takes POST idempotency_key.
func VMDelete(id services.VMID) string { return VM(id) + "/delete" }

// OperationRetry takes POST idempotency_key.
func OperationRetry(id services.OperationID) string { return "/operations/" + string(id) + "/retry" }

// OperationCancel takes POST idempotency_key.
func OperationCancel(id services.OperationID) string { return "/operations/" + string(id) + "/cancel" }
