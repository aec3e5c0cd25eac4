package db

import (
	"context"
	"slices"
	"time"

	"github.com/lib/pq"

	"berth/services"
)

// Card is a physical GPU in a host.
type Card struct {
	ID              services.CardID        `db:"id"`
	Identity        string                 `db:"identity"`
	Key             string                 `db:"key"`
	Host            services.HostID        `db:"host_id"`
	Zone            string                 `db:"zone_id"`
	Model           string                 `db:"model_id"` // empty: its PCI ids are unknown
	VendorID        string                 `db:"vendor_id"`
	DeviceID        string                 `db:"device_id"`
	SubsystemID     string                 `db:"subsystem_id"`
	Serial          string                 `db:"serial"`
	UUID            string                 `db:"uuid"`
	PCIAddress      string                 `db:"pci_address"`
	IOMMUGroup      *int                   `db:"iommu_group"`
	NUMANode        *int                   `db:"numa_node"`
	Functions       JSON                   `db:"functions"`
	Condition       services.CardCondition `db:"condition"`
	ConditionReason string                 `db:"condition_reason"`
	MissingSince    *time.Time             `db:"missing_since"`
	LastSeenAt      time.Time              `db:"last_seen_at"`
	CleanOrder      int64                  `db:"clean_order"`
	UsedBy          services.AccountID     `db:"used_by"`
	GPU             services.GPUID         `db:"gpu_id"`
	Agent           services.AgentID       `db:"agent_id"`
	Driver          string                 `db:"driver"` // of its GPU function, as last seen; empty: none
	VBIOS           string                 `db:"vbios"`
	Firmware        string                 `db:"firmware"`
	Parents         pq.StringArray         `db:"parents"` // bridges above it, from the root complex down
	Problem         *JSON                  `db:"problem"` // an agentapi.Problem: what keeps its host from what is wanted
	ConditionSince  time.Time              `db:"condition_since"`
	ConditionActor  string                 `db:"condition_actor"` // empty: nobody yet
	Undo            services.CardCondition `db:"undo"`            // while an operator's preparation is under way: where a roll back leads
	Status          services.CardCondition `db:"status"`          // the condition, or missing
	CreatedAt       time.Time              `db:"created_at"`
}

const cardColumns = `
	c.id, c.identity, c.key, c.host_id, c.zone_id, coalesce(c.model_id, '') as model_id, c.vendor_id, c.device_id, c.subsystem_id,
	c.serial, c.uuid, c.pci_address, c.iommu_group, c.numa_node, c.functions, c.condition, c.condition_reason, c.missing_since,
	c.last_seen_at, c.clean_order, coalesce(c.used_by, '') as used_by, coalesce(c.gpu_id, '') as gpu_id, h.agent_id,
	c.driver, c.vbios, c.firmware, c.parents, c.problem, c.condition_since, c.condition_actor, coalesce(c.undo, '') as undo, c.status, c.created_at`

// CardsOf lists the cards of some hosts, and those known elsewhere under one of
// the identities.
func (s Store) CardsOf(ctx context.Context, hosts []services.HostID, identities []string) ([]Card, error) {
	var cards []Card
	err := s.all(ctx, &cards, "list cards of hosts", `
		select`+cardColumns+` from cards c join hosts h on h.id = c.host_id
		where c.host_id = any($1) or c.identity = any($2) order by c.host_id, c.pci_address`, textArray(hosts), textArray(identities))
	return cards, err
}

// ModelOf finds the model that a vendor:device pair stands for.
func (s Store) ModelOf(ctx context.Context, vendor, device string) (model string, ok bool, err error) {
	ok, err = s.found(ctx, &model, "find model of PCI ids", `select model_id from model_pci_ids where pci_id = $1`, vendor+":"+device)
	return model, ok, err
}

