package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
	"berth/services/compute"
)

// Report takes what an agent saw. A report that is not newer than the last one
// is answered, and changes nothing. Refusals: bad-request, revoked.
func (s *Service) Report(ctx context.Context, a db.Agent, r agentapi.Report) (agentapi.ReportAnswer, error) {
	if err := check(r); err != nil {
		s.note(ctx, a.ID, "broken-report", "report", err.Error())
		return agentapi.ReportAnswer{}, refuse(agentapi.RefusalBadRequest, err.Error())
	}
	now := s.now()
	accepted := false
	err := s.db.Tx(ctx, func(tx *db.Tx) error {
		var err error
		accepted, err = tx.AcceptReport(ctx, db.Agent{
			ID: a.ID, Epoch: r.Epoch, Sequence: r.Sequence, ReportedAt: &now, ReachedRevision: r.Revision,
			Version: clip(r.Agent.Version), Driver: clip(r.Agent.Driver),
		})
		return err
	})
	if err != nil {
		return agentapi.ReportAnswer{}, err
	}
	if !accepted {
		return agentapi.ReportAnswer{Reason: agentapi.ReasonStale, Revision: a.DesiredRevision, Epoch: a.Epoch}, nil
	}
	if err := s.take(ctx, a, r, now); err != nil {
		return agentapi.ReportAnswer{}, err
	}
	a, _, err = s.db.Agent(ctx, a.ID)
	return agentapi.ReportAnswer{Accepted: true, Revision: a.DesiredRevision, Epoch: a.Epoch}, err
}

// take writes an accepted report into the books: hosts and cards, VMs, and what differs.
func (s *Service) take(ctx context.Context, a db.Agent, r agentapi.Report, now time.Time) error {
	t := taking{Service: s, agent: a, report: r, now: now}
	if err := t.hosts(ctx); err != nil {
		return err
	}
	if err := t.cards(ctx); err != nil {
		return err
	}
	failed := t.vms(ctx)
	if !r.Partial {
		if err := s.db.Tx(ctx, func(tx *db.Tx) error { return tx.SetDrifts(ctx, a.ID, t.drifts, now) }); err != nil {
			return err
		}
	}
	return failed
}

// note adds a drift that no full report clears in the same breath.
func (s *Service) note(ctx context.Context, agent services.AgentID, kind, subject, detail string) {
	if err := s.db.AddDrift(ctx, db.Drift{Agent: agent, Kind: kind, Subject: subject, Detail: clip(detail), LastSeen: s.now()}); err != nil {
		s.log.ErrorContext(ctx, "drift not noted", "agent", agent, "kind", kind, "error", err)
	}
}

var (
	pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	pciID      = regexp.MustCompile(`^[0-9a-f]{4}$`)
	vmID       = regexp.MustCompile(`^i-[0-9a-f]{8}$`)
	generation = regexp.MustCompile(`^v[0-9]{1,3}$`)
)

// check refuses a report that could not have come from an agent that works.
func check(r agentapi.Report) error {
	if r.Epoch <= 0 || r.Sequence <= 0 || r.Revision < 0 {
		return errors.New("epoch and sequence must be greater than 0, and revision not less")
	}
	names := map[string]bool{}
	for _, h := range r.Hosts {
		if h.Name == "" || clip(h.Name) != h.Name || names[h.Name] {
			return fmt.Errorf("host name %q must be 1 to %d bytes of UTF-8 and be there once", clip(h.Name), maxWord)
		}
		names[h.Name] = true
		if h.Generation != "" && !generation.MatchString(h.Generation) || h.VCores < 0 || h.MemoryMiB < 0 {
			return fmt.Errorf("host %s: generation must look like v7 or be empty, vcores and memory_mib must not be negative", h.Name)
		}
		if err := errors.Join(checkCards(h), checkVMs(h)); err != nil {
			return err
		}
	}
	return nil
}

