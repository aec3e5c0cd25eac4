package db

import (
	"context"

	"berth/services"
	"berth/services/catalog"
)

// Room is a host that a VM would fit on.
type Room struct {
	Host       services.HostID `db:"id"`
	Generation string          `db:"generation"`
}

// roomLeft is what a host has left beside the VMs placed on it, running or not,
// and those that it has still to give up.
const roomLeft = `
	h.vcores - coalesce((select sum(o.vcores) from vms o where o.id <> $1 and (o.deleted_at is null and o.host_id = h.id
		or exists (select 1 from evictions e where e.vm_id = o.id and e.host_id = h.id))), 0) >= $2
	and h.memory_mib - coalesce((select sum(o.memory_mib) from vms o where o.id <> $1 and (o.deleted_at is null and o.host_id = h.id
		or exists (select 1 from evictions e where e.vm_id = o.id and e.host_id = h.id))), 0) >= $3`

// Rooms lists the hosts of a zone that a VM fits on: its own first (last where it
// is drained, not at all in maintenance), then the newest CPU generation where the VM leaves it open, then those with the most
// free cards on offer for a VM that could take one and with the fewest for any
// other, then the emptiest. A dedicated VM shares its host with no other account.
func (s Store) Rooms(ctx context.Context, v VM) ([]Room, error) {
	var rooms []Room
	err := s.all(ctx, &rooms, "find room", `
		select h.id, h.generation from hosts h
		where h.zone_id = $4 and ($5 = '' or h.generation = $5)
		  and (h.id = $7 and h.mode <> 'maintenance' or h.mode = 'accepting' and h.confirmed_until > now())
		  and not exists (select 1 from vms o where o.host_id = h.id and o.deleted_at is null and o.account_id <> $6
		                  and (o.tenancy = 'dedicated' or $8))
		  and `+roomLeft+`
		order by (h.id = $7 and h.mode = 'accepting') desc, (h.mode = 'accepting') desc, length(h.generation) desc, h.generation desc,
		         (select count(*) from cards c join offers o on o.model_id = c.model_id join zones z on z.region_id = o.region_id
		          where c.host_id = h.id and z.id = h.zone_id and`+offered+`) * case when $9 then -1 else 1 end,
		         (select coalesce(sum(o.vcores), 0) from vms o where o.host_id = h.id and o.deleted_at is null), h.name`,
		v.ID, v.VCores, v.MemoryMiB, v.Zone, v.Generation, v.Account, v.Host, v.Tenancy == catalog.TenancyDedicated,
		v.Performance == catalog.Highest && v.Tenancy == catalog.TenancyDefault)
	return rooms, err
}

// LockRoom locks a host and reports whether the VM still fits on it.
func (t *Tx) LockRoom(ctx context.Context, v VM, host services.HostID) (bool, error) {
	var id services.HostID
	if err := t.one(ctx, &id, "lock host", `select id from hosts where id = $1 for no key update`, host); err != nil {
		return false, err
	}
	var fits bool
	err := t.one(ctx, &fits, "check room", `
		select exists (select 1 from hosts h where h.id = $4 and `+roomLeft+`)
		   and not exists (select 1 from vms o where o.host_id = $4 and o.deleted_at is null and o.account_id <> $5
		                   and (o.tenancy = 'dedicated' or $6))`,
		v.ID, v.VCores, v.MemoryMiB, host, v.Account, v.Tenancy == catalog.TenancyDedicated)
	return fits, err
}