// InsertCard adds a card that was seen for the first time.
func (t *Tx) InsertCard(ctx context.Context, c Card) error {
	_, err := t.exec(ctx, "insert card", `
		insert into cards (id, identity, key, host_id, zone_id, model_id, vendor_id, device_id, subsystem_id, serial, uuid, pci_address,
		                   iommu_group, numa_node, functions, condition, condition_reason, clean_order, last_seen_at, created_at,
		                   driver, vbios, firmware, parents, condition_since)
		values ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $19, $20, $21, $22, coalesce(cast($23 as text[]), '{}'), $19)`,
		c.ID, c.Identity, c.Key, c.Host, c.Zone, c.Model, c.VendorID, c.DeviceID, c.SubsystemID, c.Serial, c.UUID, c.PCIAddress,
		c.IOMMUGroup, c.NUMANode, c.Functions, c.Condition, c.ConditionReason, c.CleanOrder, c.LastSeenAt,
		c.Driver, c.VBIOS, c.Firmware, c.Parents)
	return err
}

// SawCard writes where and how a known card was seen, its host included.
func (t *Tx) SawCard(ctx context.Context, c Card) error {
	_, err := t.exec(ctx, "set what was seen of card", `
		update cards set host_id = $2, zone_id = $3, key = $4, pci_address = $5, iommu_group = $6, numa_node = $7, functions = $8,
		       missing_since = $9, last_seen_at = $10, driver = $11, vbios = $12, firmware = $13, parents = coalesce(cast($14 as text[]), '{}'), problem = $15
		where id = $1`, c.ID, c.Host, c.Zone, c.Key, c.PCIAddress, c.IOMMUGroup, c.NUMANode, c.Functions,
		c.MissingSince, c.LastSeenAt, c.Driver, c.VBIOS, c.Firmware, c.Parents, c.Problem)
	return err
}

// SetCondition writes what an operator decided of a card, or the console found.
func (t *Tx) SetCondition(ctx context.Context, c Card) error {
	_, err := t.exec(ctx, "set condition of card", `
		update cards set condition = $2, condition_reason = $3, condition_since = $4, condition_actor = $5, undo = nullif($6, '')
		where id = $1`, c.ID, c.Condition, c.ConditionReason, c.ConditionSince, c.ConditionActor, string(c.Undo))
	return err
}

// LockCard finds a card and keeps others from changing it.
func (t *Tx) LockCard(ctx context.Context, id services.CardID) (Card, error) {
	if err := t.hold(ctx, "lock card", `select from cards where id = $1 for no key update`, string(id)); err != nil {
		return Card{}, err
	}
	var c Card
	ok, err := t.found(ctx, &c, "find card", `select`+cardColumns+` from cards c join hosts h on h.id = c.host_id where c.id = $1`, id)
	if err == nil && !ok {
		err = services.NotFound("card", string(id))
	}
	return c, err
}

// Cleaned ends the cleaning order with that number: the card is ready and
// nobody's data is on it. False where a newer order stands or none is open.
func (t *Tx) Cleaned(ctx context.Context, card services.CardID, order int64) (bool, error) {
	n, err := t.exec(ctx, "end cleaning", `
		update cards set used_by = null, undo = null, condition_reason = case when condition = 'cleaning' then '' else condition_reason end,
		       condition_since = case when condition = 'cleaning' then now() else condition_since end,
		       condition = case when condition = 'cleaning' then 'ready' else condition end
		where id = $1 and clean_order = $2 and (condition = 'cleaning' or used_by is not null) and gpu_id is null`, card, order)
	return n == 1, err
}

// Quarantine takes a card out of offer because its cleaning order failed.
func (t *Tx) Quarantine(ctx context.Context, card services.CardID, order int64, reason string) (bool, error) {
	n, err := t.exec(ctx, "quarantine card", `
		update cards set condition = 'quarantined', condition_reason = $3, condition_since = now(), condition_actor = '', undo = null
		where id = $1 and clean_order = $2 and condition = 'cleaning'`, card, order, reason)
	return n == 1, err
}

// CardFilter narrows and pages the list of cards. Retired ones are listed only
// where State asks for them.
type CardFilter struct {
	Text    string // part of an identifier, serial, UUID, address, or its host's name
	Region  string
	Zone    string
	Model   string // "none": unknown to the catalogue
	Host    services.HostID
	Account services.AccountID // that holds it
	State   string             // "free", "held", "unavailable", or a status
	Sort    string             // of cardSorts
	After   services.CardID
	Limit   int
}

