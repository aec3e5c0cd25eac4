package tenancy_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/db"
	"berth/services"
	"berth/services/catalog"
	"berth/services/tenancy"
)

const (
	west = "eu-west-2"
	l40  = "nvidia-l40"
	h100 = "nvidia-h100"
)

// stock puts GPUs and VMs into the books, each GPU on a card of its own.
type stock struct {
	*world
	hosts map[string]services.HostID // by zone
	n     int
}

func newStock(w *world) *stock { return &stock{world: w, hosts: map[string]services.HostID{}} }

func (s *stock) next() int { s.n++; return s.n }

func (s *stock) host(zone string) services.HostID {
	s.Helper()
	if id, known := s.hosts[zone]; known {
		return id
	}
	n := s.next()
	agent := services.AgentID(fmt.Sprintf("agent-%08x", n))
	s.must(s.db.Tx(s.Context(), func(tx *db.Tx) error {
		if err := tx.InsertAgent(s.Context(), db.Agent{ID: agent, Zone: zone, CertificateHash: []byte{byte(n)}, ExpiresAt: s.time, CreatedAt: s.time}); err != nil {
			return err
		}
		var err error
		s.hosts[zone], err = tx.SaveHost(s.Context(), db.Host{
			ID: services.HostID(fmt.Sprintf("host-%08x", n)), Agent: agent, Zone: zone, Name: zone, Generation: "v7", VCores: 512, MemoryMiB: 4 << 20,
			Findings: db.JSON("[]"), ReportedAt: s.time, ConfirmedUntil: s.time.Add(time.Hour), Ready: true,
		})
		return err
	}))
	return s.hosts[zone]
}

// vm adds one; a pending one has not been seen by any host.
func (s *stock) vm(account services.AccountID, zone string, vcores, memoryMiB int) services.VMID {
	s.Helper()
	id := services.VMID(fmt.Sprintf("i-%08x", s.next()))
	host := s.host(zone)
	s.must(s.db.Tx(s.Context(), func(tx *db.Tx) error {
		return tx.InsertVM(s.Context(), db.VM{
			ID: id, Account: account, Zone: zone, Name: "vm", Type: "x", VCores: vcores, MemoryMiB: memoryMiB, Generation: "v7",
			Performance: catalog.Highest, Tenancy: catalog.TenancyDefault, Image: "debian-12", Host: host, DesiredPower: services.PowerRunning, CreatedAt: s.time,
		})
	}))
	return id
}

// gpu adds one in a state, on a VM where the state has one.
func (s *stock) gpu(account services.AccountID, region, zone, model string, state services.GPUState, vm services.VMID) services.GPUID {
	s.Helper()
	n := s.next()
	card, id := services.CardID(fmt.Sprintf("card-%08x", n)), services.GPUID(fmt.Sprintf("fgpu-%08x", n))
	kind := services.GPUFlexible
	if state == "" {
		kind = services.GPUBuiltIn
	}
	host := s.host(zone)
	s.must(s.db.Tx(s.Context(), func(tx *db.Tx) error {
		if err := tx.InsertCard(s.Context(), db.Card{
			ID: card, Identity: string(card), Key: string(card), Host: host, Zone: zone, Model: model, VendorID: "10de", DeviceID: "26b5",
			PCIAddress: "0000:3b:00.0", Functions: db.JSON("[]"), Condition: services.CardReady, LastSeenAt: s.time,
		}); err != nil {
			return err
		}
		return tx.InsertGPU(s.Context(), db.GPU{
			ID: id, Account: account, Kind: kind, Name: "gpu", Model: model, Region: region, Zone: zone, Card: card, State: state, VM: vm, StateSince: s.time,
		})
	}))
	return id
}

func (s *stock) release(gpu services.GPUID) {
	s.Helper()
	s.must(s.db.Tx(s.Context(), func(tx *db.Tx) error {
		_, err := tx.MoveGPU(s.Context(), db.Move{
			GPU: gpu, From: services.GPUStates, Event: db.Event{At: s.time, Kind: "gpu.released", Actor: services.ActorConsole},
		})
		return err
	}))
}

