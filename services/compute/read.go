package compute

import (
	"context"
	"slices"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
	"berth/services/catalog"
)

// What pages read, as the database has it.
type (
	// GPU is what an account holds.
	GPU = db.GPU
	// VM is a virtual machine, wanted and seen.
	VM = db.VM
	// Operation is a change of a VM under way or ended.
	Operation = db.Operation
	// Event is something that happened.
	Event = db.EventRow
	// Zone is a place with capacity of its own.
	Zone = db.Zone
	// QuotaUse is how much of a quota is used.
	QuotaUse = db.QuotaUse
	// Availability is how many cards are free; the number is not for tenants.
	Availability = db.Availability
	// GPUCount counts GPUs of a region, model and state.
	GPUCount = db.GPUCount
	// VMCount counts VMs of a power.
	VMCount = db.VMCount
	// VMGPU counts GPUs of a VM.
	VMGPU = db.VMGPU
	// GPUFilter narrows a list of GPUs.
	GPUFilter = db.GPUFilter
	// VMFilter narrows a list of VMs.
	VMFilter = db.VMFilter
)

// Wait says what a planned GPU waits for.
type Wait string

// The waits.
const (
	WaitNone Wait = ""
	WaitStop Wait = "stop" // for its VM to be stopped
	WaitHost Wait = "host" // the VM is stopped; its host has to confirm
)

// Pending is why a GPU is not yet what it is to become.
type Pending struct {
	Wait       Wait
	Since      time.Time
	Deadline   time.Time         // after it the wait is overdue; zero for WaitStop, which is the user's
	HostSilent bool              // the host has not reported for too long
	HostSeen   time.Time         // its last report
	Problem    *agentapi.Problem // what the host says keeps it
}

// GPUPage lists one page of GPUs with the counts of all that match but for their state.
type GPUPage struct {
	GPUs   []GPU
	Counts []GPUCount
	Next   services.GPUID // the next page's After; empty: the last page
}

// ListGPUs gives a page of the account's open flexible GPUs.
func (s *Service) ListGPUs(ctx context.Context, f GPUFilter) (GPUPage, error) {
	counts, err := s.db.CountGPUs(ctx, f)
	if err != nil {
		return GPUPage{}, err
	}
	limit := f.Limit
	f.Limit++
	gpus, err := s.db.ListGPUs(ctx, f)
	page := GPUPage{GPUs: gpus, Counts: counts}
	if limit > 0 && len(gpus) > limit {
		page.GPUs = gpus[:limit]
		page.Next = gpus[limit-1].ID
	}
	return page, err
}

// GPUDetail is everything about one GPU.
type GPUDetail struct {
	GPU     GPU
	Offer   catalog.Offer
	VM      *VM        // nil: none
	Peers   []GPU      // the other GPUs of the VM
	Under   *Operation // the VM's open operation; nil: none
	Pending Pending
	Events  []Event // newest first
}

const detailEvents = 50

// GPU gives everything about a GPU of the account, also a released one.
func (s *Service) GPU(ctx context.Context, account services.AccountID, id services.GPUID) (GPUDetail, error) {
	g, err := s.db.AccountGPU(ctx, account, id)
	if err != nil {
		return GPUDetail{}, err
	}
	d := GPUDetail{GPU: g}
	if d.Offer, _, err = s.db.Offer(ctx, g.Model, g.Region); err != nil {
		return d, err
	}
	if d.Events, err = s.db.ListEvents(ctx, db.EventFilter{Account: account, GPU: id, Limit: detailEvents}); err != nil {
		return d, err
	}
	if g.VM == "" || g.Released() {
		return d, nil
	}
	return d, s.addVM(ctx, account, &d)
}

func (s *Service) addVM(ctx context.Context, account services.AccountID, d *GPUDetail) error {
	vm, err := s.db.AccountVM(ctx, account, d.GPU.VM)
	if err != nil {
		return err
	}
	all, err := s.db.VMGPUs(ctx, vm.ID)
	if err != nil {
		return err
	}
	op, open, err := s.db.OpenOperation(ctx, vm.ID)
	if err != nil {
		return err
	}
	if open {
		d.Under = &op
	}
	d.VM = &vm
	d.Peers = slices.DeleteFunc(all, func(g GPU) bool { return g.ID == d.GPU.ID })
	d.Pending, err = s.pending(d.GPU, vm)
	return err
}