// cardSorts are the orders of the list of cards; newest first without one.
var cardSorts = sorts{
	"":        {by: []string{"c.created_at"}, descending: true},
	"created": {by: []string{"c.created_at"}},
	"serial":  {by: []string{"c.serial"}},
	"model":   {by: []string{"coalesce(c.model_id, '')"}},
	"zone":    {by: []string{"c.zone_id"}},
	"state":   {by: []string{"c.status"}},
	"driver":  {by: []string{"c.driver"}},
	"host":    {by: []string{"lower(h.name)"}, joined: true},
}

// ModelUnknown is the filter for cards that the catalogue has no model of.
const ModelUnknown = "none"

func (f CardFilter) where() *conditions {
	w := &conditions{}
	w.addIf(f.Region != "", "c.zone_id in (select id from zones where region_id = ?)", f.Region)
	w.addIf(f.Zone != "", "c.zone_id = ?", f.Zone)
	w.addIf(f.Model == ModelUnknown, "c.model_id is null")
	w.addIf(f.Model != "" && f.Model != ModelUnknown, "c.model_id = ?", f.Model)
	w.addIf(f.Host != "", "c.host_id = ?", f.Host)
	w.addIf(f.Account != "", "c.gpu_id in (select id from gpus where account_id = ? and released_at is null)", f.Account)
	if f.Text != "" {
		w.add(`c.id in (select id from cards
			where lower(id || ' ' || serial || ' ' || uuid || ' ' || pci_address || ' ' || coalesce(gpu_id, '')) like lower(?)
			union select n.id from cards n join hosts x on x.id = n.host_id where lower(x.name || ' ' || x.id) like lower(?))`,
			contains(f.Text), contains(f.Text))
	}
	switch f.State {
	case "":
		w.addRaw("c.status <> 'retired'")
	case "free":
		w.addRaw(offered)
	case "held":
		w.addRaw("c.held")
	case "unavailable":
		w.addRaw("c.status <> 'retired' and not c.held and not (" + offeredCount + ")")
	default:
		w.add("c.status = ?", f.State)
	}
	return w
}

// CardRow is a card with its host and holder.
type CardRow struct {
	Card
	HostName    string             `db:"host_name"`
	HostMode    services.HostMode  `db:"host_mode"`
	HostReady   bool               `db:"host_ready"`
	HostUntil   time.Time          `db:"host_confirmed_until"`
	HostSeen    time.Time          `db:"host_reported_at"`
	GPUName     string             `db:"gpu_name"`
	GPUKind     services.GPUKind   `db:"gpu_kind"`
	GPUState    services.GPUState  `db:"gpu_state"`
	Account     services.AccountID `db:"account_id"` // empty: nobody holds it
	AccountName string             `db:"account_name"`
	VM          services.VMID      `db:"vm_id"` // empty: the GPU is on none
	VMName      string             `db:"vm_name"`
	VMPower     services.Power     `db:"vm_power"`
}

const cardRowColumns = cardColumns + `,
	h.name as host_name, h.mode as host_mode, h.ready as host_ready, h.confirmed_until as host_confirmed_until, h.reported_at as host_reported_at,
	coalesce(g.name, '') as gpu_name, coalesce(g.kind, '') as gpu_kind, coalesce(g.state, '') as gpu_state,
	coalesce(g.account_id, '') as account_id, coalesce(a.name, '') as account_name,
	coalesce(g.vm_id, '') as vm_id, coalesce(v.name, '') as vm_name, coalesce(v.power, '') as vm_power`

const cardRowTables = `
	join hosts h on h.id = c.host_id left join gpus g on g.id = c.gpu_id
	left join accounts a on a.id = g.account_id left join vms v on v.id = g.vm_id`

// ListCards gives one page, newest first unless sorted otherwise.
func (s Store) ListCards(ctx context.Context, f CardFilter) ([]CardRow, error) {
	w := f.where()
	order := w.page("c", "cards c join hosts h on h.id = c.host_id", cardSorts.find(f.Sort), string(f.After))
	var rows []CardRow
	err := s.all(ctx, &rows, "list cards", `
		select`+cardRowColumns+` from (select c.* from cards c join hosts h on h.id = c.host_id`+w.sql()+order+w.limit(f.Limit)+`) c`+
		cardRowTables+order, w.args...)
	return rows, err
}