func (w *world) limit(account services.AccountID, region, item, limit string) {
	w.Helper()
	w.must(w.ChangeQuota(w.Context(), operator, tenancy.NewQuota{Account: string(account), Region: region, Item: item, Limit: limit}))
}

// lines spells limits as "region item used+pending/limit".
func (w *world) lines(account services.AccountID, region string) []string {
	w.Helper()
	all, err := w.Limits(w.Context(), account, region)
	w.must(err)
	var lines []string
	for _, q := range all {
		lines = append(lines, fmt.Sprintf("%s %s %d+%d/%s", q.Region, q.Item, q.Used, q.Pending, limitOf([]tenancy.Quota{q}, q.Item)))
	}
	return lines
}

// GPUs count for their own account, region and model, from allocation until release.
func TestUseOfGPUsIsCountedByAccountRegionAndModel(t *testing.T) {
	w := newWorld(t)
	s := newStock(w)
	mine, other := w.open("Anchor", ""), w.open("Berth", "")
	for _, account := range []services.AccountID{mine, other} {
		w.limit(account, west, l40, "2")
		w.limit(account, west, h100, "unlimited")
		w.limit(account, "hikube", h100, "0")
	}
	plain, one, inference := s.vm(mine, "eu-west-2a", 8, 32<<10), s.vm(mine, "eu-west-2b", 8, 32<<10), s.vm(mine, "eu-west-2a", 8, 32<<10)
	s.gpu(mine, west, "eu-west-2a", l40, services.GPUAllocated, "")
	s.gpu(mine, west, "eu-west-2b", l40, services.GPUAttached, one)
	s.gpu(mine, west, "eu-west-2a", h100, services.GPUAttaching, plain)
	s.gpu(mine, west, "eu-west-2a", h100, services.GPUDetaching, plain)
	s.gpu(mine, west, "eu-west-2a", h100, "", inference) // built in
	gone := s.gpu(mine, west, "eu-west-2a", l40, services.GPUAllocated, "")
	s.gpu(mine, "hikube", "hikube-1", h100, services.GPUAllocated, "")
	s.gpu(other, west, "eu-west-2a", l40, services.GPUAllocated, "")

	want := []string{"eu-west-2 nvidia-h100 3+2/unlimited", "eu-west-2 nvidia-l40 3+0/2", "hikube nvidia-h100 1+0/0"}
	if diff := cmp.Diff(want, w.lines(mine, "")); diff != "" {
		t.Error(diff)
	}
	s.release(gone)
	if diff := cmp.Diff([]string{"eu-west-2 nvidia-h100 3+2/unlimited", "eu-west-2 nvidia-l40 2+0/2"}, w.lines(mine, west)); diff != "" {
		t.Errorf("after a release: %s", diff)
	}
	if diff := cmp.Diff([]string{"eu-west-2 nvidia-h100 0+0/unlimited", "eu-west-2 nvidia-l40 1+0/2"}, w.lines(other, west)); diff != "" {
		t.Errorf("another account: %s", diff)
	}
}

// Machines count in each of a region's zones until they are deleted; memory
// counts in whole GiB.
func TestUseOfMachinesIsCountedByAccountAndRegion(t *testing.T) {
	w := newWorld(t)
	s := newStock(w)
	mine, other := w.open("Anchor", ""), w.open("Berth", "")
	for item, limit := range map[string]string{"vcores": "4", "memory": "unlimited", "vms": "0", "clusters": "7"} {
		w.limit(mine, west, item, limit)
		w.limit(mine, "hikube", item, limit)
	}
	s.vm(other, "eu-west-2a", 16, 64<<10)
	s.vm(mine, "eu-west-2a", 4, 16<<10)
	s.vm(mine, "eu-west-2b", 2, 1<<10+512)
	gone := s.vm(mine, "eu-west-2a", 32, 128<<10)
	s.must(s.db.Tx(t.Context(), func(tx *db.Tx) error {
		vm, err := tx.LockVM(t.Context(), mine, gone)
		if err != nil {
			return err
		}
		vm.DesiredPower, vm.DeletedAt = services.PowerAbsent, &w.time
		return tx.WantVM(t.Context(), vm)
	}))
	used := map[string]int{}
	all, err := w.Limits(t.Context(), mine, "")
	w.must(err)
	for _, q := range all {
		used[q.Region+" "+q.Item] = q.Used
	}
	want := map[string]int{
		"eu-west-2 vcores": 6, "eu-west-2 memory": 18, "eu-west-2 vms": 2, "eu-west-2 clusters": 0,
		"hikube vcores": 0, "hikube memory": 0, "hikube vms": 0, "hikube clusters": 0,
	}
	if diff := cmp.Diff(want, used); diff != "" {
		t.Error(diff)
	}
}

