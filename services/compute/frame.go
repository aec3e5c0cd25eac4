package compute

import (
	"context"
	"slices"

	"berth/services"
)

// Frame is what stands around every page of an account.
type Frame struct {
	Regions []string // all there are
	GPUs    int      // open flexible ones
	Waiting int      // those of them that wait for a VM or a host
	VMs     int
}

// Frame counts what the account has in a region (empty: all).
func (s *Service) Frame(ctx context.Context, account services.AccountID, region string) (Frame, error) {
	var f Frame
	zones, err := s.db.Zones(ctx)
	if err != nil {
		return f, err
	}
	for _, z := range zones {
		if !slices.Contains(f.Regions, z.Region) {
			f.Regions = append(f.Regions, z.Region)
		}
	}
	gpus, err := s.db.CountGPUs(ctx, GPUFilter{Account: account, Region: region})
	if err != nil {
		return f, err
	}
	for _, c := range gpus {
		f.GPUs += c.Count
		if c.State == services.GPUAttaching || c.State == services.GPUDetaching {
			f.Waiting += c.Count
		}
	}
	vms, err := s.db.CountVMs(ctx, VMFilter{Account: account, Region: region})
	for _, c := range vms {
		f.VMs += c.Count
	}
	return f, err
}