func checkCards(h agentapi.HostReport) error {
	keys := map[string]bool{}
	for _, c := range h.Cards {
		switch {
		case c.Key == "" || clip(c.Key) != c.Key || keys[c.Key]:
			return fmt.Errorf("host %s: card key %q must be 1 to %d bytes of UTF-8 and be there once", h.Name, clip(c.Key), maxWord)
		case !pciAddress.MatchString(c.PCIAddress):
			return fmt.Errorf("host %s, card %s: pci_address %q must look like 0000:3b:00.0", h.Name, c.Key, clip(c.PCIAddress))
		case !pciID.MatchString(c.VendorID) || !pciID.MatchString(c.DeviceID):
			return fmt.Errorf("host %s, card %s: vendor_id and device_id must be four lower-case hex digits", h.Name, c.Key)
		case clip(c.Serial) != c.Serial || clip(c.UUID) != c.UUID || clip(c.SubsystemID) != c.SubsystemID:
			return fmt.Errorf("host %s, card %s: serial, uuid and subsystem_id must be %d bytes of UTF-8 at most", h.Name, c.Key, maxWord)
		}
		keys[c.Key] = true
	}
	return nil
}

func checkVMs(h agentapi.HostReport) error {
	ids := map[string]bool{}
	for _, v := range h.VMs {
		power := services.Power(v.Power)
		if !vmID.MatchString(v.ID) || ids[v.ID] || !power.Valid() || power == services.PowerPending || v.Run < 0 || v.Reboots < 0 {
			return fmt.Errorf("host %s: VM %q must have an id of the desired state, once, a known power and counts that are not negative", h.Name, clip(v.ID))
		}
		ids[v.ID] = true
	}
	return nil
}

// taking is one report on its way into the books.
type taking struct {
	*Service
	agent  db.Agent
	report agentapi.Report
	now    time.Time
	ids    map[string]services.HostID // by name
	known  []db.Host                  // of the agent, before
	drifts []db.Drift
	seen   map[string][]string      // names of the hosts that list a card, by its identity
	moved  map[services.CardID]bool // cards found to be on another host than before
}

func (t *taking) drift(kind, subject, detail string) {
	t.drifts = append(t.drifts, db.Drift{Agent: t.agent.ID, Kind: kind, Subject: subject, Detail: clip(detail), LastSeen: t.now})
}