// Pending stands beside used and is a part of it: cores where cores are
// counted, GiB where memory is.
func TestWhatIsPendingIsCountedInTheUnitOfItsLimit(t *testing.T) {
	w := newWorld(t)
	s := newStock(w)
	mine := w.open("Anchor", "")
	for _, item := range services.Resources {
		w.limit(mine, west, item, "100")
	}
	s.vm(mine, "eu-west-2a", 8, 32<<10)
	s.vm(mine, "eu-west-2a", 2, 4<<10)
	want := []string{"eu-west-2 clusters 0+0/100", "eu-west-2 memory 36+36/100", "eu-west-2 vcores 10+10/100", "eu-west-2 vms 2+2/100"}
	if diff := cmp.Diff(want, w.lines(mine, west)); diff != "" {
		t.Error(diff)
	}
}

func TestNobodysLimitsAreNone(t *testing.T) {
	w := newWorld(t)
	w.limit(w.open("Anchor", ""), west, l40, "3")
	for _, account := range []services.AccountID{"", "acc-ffffffff"} {
		if all, err := w.Limits(t.Context(), account, ""); err != nil || len(all) > 0 {
			t.Errorf("of %q: %+v, %v", account, all, err)
		}
	}
}

// The log has each change of a limit once, with what it was and what it is.
func TestEachChangeOfALimitIsLoggedWithBothValues(t *testing.T) {
	w := newWorld(t)
	id := w.open("Anchor", "")
	for _, step := range []struct{ item, limit string }{
		{l40, "4"}, {l40, "4"}, {l40, "unlimited"}, {l40, "0"}, {"vcores", "unlimited"}, {"vcores", "8"}, {"vcores", "unlimited"}, {h100, "0"},
	} {
		w.limit(id, west, step.item, step.limit)
	}
	d, err := w.Account(t.Context(), id)
	w.must(err)
	var got []string
	for _, e := range d.Events {
		if e.Kind != "account.quota-changed" {
			continue
		}
		got = append(got, fieldsOf(t, e.Data))
		if e.Actor != operator.Email || e.RequestID != operator.RequestID || e.Address != operator.Address {
			t.Errorf("%s was done by %q from %q", got[len(got)-1], e.Actor, e.Address)
		}
	}
	want := []string{"vcores 8>unlimited", "vcores unlimited>8", "nvidia-l40 unlimited>0", "nvidia-l40 4>unlimited", "nvidia-l40 0>4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var items []string
	for _, q := range d.Quotas {
		items = append(items, q.Item+" "+limitOf(d.Quotas, q.Item))
	}
	if diff := cmp.Diff([]string{"nvidia-h100 0", "nvidia-l40 0", "vcores unlimited"}, items); diff != "" {
		t.Errorf("in the end: %s", diff)
	}
}

// fieldsOf spells a change as "item old>new".
func fieldsOf(t *testing.T, data []byte) string {
	t.Helper()
	var f struct{ Item, Region, Old, New string }
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	if f.Region != west {
		t.Errorf("the log names the region %q, want %q", f.Region, west)
	}
	return f.Item + " " + f.Old + ">" + f.New
}