// pending tells what a planned GPU waits for.
func (s *Service) pending(g GPU, vm VM) (Pending, error) {
	if !planned(g) {
		return Pending{}, nil
	}
	p := Pending{Wait: WaitStop, Since: g.StateSince, HostSeen: vm.HostSeen, HostSilent: vm.HostUntil.Before(s.now())}
	problem, ok, err := Problem(vm)
	if err != nil {
		return p, err
	}
	if ok {
		p.Problem = &problem
	}
	if vm.Power == services.PowerStopped {
		p.Wait = WaitHost
		if vm.PowerSince.After(p.Since) {
			p.Since = vm.PowerSince
		}
		p.Deadline = p.Since.Add(s.waits.Settle)
	}
	return p, nil
}

// VMListItem is a VM with what a list shows of its GPUs.
type VMListItem struct {
	VM   VM
	GPUs []VMGPU
}

// VMPage lists one page of VMs with the counts of all that match but for their power.
type VMPage struct {
	VMs    []VMListItem
	Counts []VMCount
	Next   services.VMID
}

// ListVMs gives a page of the account's VMs.
func (s *Service) ListVMs(ctx context.Context, f VMFilter) (VMPage, error) {
	counts, err := s.db.CountVMs(ctx, f)
	if err != nil {
		return VMPage{}, err
	}
	limit := f.Limit
	f.Limit++
	vms, err := s.db.ListVMs(ctx, f)
	if err != nil {
		return VMPage{}, err
	}
	page := VMPage{Counts: counts}
	if limit > 0 && len(vms) > limit {
		vms = vms[:limit]
		page.Next = vms[limit-1].ID
	}
	page.VMs, err = s.withGPUs(ctx, vms)
	return page, err
}

func (s *Service) withGPUs(ctx context.Context, vms []VM) ([]VMListItem, error) {
	ids := make([]services.VMID, 0, len(vms))
	for _, v := range vms {
		ids = append(ids, v.ID)
	}
	counts, err := s.db.GPUsOfVMs(ctx, ids)
	items := make([]VMListItem, 0, len(vms))
	for _, v := range vms {
		item := VMListItem{VM: v}
		for _, c := range counts {
			if c.VM == v.ID {
				item.GPUs = append(item.GPUs, c)
			}
		}
		items = append(items, item)
	}
	return items, err
}

// VMDetail is everything about one VM.
type VMDetail struct {
	VM         VM
	GPUs       []GPU         // open ones, built-in ones too
	Operation  *Operation    // the open one, else the last; nil: none
	Steps      []Step        // of that operation
	Offer      catalog.Offer // of its flexible GPUs' model in its region; zero: it has none
	Pending    Pending       // the longest wait of its planned GPUs
	Problem    *agentapi.Problem
	HostSilent bool
	Events     []Event // newest first
}

// VM gives everything about a VM of the account, also a deleted one.
func (s *Service) VM(ctx context.Context, account services.AccountID, id services.VMID) (VMDetail, error) {
	vm, err := s.db.AccountVM(ctx, account, id)
	if err != nil {
		return VMDetail{}, err
	}
	d := VMDetail{VM: vm, HostSilent: vm.HostUntil.Before(s.now())}
	if err := s.addGPUs(ctx, &d); err != nil {
		return d, err
	}
	op, ok, err := s.db.LastOperation(ctx, id)
	if err != nil {
		return d, err
	}
	if ok {
		d.Operation, d.Steps = &op, Steps(op.Kind)
	}
	problem, ok, err := Problem(vm)
	if err != nil {
		return d, err
	}
	if ok {
		d.Problem = &problem
	}
	d.Events, err = s.db.ListEvents(ctx, db.EventFilter{Account: account, VM: id, Limit: detailEvents})
	return d, err
}

