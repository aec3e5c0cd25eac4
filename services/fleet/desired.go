package fleet

import (
	"context"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
)

// Desired gives the whole desired state of an agent's hosts. The revision is
// read first: what changes meanwhile comes again under a newer one.
func (s *Service) Desired(ctx context.Context, id services.AgentID) (agentapi.Desired, error) {
	a, _, err := s.db.Agent(ctx, id)
	if err != nil {
		return agentapi.Desired{}, err
	}
	hosts, err := s.db.AgentHosts(ctx, id)
	if err != nil {
		return agentapi.Desired{}, err
	}
	vms, err := s.db.DesiredVMs(ctx, id)
	if err != nil {
		return agentapi.Desired{}, err
	}
	cards, err := s.db.DesiredCards(ctx, id)
	if err != nil {
		return agentapi.Desired{}, err
	}
	d := agentapi.Desired{Revision: a.DesiredRevision, Hosts: make([]agentapi.DesiredHost, 0, len(hosts))}
	for _, h := range hosts {
		d.Hosts = append(d.Hosts, desiredHost(h, vms, cards))
	}
	return d, nil
}

// Revision is the newest revision of an agent's desired state.
func (s *Service) Revision(ctx context.Context, id services.AgentID) (int64, error) {
	a, _, err := s.db.Agent(ctx, id)
	return a.DesiredRevision, err
}

func desiredHost(h db.Host, vms []db.DesiredVM, cards []db.Card) agentapi.DesiredHost {
	out := agentapi.DesiredHost{Name: h.Name, VMs: []agentapi.DesiredVM{}, Cards: []agentapi.DesiredCard{}}
	byID := map[string]db.Card{}
	for _, c := range cards {
		if c.Host != h.ID {
			continue
		}
		byID[string(c.ID)] = c
		if c.Condition == services.CardCleaning {
			out.Cards = append(out.Cards, agentapi.DesiredCard{Key: c.Key, CleanOrder: c.CleanOrder})
		}
	}
	for _, v := range vms {
		if v.Host == h.ID {
			out.VMs = append(out.VMs, desiredVM(v, byID))
		}
	}
	return out
}

func desiredVM(v db.DesiredVM, cards map[string]db.Card) agentapi.DesiredVM {
	out := agentapi.DesiredVM{
		ID: string(v.ID), Power: string(v.Power), Run: v.Run, Reboots: v.Reboots, KeepDisk: v.KeepDisk,
		VCores: v.VCores, MemoryMiB: int64(v.MemoryMiB), Image: v.Image, SSHKey: v.SSHKey, UserData: v.UserData, Devices: []agentapi.Device{},
	}
	for _, id := range v.Devices {
		c, ok := cards[id]
		if !ok {
			continue // taken away between the two readings; a newer revision follows
		}
		out.Devices = append(out.Devices, agentapi.Device{Key: c.Key, PCIAddress: c.PCIAddress, IOMMUGroup: c.IOMMUGroup})
	}
	return out
}
