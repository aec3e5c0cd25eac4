package compute_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/db"
	"berth/db/dbtest"
	"berth/services"
	"berth/services/agentapi"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/services/fleet"
)

// world is a console without pages: the services over a real Postgres, and
// hosts played by the test, step by step.
type world struct {
	db       *db.DB
	compute  *compute.Service
	fleet    *fleet.Service
	accounts []services.Actor
	agents   []*agent
}

// shape is one host of the world: name, generation and its cards by model.
type shape struct {
	name       string
	generation string
	cards      []string // PCI device ids
}

const (
	l40  = "26b5"
	h100 = "2331"
	a100 = "20b5"
	h200 = "2335"
)

// tb is what both *testing.T and *rapid.T offer.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newWorld(t testing.TB, quota int, zones map[string][]shape) *world {
	t.Helper()
	ctx := t.Context()
	d := dbtest.Open(t)
	w := &world{db: d}
	quiet := slog.New(slog.DiscardHandler)
	w.compute = compute.New(d, compute.Options{Log: quiet})
	var err error
	w.fleet, err = fleet.New(ctx, d, w.compute, fleet.Options{Log: quiet})
	must(t, err)
	must(t, d.Tx(ctx, func(tx *db.Tx) error { return tx.AddReference(ctx, catalog.Published()) }))
	for i, name := range []string{"Tenant A", "Tenant B"} {
		w.accounts = append(w.accounts, w.addAccount(t, i, name, quota))
	}
	for _, zone := range slices.Sorted(mapKeys(zones)) {
		w.addAgent(t, zone, zones[zone])
	}
	return w
}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func (w *world) addAccount(t testing.TB, i int, name string, quota int) services.Actor {
	t.Helper()
	ctx := t.Context()
	account := services.AccountID(fmt.Sprintf("acc-%08d", i))
	user := services.UserID(fmt.Sprintf("usr-%08d", i))
	must(t, w.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.InsertUser(ctx, db.User{ID: user, Email: fmt.Sprintf("user-%d@example.test", i), PasswordHash: "none"}, time.Now()); err != nil {
			return err
		}
		if err := tx.InsertAccount(ctx, account, name, time.Now()); err != nil {
			return err
		}
		for _, region := range []string{"eu-west-2", "cloudgouv-eu-west-1", "hikube"} {
			for _, m := range catalog.Published().Models {
				if err := tx.SetQuota(ctx, account, region, m.ID, &quota); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	return services.Actor{User: user, Email: fmt.Sprintf("user-%d@example.test", i), Account: account, Role: services.RoleOwner}
}

// machine is a VM as a played host has it.
type machine struct {
	power   string
	run     int64
	reboots int64
	stopper string
	devices []string
}

// place is a VM on a host; while a VM moves, both hosts have it.
type place struct{ host, vm string }

// agent plays the program on some hosts. Its methods do one thing at a time, so
// that a test decides in which order things happen.
type agent struct {
	mu       sync.Mutex
	id       services.AgentID
	epoch    int64
	sequence int64
	reached  int64
	hosts    []agentapi.HostReport // shapes, without VMs
	vms      map[place]*machine
	gone     map[place]bool
	dirty    map[string]string // card key: account whose data is on it
	cleaned  map[string]int64
	failed   map[string]int64
	last     agentapi.Report
	offline  bool
}

func (w *world) addAgent(t testing.TB, zone string, shapes []shape) {
	t.Helper()
	ctx := t.Context()
	id, err := services.NewID[services.AgentID](rand.Reader)
	must(t, err)
	must(t, w.db.Tx(ctx, func(tx *db.Tx) error {
		return tx.InsertAgent(ctx, db.Agent{ID: id, Zone: zone, CertificateHash: []byte{1}, ExpiresAt: time.Now().Add(time.Hour), CreatedAt: time.Now()})
	}))
	a := &agent{
		id: id, epoch: 1, vms: map[place]*machine{}, gone: map[place]bool{}, dirty: map[string]string{},
		cleaned: map[string]int64{}, failed: map[string]int64{},
	}
	for _, s := range shapes {
		a.hosts = append(a.hosts, hostReport(zone, s))
	}
	w.agents = append(w.agents, a)
	w.report(ctx, t, a)
}

func hostReport(zone string, s shape) agentapi.HostReport {
	h := agentapi.HostReport{Name: s.name, Generation: s.generation, VCores: 512, MemoryMiB: 4 << 20}
	for i, device := range s.cards {
		group, node := 30+i, i%2
		h.Cards = append(h.Cards, agentapi.CardReport{
			Key: fmt.Sprintf("%s-%s-%d", zone, s.name, i), Serial: fmt.Sprintf("%s-%s-%d", zone, s.name, i), VendorID: "10de", DeviceID: device,
			PCIAddress: fmt.Sprintf("0000:%02x:00.0", 0x3b+i), IOMMUGroup: &group, NUMANode: &node,
		})
	}
	return h
}

// now is what the agent would report at this moment.
func (a *agent) now() agentapi.Report {
	a.sequence++
	r := agentapi.Report{Epoch: a.epoch, Sequence: a.sequence, Revision: a.reached, Agent: agentapi.Agent{Version: "test", Driver: "played"}}
	for _, h := range a.hosts {
		h.Cards = slices.Clone(h.Cards)
		for i := range h.Cards {
			h.Cards[i].CleanedOrder = a.cleaned[h.Cards[i].Key]
			h.Cards[i].FailedOrder = a.failed[h.Cards[i].Key]
		}
		for at, m := range a.vms {
			if at.host == h.Name {
				h.VMs = append(h.VMs, agentapi.VMReport{
					ID: at.vm, Power: m.power, Run: m.run, Reboots: m.reboots, StoppedBy: m.stopper, Devices: append([]string{}, m.devices...),
				})
			}
		}
		for at := range a.gone {
			if at.host == h.Name {
				h.VMs = append(h.VMs, agentapi.VMReport{ID: at.vm, Power: agentapi.PowerAbsent, Devices: []string{}})
			}
		}
		r.Hosts = append(r.Hosts, h)
	}
	a.last = r
	return r
}

func (w *world) send(ctx context.Context, t tb, a *agent, r agentapi.Report) agentapi.ReportAnswer {
	t.Helper()
	row, ok, err := w.db.Agent(ctx, a.id)
	must(t, err)
	if !ok {
		t.Fatalf("agent %s is not in the books", a.id)
	}
	answer, err := w.fleet.Report(ctx, row, r)
	must(t, err)
	return answer
}

func (w *world) report(ctx context.Context, t tb, a *agent) {
	t.Helper()
	if a.offline {
		return
	}
	w.send(ctx, t, a, a.now())
}

// work reads the desired state, does all of it, and reports.
func (w *world) work(ctx context.Context, t tb, a *agent) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.offline {
		return
	}
	desired, err := w.fleet.Desired(ctx, a.id)
	must(t, err)
	for range 3 { // a card goes from one VM to another in the second round
		a.round(ctx, t, w, desired)
	}
	a.reached = desired.Revision
	w.report(ctx, t, a)
}

func (a *agent) round(ctx context.Context, t tb, w *world, desired agentapi.Desired) {
	t.Helper()
	for _, h := range desired.Hosts {
		for _, v := range h.VMs {
			a.converge(ctx, t, w, h.Name, v)
		}
		for _, c := range h.Cards {
			if a.holder(c.Key) == "" && a.cleaned[c.Key] < c.CleanOrder {
				a.cleaned[c.Key] = c.CleanOrder
				delete(a.dirty, c.Key)
			}
		}
	}
}

func (a *agent) holder(card string) string {
	for at, m := range a.vms {
		if slices.Contains(m.devices, card) {
			return at.vm
		}
	}
	return ""
}

// on finds a VM on whichever host has it; nil: on none.
func (a *agent) on(vm services.VMID) (host string, m *machine) {
	for at, m := range a.vms {
		if at.vm == string(vm) {
			return at.host, m
		}
	}
	return "", nil
}

// converge brings one VM to what is wanted, as an agent of a single host would:
// removal first, devices only while it is stopped, and no card of another VM.
func (a *agent) converge(ctx context.Context, t tb, w *world, host string, v agentapi.DesiredVM) {
	t.Helper()
	at := place{host, v.ID}
	if v.Power == agentapi.PowerAbsent {
		delete(a.vms, at)
		a.gone[at] = true
		return
	}
	m := a.vms[at]
	if m == nil {
		m = &machine{power: agentapi.PowerStopped, stopper: agentapi.StoppedByConsole}
		a.vms[at] = m
		delete(a.gone, at)
	}
	if m.power == agentapi.PowerRunning && v.Power == agentapi.PowerStopped {
		m.power, m.stopper = agentapi.PowerStopped, agentapi.StoppedByConsole
	}
	ready := m.power == agentapi.PowerRunning || a.bind(ctx, t, w, m, v)
	if v.Power == agentapi.PowerRunning && v.Run > m.run && ready {
		if other := a.runsElsewhere(at); other != "" {
			t.Fatalf("VM %s is started on %s while it runs on %s", v.ID, host, other)
		}
		m.power, m.run, m.stopper = agentapi.PowerRunning, v.Run, ""
	}
	if m.power == agentapi.PowerRunning {
		m.reboots = max(m.reboots, v.Reboots)
	}
}

func (a *agent) runsElsewhere(here place) string {
	for at, m := range a.vms {
		if at.vm == here.vm && at.host != here.host && m.power == agentapi.PowerRunning {
			return at.host
		}
	}
	return ""
}

// bind gives a stopped VM its devices; false while another VM has one of them.
func (a *agent) bind(ctx context.Context, t tb, w *world, m *machine, v agentapi.DesiredVM) bool {
	t.Helper()
	m.devices = slices.DeleteFunc(m.devices, func(k string) bool {
		return !slices.ContainsFunc(v.Devices, func(d agentapi.Device) bool { return d.Key == k })
	})
	account := w.accountOf(ctx, t, v.ID)
	for _, d := range v.Devices {
		if slices.Contains(m.devices, d.Key) {
			continue
		}
		if a.holder(d.Key) != "" {
			return false
		}
		if owner := a.dirty[d.Key]; owner != "" && owner != account {
			t.Fatalf("card %s with data of %s is handed to %s", d.Key, owner, account)
		}
		a.dirty[d.Key] = account
		m.devices = append(m.devices, d.Key)
	}
	return true
}

func (w *world) accountOf(ctx context.Context, t tb, vm string) string {
	t.Helper()
	vms, err := w.db.VMsByID(ctx, []services.VMID{services.VMID(vm)})
	must(t, err)
	if len(vms) != 1 {
		t.Fatalf("VM %s is not in the books", vm)
	}
	return string(vms[0].Account)
}

// powerOff is a power-off from inside the guest, reported at once.
func (w *world) powerOff(ctx context.Context, t tb, a *agent, vm services.VMID) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, m := a.on(vm); m != nil && m.power == agentapi.PowerRunning {
		m.power, m.stopper = agentapi.PowerStopped, agentapi.StoppedByGuest
	}
	w.report(ctx, t, a)
}

// settle lets every agent work until nothing changes any more.
func (w *world) settle(ctx context.Context, t tb) {
	t.Helper()
	for range 4 {
		for _, a := range w.agents {
			w.work(ctx, t, a)
		}
	}
}

func (w *world) state(ctx context.Context, t tb, a services.Actor, id services.GPUID) services.GPUState {
	t.Helper()
	g, err := w.db.AccountGPU(ctx, a.Account, id)
	must(t, err)
	return g.State
}

func (w *world) vm(ctx context.Context, t tb, a services.Actor, id services.VMID) db.VM {
	t.Helper()
	vm, err := w.db.AccountVM(ctx, a.Account, id)
	must(t, err)
	return vm
}
