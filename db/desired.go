package db

import (
	"context"

	"github.com/lib/pq"

	"berth/services"
)

// DesiredVM is a VM as its agent should have it.
type DesiredVM struct {
	ID        services.VMID   `db:"id"`
	Host      services.HostID `db:"host_id"`
	Power     services.Power  `db:"power"`
	Run       int64           `db:"run"`
	Reboots   int64           `db:"reboots"`
	KeepDisk  bool            `db:"keep_disk"`
	VCores    int             `db:"vcores"`
	MemoryMiB int             `db:"memory_mib"`
	Image     string          `db:"image_id"`
	SSHKey    string          `db:"ssh_key"`
	UserData  string          `db:"user_data"`
	Devices   pq.StringArray  `db:"devices"` // card ids

	// What the last report showed, and whether anything of the VM is under way.
	SeenPower   services.Power `db:"seen_power"` // pending: no report has listed it
	SeenRun     int64          `db:"seen_run"`
	SeenReboots int64          `db:"seen_reboots"`
	UnderWay    bool           `db:"under_way"`
}

// DesiredVMs lists what the hosts of an agent should have: their VMs, those
// that must be gone, and for each the cards that it gets at its next start. A VM
// that another host has still to give up is not started.
func (s Store) DesiredVMs(ctx context.Context, agent services.AgentID) ([]DesiredVM, error) {
	var vms []DesiredVM
	err := s.all(ctx, &vms, "list desired VMs", `
		select v.id, v.host_id,
		       case when exists (select 1 from evictions e where e.vm_id = v.id) then 'stopped' else v.desired_power end as power,
		       v.run, v.reboots, false as keep_disk, v.vcores, v.memory_mib, v.image_id, v.ssh_key, v.user_data,
		       array(select g.card_id from gpus g join cards c on c.id = g.card_id
		             where g.vm_id = v.id and g.released_at is null and c.host_id = v.host_id
		               and (g.kind = 'built-in' or g.state in ('attaching', 'attached'))
		             order by g.created_at, g.id) as devices,
		       v.power as seen_power, v.seen_run, v.seen_reboots,
		       v.problem is not null or exists (select 1 from operations o where o.vm_id = v.id and o.ended_at is null)
		       or exists (select 1 from gpus g where g.vm_id = v.id and g.released_at is null and g.state in ('attaching', 'detaching')) as under_way
		from vms v join hosts h on h.id = v.host_id
		where h.agent_id = $1 and v.deleted_at is null
		union all
		select v.id, e.host_id, 'absent', v.run, v.reboots, e.keep_disk, v.vcores, v.memory_mib, v.image_id, '', '', '{}', v.power, v.seen_run, v.seen_reboots, true
		from evictions e join vms v on v.id = e.vm_id join hosts h on h.id = e.host_id
		where h.agent_id = $1
		order by 1`, agent)
	return vms, err
}

// DesiredCards lists the cards of an agent that its desired state speaks of:
// those to be cleaned, and those held by a GPU.
func (s Store) DesiredCards(ctx context.Context, agent services.AgentID) ([]Card, error) {
	var cards []Card
	err := s.all(ctx, &cards, "list desired cards", `
		select`+cardColumns+` from cards c join hosts h on h.id = c.host_id
		where h.agent_id = $1 and (c.condition = 'cleaning' or c.gpu_id is not null) order by c.id`, agent)
	return cards, err
}
