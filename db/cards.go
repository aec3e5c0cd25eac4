package db

import (
	"context"

	"berth/services"
)

// offering is what makes a host one whose free cards may be given out: it takes
// work, no readiness check failed, and a report vouches for it.
const offering = `
	h.mode = 'accepting' and h.ready and h.confirmed_until > now()`

// offered is what makes a card one that may be given out: free, ready, seen by
// the last full report, on a host that gives cards out.
const offered = `
	c.gpu_id is null and c.condition = 'ready' and c.missing_since is null and` + offering

// offeredCount is offered by the columns of the index that counts read.
const offeredCount = `
	not c.held and c.status = 'ready' and` + offering

// TakeCard locks a free card of (zone, model), in a host of the generation
// where one is named. ok is false where there is none. A card that somebody
// else is taking right now is passed over at first, and waited for only when
// nothing else is left, so that "none" is always true.
func (t *Tx) TakeCard(ctx context.Context, zone, model, generation string) (id services.CardID, ok bool, err error) {
	for _, lock := range []string{"for update of c skip locked", "for update of c"} {
		ok, err = t.found(ctx, &id, "take card", `
			select c.id from cards c join hosts h on h.id = c.host_id
			where c.zone_id = $1 and c.model_id = $2 and ($3 = '' or h.generation = $3) and`+offered+`
			order by c.host_id, c.pci_address limit 1 `+lock, zone, model, generation)
		if ok || err != nil {
			return id, ok, err
		}
	}
	return "", false, nil
}

// TakeCardsOnHost locks n free cards of a model on one host, on as few NUMA
// nodes as the order gives; fewer where there are not so many.
func (t *Tx) TakeCardsOnHost(ctx context.Context, host services.HostID, model string, n int) ([]services.CardID, error) {
	var ids []services.CardID
	err := t.all(ctx, &ids, "take cards on host", `
		select c.id from cards c join hosts h on h.id = c.host_id
		where c.host_id = $1 and c.model_id = $2 and`+offered+`
		order by c.numa_node nulls last, c.pci_address limit $3 for update of c`, host, model, n)
	return ids, err
}

// Seat is a card that a GPU could stand on.
type Seat struct {
	Card    services.CardID `db:"id"`
	Host    services.HostID `db:"host_id"`
	Partner services.GPUID  `db:"gpu_id"` // empty: free; the GPU itself; or one to exchange with

	NUMANode *int `db:"numa_node"` // nil: unknown
}

// SeatQuery asks for a card that a GPU may take or keep for a VM.
type SeatQuery struct {
	GPU        GPU
	Hosts      []services.HostID // allowed ones, best first
	NUMANode   *int              // where its siblings are; nil: no wish
	Clean      bool              // nobody's data is on the GPU's present card
	Generation string            // of the CPUs of the present card's host
}

// seatable is what makes a card one that a GPU ($1, of account $2) may stand on:
// its own, a free one, or one under an unattached GPU of the same (zone, model)
// to exchange with, for the pointer of an unattached GPU is soft. A card that
// may still hold another account's data is never exchanged.
const seatable = `
	(c.gpu_id = $1
	 or (` + offered + `)
	 or (g.kind = 'flexible' and g.state = 'allocated' and c.condition = 'ready' and c.missing_since is null
	     and h.confirmed_until > now()
	     and (c.used_by is null or c.used_by = $2) and ($3 or g.account_id = $2)
	     and (g.generation = '' or g.generation = $4)))`

// FindSeat locks the best card for a GPU among its own, free ones, and those to
// exchange with. ok is false where no host of the list has one.
func (t *Tx) FindSeat(ctx context.Context, q SeatQuery) (s Seat, ok bool, err error) {
	ok, err = t.found(ctx, &s, "find seat", `
		select c.id, c.host_id, coalesce(c.gpu_id, '') as gpu_id, c.numa_node
		from cards c join hosts h on h.id = c.host_id left join gpus g on g.id = c.gpu_id
		where c.zone_id = $5 and c.model_id = $6 and c.host_id = any($7) and`+seatable+`
		order by array_position(cast($7 as text[]), c.host_id), (c.gpu_id = $1) is true desc, (c.gpu_id is null) desc,
		         (c.numa_node = $8) is true desc, c.pci_address
		limit 1 for update of c skip locked`,
		q.GPU.ID, q.GPU.Account, q.Clean, q.Generation, q.GPU.Zone, q.GPU.Model, textArray(q.Hosts), q.NUMANode)
	return s, ok, err
}