// HostCards lists the cards of a host by address, retired ones left out.
func (s Store) HostCards(ctx context.Context, host services.HostID) ([]CardRow, error) {
	var rows []CardRow
	err := s.all(ctx, &rows, "list cards of host", `
		select`+cardRowColumns+` from cards c`+cardRowTables+`
		where c.host_id = $1 and c.condition <> 'retired' order by c.numa_node nulls last, c.pci_address`, host)
	return rows, err
}

// CardRow finds a card with its host and holder.
func (s Store) CardRow(ctx context.Context, id services.CardID) (CardRow, error) {
	var r CardRow
	ok, err := s.found(ctx, &r, "find card", `select`+cardRowColumns+` from cards c`+cardRowTables+` where c.id = $1`, id)
	if err == nil && !ok {
		err = services.NotFound("card", string(id))
	}
	return r, err
}

// CardCounts counts cards; Free, Held and Unavailable are All.
type CardCounts struct {
	All         int `db:"all"`
	Free        int `db:"free"`
	Held        int `db:"held"`
	Unavailable int `db:"unavailable"`
	Cleaning    int `db:"cleaning"`
	Quarantined int `db:"quarantined"`
	Disabled    int `db:"disabled"`
	Missing     int `db:"missing"`
	NeedsReview int `db:"needs_review"`
	Ready       int `db:"ready"`
	Retired     int `db:"retired"`
}

// Of gives the count of a filter's state.
func (c CardCounts) Of(state string) int {
	return map[string]int{
		"": c.All, "free": c.Free, "held": c.Held, "unavailable": c.Unavailable, string(services.CardReady): c.Ready,
		string(services.CardCleaning): c.Cleaning, string(services.CardQuarantined): c.Quarantined, string(services.CardDisabled): c.Disabled,
		string(services.CardMissing): c.Missing, string(services.CardNeedsReview): c.NeedsReview, string(services.CardRetired): c.Retired,
	}[state]
}

// CountCards counts the filter's cards; paging and State are not looked at.
func (s Store) CountCards(ctx context.Context, f CardFilter) (CardCounts, error) {
	f.State = ""
	w := f.where()
	w.parts = slices.DeleteFunc(w.parts, func(p string) bool { return p == "c.status <> 'retired'" })
	var c CardCounts
	err := s.one(ctx, &c, "count cards of list", `
		select count(*) filter (where c.status <> 'retired') as all, count(*) filter (where`+offeredCount+`) as free,
		       count(*) filter (where c.held) as held,
		       count(*) filter (where c.status <> 'retired' and not c.held and not (`+offeredCount+`)) as unavailable,
		       count(*) filter (where c.status = 'ready') as ready,
		       count(*) filter (where c.status = 'cleaning') as cleaning, count(*) filter (where c.status = 'quarantined') as quarantined,
		       count(*) filter (where c.status = 'disabled') as disabled, count(*) filter (where c.status = 'missing') as missing,
		       count(*) filter (where c.status = 'needs_review') as needs_review, count(*) filter (where c.status = 'retired') as retired
		from cards c join hosts h on h.id = c.host_id`+w.sql(), w.args...)
	return c, err
}

// Holding is who had a card, and when.
type Holding struct {
	GPU         services.GPUID     `db:"gpu_id"`
	GPUName     string             `db:"gpu_name"`
	Account     services.AccountID `db:"account_id"`
	AccountName string             `db:"account_name"`
	BeganAt     time.Time          `db:"began_at"`
	EndedAt     *time.Time         `db:"ended_at"` // nil: has it now
}

// Holdings lists who had a card, newest first.
func (s Store) Holdings(ctx context.Context, card services.CardID, limit int) ([]Holding, error) {
	var rows []Holding
	err := s.all(ctx, &rows, "list holders of card", `
		select o.gpu_id, g.name as gpu_name, o.account_id, a.name as account_name, o.began_at, o.ended_at
		from holdings o join gpus g on g.id = o.gpu_id join accounts a on a.id = o.account_id
		where o.card_id = $1 order by o.id desc limit $2`, card, limit)
	return rows, err
}
