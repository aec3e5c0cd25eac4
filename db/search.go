package db

import (
	"context"
	"strings"

	"berth/services"
)

// Hit is something that was found by a text.
type Hit struct {
	Kind    string             `db:"kind"` // "host", "card", "gpu", "vm", "account"
	ID      string             `db:"id"`
	Name    string             `db:"name"`
	Detail  string             `db:"detail"`  // where it is, or whose
	Card    services.CardID    `db:"card_id"` // of a GPU
	Host    services.HostID    `db:"host_id"` // of a card or VM
	Account services.AccountID `db:"account_id"`
}

// searches find one kind each by $1, a pattern, with what matches $2 as a whole
// or from its beginning first; at most $3 of each.
var searches = []string{
	`select 'account' as kind, id, name, '' as detail, '' as card_id, '' as host_id, id as account_id from accounts
	 where lower(name || ' ' || id) like lower($1)
	 order by $2 in (lower(name), id) desc, lower(name) like $2 || '%' desc, lower(name), id limit $3`,
	`select 'host' as kind, id, name, zone_id as detail, '' as card_id, id as host_id, '' as account_id from hosts
	 where lower(name || ' ' || id) like lower($1)
	 order by $2 in (lower(name), id) desc, lower(name) like $2 || '%' desc, lower(name), id limit $3`,
	`select 'card' as kind, c.id, coalesce(nullif(c.serial, ''), c.id) as name, coalesce(c.model_id, '') || ' ' || h.name || ' ' || c.pci_address as detail,
	        c.id as card_id, c.host_id, '' as account_id
	 from cards c join hosts h on h.id = c.host_id
	 where lower(c.id || ' ' || c.serial || ' ' || c.uuid || ' ' || c.pci_address || ' ' || coalesce(c.gpu_id, '')) like lower($1)
	 order by $2 in (lower(c.serial), c.id, c.pci_address, lower(c.uuid)) desc, c.serial, c.id limit $3`,
	`select 'gpu' as kind, g.id, g.name, g.model_id || ' ' || a.name as detail, g.card_id, '' as host_id, g.account_id
	 from gpus g join accounts a on a.id = g.account_id
	 where lower(g.name || ' ' || g.id) like lower($1) and g.released_at is null
	 order by $2 in (lower(g.name), g.id) desc, lower(g.name) like $2 || '%' desc, lower(g.name), g.id limit $3`,
	`select 'vm' as kind, v.id, v.name, v.type || ' ' || a.name as detail, '' as card_id, v.host_id, v.account_id
	 from vms v join accounts a on a.id = v.account_id
	 where lower(v.name || ' ' || v.id) like lower($1) and v.deleted_at is null
	 order by $2 in (lower(v.name), v.id) desc, lower(v.name) like $2 || '%' desc, lower(v.name), v.id limit $3`,
}

// Search finds accounts, hosts, cards, GPUs and VMs of the whole fleet by part
// of a name, an identifier, a serial or an address; at most limit of each.
func (s Store) Search(ctx context.Context, text string, limit int) ([]Hit, error) {
	var all []Hit
	for _, q := range searches {
		var hits []Hit
		if err := s.all(ctx, &hits, "search", q, contains(text), strings.ToLower(text), limit); err != nil {
			return nil, err
		}
		all = append(all, hits...)
	}
	return all, nil
}