func (s *Service) addGPUs(ctx context.Context, d *VMDetail) error {
	var err error
	if d.GPUs, err = s.db.VMGPUs(ctx, d.VM.ID); err != nil {
		return err
	}
	for _, g := range d.GPUs {
		p, err := s.pending(g, d.VM)
		if err != nil {
			return err
		}
		if p.Wait != WaitNone && (d.Pending.Wait == WaitNone || p.Since.Before(d.Pending.Since)) {
			d.Pending = p
		}
		if g.Kind == services.GPUFlexible && d.Offer.Model == "" { // all are of one model
			if d.Offer, err = offerFor(ctx, s.db.Store, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// VMChoice is a VM that a GPU may or may not be attached to.
type VMChoice struct {
	VM     VM
	Broken []services.Violation // empty: selectable
}

// GPUChoice is a GPU that a VM may or may not get.
type GPUChoice struct {
	GPU    GPU
	Broken []services.Violation // empty: selectable
}

// choiceLimit bounds how many objects a picker lists.
const choiceLimit = 200

// VMChoices lists the account's VMs for a GPU: those it can be attached to now
// first, the others with every reason.
func (s *Service) VMChoices(ctx context.Context, account services.AccountID, id services.GPUID) ([]VMChoice, error) {
	g, err := s.db.AccountGPU(ctx, account, id)
	if err != nil {
		return nil, err
	}
	vms, err := s.db.ListVMs(ctx, VMFilter{Account: account, Region: g.Region, Sort: "name", Limit: choiceLimit})
	if err != nil {
		return nil, err
	}
	ids := make([]services.VMID, 0, len(vms))
	for _, v := range vms {
		ids = append(ids, v.ID)
	}
	present, err := s.db.GPUsOnVMs(ctx, ids)
	if err != nil {
		return nil, err
	}
	check, err := s.newChooser(ctx, g)
	if err != nil {
		return nil, err
	}
	choices := make([]VMChoice, 0, len(vms))
	for _, v := range vms {
		choices = append(choices, VMChoice{VM: v, Broken: check.broken(v, onVM(present, v.ID), g)})
	}
	slices.SortStableFunc(choices, func(a, b VMChoice) int { return selectableFirst(a.Broken, b.Broken) })
	return choices, nil
}

// GPUChoices lists the account's allocated GPUs for a VM: those it can get now
// first, the others with every reason.
func (s *Service) GPUChoices(ctx context.Context, account services.AccountID, id services.VMID) ([]GPUChoice, error) {
	vm, err := s.db.AccountVM(ctx, account, id)
	if err != nil {
		return nil, err
	}
	gpus, err := s.db.ListGPUs(ctx, GPUFilter{
		Account: account, Region: vm.Region, States: []services.GPUState{services.GPUAllocated}, Sort: "name", Limit: choiceLimit,
	})
	if err != nil {
		return nil, err
	}
	present, err := s.db.VMGPUs(ctx, id)
	if err != nil {
		return nil, err
	}
	choosers := map[string]chooser{}
	choices := make([]GPUChoice, 0, len(gpus))
	for _, g := range gpus {
		check, ok := choosers[g.Model+" "+g.Zone+" "+string(g.Host)]
		if !ok {
			if check, err = s.newChooser(ctx, g); err != nil {
				return nil, err
			}
			choosers[g.Model+" "+g.Zone+" "+string(g.Host)] = check
		}
		choices = append(choices, GPUChoice{GPU: g, Broken: check.broken(vm, present, g)})
	}
	slices.SortStableFunc(choices, func(a, b GPUChoice) int { return selectableFirst(a.Broken, b.Broken) })
	return choices, nil
}

// chooser holds what the attach rules need to know of a GPU's model and place.
type chooser struct {
	offer catalog.Offer
	hosts []services.HostID // on which the GPU could stand now
}

func (s *Service) newChooser(ctx context.Context, g GPU) (chooser, error) {
	offer, err := offerFor(ctx, s.db.Store, g)
	if err != nil {
		return chooser{}, err
	}
	hosts, err := seatsElsewhere(ctx, s.db.Store, g)
	return chooser{offer: offer, hosts: hosts}, err
}

func (c chooser) broken(vm VM, present []GPU, g GPU) []services.Violation {
	broken := brokenRules(c.offer, vm, present, g)
	if len(broken) > 0 {
		return broken
	}
	at := vm.Host
	if vm.Storage == services.StorageShared && len(present) == 0 {
		return nil // any host of the zone will do
	}
	if len(present) > 0 {
		at = present[0].Host
	}
	if slices.Contains(c.hosts, at) {
		return nil
	}
	return []services.Violation{noCardViolation(vm, g, c.hosts)}
}

func onVM(gpus []GPU, vm services.VMID) []GPU {
	var on []GPU
	for _, g := range gpus {
		if g.VM == vm {
			on = append(on, g)
		}
	}
	return on
}

func selectableFirst(a, b []services.Violation) int { return min(len(a), 1) - min(len(b), 1) }
