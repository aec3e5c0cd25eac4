package compute

import (
	"context"

	"berth/db"
	"berth/services"
	"berth/services/catalog"
)

// Catalogue is what can be had, and where.
type Catalogue struct {
	Models       []catalog.Model
	Offers       []catalog.Offer
	Types        catalog.Types
	Zones        []Zone
	Images       []catalog.Image
	Availability []Availability
}

// Catalogue gives the whole catalogue with what is free now.
func (s *Service) Catalogue(ctx context.Context) (Catalogue, error) {
	var c Catalogue
	var err error
	if c.Models, err = s.db.Models(ctx); err != nil {
		return c, err
	}
	if c.Offers, err = s.db.Offers(ctx); err != nil {
		return c, err
	}
	if c.Types, err = s.db.Types(ctx); err != nil {
		return c, err
	}
	if c.Zones, err = s.db.Zones(ctx); err != nil {
		return c, err
	}
	if c.Images, err = s.db.Images(ctx); err != nil {
		return c, err
	}
	c.Availability, err = s.db.Availability(ctx)
	return c, err
}

// Zones lists all zones by region and name.
func (s *Service) Zones(ctx context.Context) ([]Zone, error) { return s.db.Zones(ctx) }

// Models lists the catalogue by name.
func (s *Service) Models(ctx context.Context) ([]catalog.Model, error) { return s.db.Models(ctx) }

// ModelNames lists the names of the catalogue's models.
func (s *Service) ModelNames(ctx context.Context) ([]string, error) {
	models, err := s.db.Models(ctx)
	names := make([]string, 0, len(models))
	for _, m := range models {
		names = append(names, m.ID)
	}
	return names, err
}

// Images lists the systems that VMs can be made from.
func (s *Service) Images(ctx context.Context) ([]catalog.Image, error) { return s.db.Images(ctx) }

// QuotaUses lists what the account may have and has.
func (s *Service) QuotaUses(ctx context.Context, account services.AccountID) ([]QuotaUse, error) {
	return s.db.QuotaUses(ctx, account)
}

// Overview is what an account's start page shows.
type Overview struct {
	Counts     []GPUCount
	VMs        []VMCount
	Quotas     []QuotaUse
	Waiting    []WaitingGPU // planned GPUs and what they wait for
	Idle       []GPU        // allocated: held, and used by nothing
	Operations []Operation  // under way, stuck or failed
	Events     []Event
}

// WaitingGPU is a planned GPU with its VM.
type WaitingGPU struct {
	GPU     GPU
	VM      VM
	Pending Pending
}

// overviewRows bounds each list of the start page.
const overviewRows = 10

// Overview gives what an account's start page shows, in a region (empty: all).
func (s *Service) Overview(ctx context.Context, account services.AccountID, region string) (Overview, error) {
	var o Overview
	var err error
	filter := GPUFilter{Account: account, Region: region, Limit: overviewRows}
	if o.Counts, err = s.db.CountGPUs(ctx, filter); err != nil {
		return o, err
	}
	if o.VMs, err = s.db.CountVMs(ctx, VMFilter{Account: account, Region: region}); err != nil {
		return o, err
	}
	if o.Quotas, err = s.db.QuotaUses(ctx, account); err != nil {
		return o, err
	}
	filter.States = []services.GPUState{services.GPUAllocated}
	if o.Idle, err = s.db.ListGPUs(ctx, filter); err != nil {
		return o, err
	}
	filter.States = []services.GPUState{services.GPUAttaching, services.GPUDetaching}
	if o.Waiting, err = s.waiting(ctx, filter); err != nil {
		return o, err
	}
	if o.Operations, err = s.db.OpenOperations(ctx, account); err != nil {
		return o, err
	}
	o.Events, err = s.db.ListEvents(ctx, db.EventFilter{Account: account, Limit: overviewRows})
	return o, err
}

func (s *Service) waiting(ctx context.Context, f GPUFilter) ([]WaitingGPU, error) {
	gpus, err := s.db.ListGPUs(ctx, f)
	if err != nil {
		return nil, err
	}
	ids := make([]services.VMID, 0, len(gpus))
	for _, g := range gpus {
		ids = append(ids, g.VM)
	}
	vms, err := s.db.VMsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := map[services.VMID]VM{}
	for _, v := range vms {
		byID[v.ID] = v
	}
	waiting := make([]WaitingGPU, 0, len(gpus))
	for _, g := range gpus {
		p, err := s.pending(g, byID[g.VM])
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, WaitingGPU{GPU: g, VM: byID[g.VM], Pending: p})
	}
	return waiting, nil
}