// SeatHosts lists the hosts of a GPU's zone on which it could stand now.
func (s Store) SeatHosts(ctx context.Context, q SeatQuery) ([]services.HostID, error) {
	var hosts []services.HostID
	err := s.all(ctx, &hosts, "list hosts with a seat", `
		select distinct c.host_id from cards c join hosts h on h.id = c.host_id left join gpus g on g.id = c.gpu_id
		where c.zone_id = $5 and c.model_id = $6 and`+seatable,
		q.GPU.ID, q.GPU.Account, q.Clean, q.Generation, q.GPU.Zone, q.GPU.Model)
	return hosts, err
}

// MarkUsed notes that the account's data may from now on be on the cards of its GPUs.
func (t *Tx) MarkUsed(ctx context.Context, gpus []services.GPUID) error {
	_, err := t.exec(ctx, "mark cards as used", `
		update cards set used_by = g.account_id from gpus g where g.card_id = cards.id and g.id = any($1)`, textArray(gpus))
	return err
}

// Clean orders a card to be reset and scrubbed; until that is done it is not
// offered. A card that is quarantined or disabled stays so.
func (t *Tx) Clean(ctx context.Context, card services.CardID) (services.HostID, error) {
	var host services.HostID
	err := t.one(ctx, &host, "order cleaning", `
		update cards set clean_order = clean_order + 1,
		       condition_since = case when condition = 'ready' then now() else condition_since end,
		       condition_reason = case when condition = 'ready' then '' else condition_reason end,
		       condition = case when condition = 'ready' then 'cleaning' else condition end
		where id = $1 returning host_id`, card)
	return host, err
}

// CardUse is what the books say of a card's data.
type CardUse struct {
	UsedBy     services.AccountID `db:"used_by"` // empty: clean
	Generation string             `db:"generation"`
}

// CardUse tells whose data may be on a card, and its host's CPU generation.
func (s Store) CardUse(ctx context.Context, card services.CardID) (CardUse, error) {
	var u CardUse
	err := s.one(ctx, &u, "find use of card", `
		select coalesce(c.used_by, '') as used_by, h.generation from cards c join hosts h on h.id = c.host_id where c.id = $1`, card)
	return u, err
}

// Availability is the free cards of a model in a zone.
type Availability struct {
	Model  string `db:"model_id"`
	Region string `db:"region_id"`
	Zone   string `db:"zone_id"`
	Free   int    `db:"free"` // how many; not for tenants' eyes
}

// Availability counts free cards for every zone of every region that offers
// the model, also where there are none.
func (s Store) Availability(ctx context.Context) ([]Availability, error) {
	var a []Availability
	err := s.all(ctx, &a, "count free cards", `
		select o.model_id, o.region_id, z.id as zone_id, coalesce(f.free, 0) as free
		from offers o join zones z on z.region_id = o.region_id
		left join (select c.zone_id, c.model_id, count(*) as free from cards c join hosts h on h.id = c.host_id
		           where`+offered+` group by 1, 2) f on f.zone_id = z.id and f.model_id = o.model_id
		order by 1, 2, 3`)
	return a, err
}

// Inventory counts the cards of a zone and model by what holds them back.
type Inventory struct {
	Zone        string `db:"zone_id"`
	Model       string `db:"model_id"`
	Free        int    `db:"free"`
	Held        int    `db:"held"`
	Unavailable int    `db:"unavailable"`
	Total       int    `db:"total"`
}

// Inventory counts all cards but retired ones; free + held + unavailable is total.
func (s Store) Inventory(ctx context.Context) ([]Inventory, error) {
	var inv []Inventory
	err := s.all(ctx, &inv, "count cards", `
		select c.zone_id, coalesce(c.model_id, '') as model_id,
		       count(*) filter (where`+offeredCount+`) as free,
		       count(*) filter (where c.held) as held,
		       count(*) filter (where not c.held and not (`+offeredCount+`)) as unavailable,
		       count(*) as total
		from cards c join hosts h on h.id = c.host_id where c.status <> 'retired' group by 1, 2 order by 1, 2`)
	return inv, err
}