// hosts writes what the report says of each host. Only a full report that
// lists the host's cards vouches for them: one that suddenly lists none of the
// cards that are known there does not.
func (t *taking) hosts(ctx context.Context) error {
	var err error
	if t.known, err = t.db.AgentHosts(ctx, t.agent.ID); err != nil {
		return err
	}
	if len(t.report.Hosts) == 0 && len(t.known) > 0 {
		t.drift("empty-report", "report", "lists no host")
	}
	t.ids = map[string]services.HostID{}
	for _, h := range t.report.Hosts {
		if err := t.host(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (t *taking) host(ctx context.Context, h agentapi.HostReport) error {
	id, err := services.NewID[services.HostID](t.random)
	if err != nil {
		return err
	}
	if h.Findings == nil {
		h.Findings = []agentapi.Finding{}
	}
	if h.NUMA == nil {
		h.NUMA = []agentapi.NUMANode{}
	}
	findings, err := json.Marshal(h.Findings)
	if err != nil {
		return fmt.Errorf("encode findings of %s: %w", h.Name, err)
	}
	numa, err := json.Marshal(h.NUMA)
	if err != nil {
		return fmt.Errorf("encode NUMA nodes of %s: %w", h.Name, err)
	}
	before := slices.IndexFunc(t.known, func(k db.Host) bool { return k.Name == h.Name })
	vouched, err := t.vouches(ctx, h, before)
	if err != nil {
		return err
	}
	until := t.now
	if vouched {
		until = t.now.Add(t.trust)
	}
	return t.db.Tx(ctx, func(tx *db.Tx) error {
		t.ids[h.Name], err = tx.SaveHost(ctx, db.Host{
			ID: id, Agent: t.agent.ID, Zone: t.agent.Zone, Name: h.Name, Generation: h.Generation, VCores: h.VCores, MemoryMiB: h.MemoryMiB,
			Kernel: clip(h.Kernel), Findings: findings, ReportedAt: t.now, ConfirmedUntil: until,
			NUMA: numa, Ready: ready(h.Findings), Version: clip(t.report.Agent.Version),
		})
		if err != nil {
			return err
		}
		return t.tellHost(ctx, tx, h, before, vouched)
	})
}

// ready reports whether no check failed that keeps the host's cards from being handed out.
func ready(findings []agentapi.Finding) bool {
	return !slices.ContainsFunc(findings, func(f agentapi.Finding) bool { return !f.OK && !f.Warning })
}

// tellHost makes an event of a host that is new, vouched for again after a
// silence, or ready or not other than before.
func (t *taking) tellHost(ctx context.Context, tx *db.Tx, h agentapi.HostReport, before int, vouched bool) error {
	kind, data := "", map[string]any{"Host": h.Name}
	now := ready(h.Findings)
	switch {
	case before < 0:
		kind = "host.enrolled"
	case now != t.known[before].Ready && now:
		kind = "host.ready"
	case now != t.known[before].Ready:
		kind, data["Findings"] = "host.not-ready", failing(h.Findings)
	case vouched && t.known[before].SilentSince != nil:
		kind = "host.back"
	}
	if kind == "" {
		return nil
	}
	return tx.InsertEvent(ctx, db.Event{At: t.now, Kind: kind, Actor: services.ActorHost, Data: data}, db.Subject{Host: t.ids[h.Name]})
}

// failing lists the codes of what keeps a host from being ready.
func failing(findings []agentapi.Finding) string {
	var codes []string
	for _, f := range findings {
		if !f.OK && !f.Warning {
			codes = append(codes, f.Code)
		}
	}
	return clip(strings.Join(codes, ", "))
}

func (t *taking) vouches(ctx context.Context, h agentapi.HostReport, before int) (bool, error) {
	if t.report.Partial {
		return false, nil
	}
	if before < 0 || len(h.Cards) > 0 {
		return true, nil
	}
	cards, err := t.db.CardsOf(ctx, []services.HostID{t.known[before].ID}, nil)
	if err != nil || len(cards) == 0 {
		return err == nil, err
	}
	t.drift("empty-report", h.Name, fmt.Sprintf("lists none of the %d cards known there", len(cards)))
	return false, nil
}

// vms hands each VM of the report that has news to whoever follows VMs. One
// that fails is left for the next report; it keeps no other back.
func (t *taking) vms(ctx context.Context) error {
	known, err := t.db.DesiredVMs(ctx, t.agent.ID)
	if err != nil {
		return err
	}
	handed := map[placed]db.DesiredVM{}
	for _, v := range known {
		handed[placed{v.Host, v.ID}] = v
	}
	var failed []error
	for _, h := range t.report.Hosts {
		for _, v := range h.VMs {
			at := placed{t.ids[h.Name], services.VMID(v.ID)}
			want, ours := handed[at]
			delete(handed, at)
			switch {
			case !ours && v.Power != agentapi.PowerAbsent:
				t.drift("foreign-vm", v.ID, "reported by "+h.Name+", which was not given it")
			case ours && news(want, v):
				failed = append(failed, t.observe(ctx, at, v))
			}
		}
	}
	for at, v := range handed {
		if v.SeenPower != services.PowerPending && v.Power != services.PowerAbsent {
			t.drift("vm-missing", string(at.vm), "was seen before, and the report does not list it")
		}
	}
	return errors.Join(failed...)
}

// placed is a VM on a host.
type placed struct {
	host services.HostID
	vm   services.VMID
}

// news reports whether what was seen of a VM differs from the books, or
// something is under way that it may move. A heartbeat brings none.
func news(k db.DesiredVM, v agentapi.VMReport) bool {
	off := v.Power == agentapi.PowerStopped && k.Power == services.PowerRunning
	return k.UnderWay || v.Problem != nil || off ||
		v.Power != string(k.SeenPower) || v.Run != k.SeenRun || v.Reboots != k.SeenReboots
}

func (t *taking) observe(ctx context.Context, at placed, v agentapi.VMReport) error {
	return services.Wrap("observe "+v.ID, t.machines.Observe(ctx, compute.Observation{
		Agent: t.agent.ID, Epoch: t.report.Epoch, Sequence: t.report.Sequence, Revision: max(t.report.Revision, v.Revision), Host: at.host, VM: v,
	}))
}
