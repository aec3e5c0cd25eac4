package hostagent_test

import (
	"errors"
	"testing"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent/sim"
)

func TestHangingBindDelaysNothingElse(t *testing.T) {
	b := newBench(t)
	b.opts.BindTimeout = 50 * time.Millisecond
	must(t, b.sim.HangBind(b.device(0).Key, "ollama", 4711, 0))
	b.start()
	stuck, free := vm("i-00000001", b.device(0)), vm("i-00000002", b.device(1))
	b.console.want(vms(stuck, free))
	b.runs(free.ID, b.device(1))
	v := b.awaitVM(stuck.ID, "has a problem", func(v agentapi.VMReport) bool { return v.Problem != nil })
	if p := v.Problem; p.Code != agentapi.ProblemHeld || p.Holder != "ollama" || p.PID != 4711 || p.Final || v.Power != agentapi.PowerStopped {
		t.Errorf("VM is %s with problem %+v, want it stopped, held by ollama", v.Power, p)
	}
	third := vm("i-00000003", b.device(2))
	b.console.want(vms(stuck, free, third))
	b.runs(third.ID, b.device(2))
	must(t, b.sim.ReleaseCard(b.device(0).Key))
	b.runs(stuck.ID, b.device(0))
}

func TestBindThatHangsShowsTheHolderAtOnce(t *testing.T) {
	b := newBench(t)
	b.opts.BindTimeout = time.Hour
	must(t, b.sim.HangBind(b.device(0).Key, "ollama", 4711, 0))
	b.start()
	stuck, other := vm("i-00000001", b.device(0)), vm("i-00000002")
	b.console.want(vms(stuck, other))
	r := b.console.awaitReport("the card shows who holds it", func(r agentapi.Report) bool {
		return findCard(r, b.device(0).Key).Problem != nil
	})
	if p := findCard(r, b.device(0).Key).Problem; p.Holder != "ollama" || p.PID != 4711 || p.Since.IsZero() {
		t.Errorf("problem is %+v, want ollama", p)
	}
	revision := b.console.want(vms(stuck, other))
	r = b.console.awaitReport("the other VM has reached the newest revision", func(r agentapi.Report) bool {
		return find(r, other.ID).Revision == revision
	})
	if find(r, stuck.ID).Revision != 0 || r.Revision != 0 {
		t.Errorf("while it hangs, the VM has revision %d and the report %d, want none", find(r, stuck.ID).Revision, r.Revision)
	}
	stuck.Devices = []agentapi.Device{b.device(1)} // rolled back: the step that hangs is broken off
	b.console.want(vms(stuck, other))
	b.runs(stuck.ID, b.device(1))
}

func TestProblemIsFinalAfterItsDeadlineAndTriedOnceMoreForANewRevision(t *testing.T) {
	b := newBench(t)
	b.opts.GiveUpAfter = 30 * time.Millisecond
	must(t, b.sim.HoldCard(b.device(0).Key, "nvidia-smi", 99, 0))
	b.start()
	want := vm("i-00000001", b.device(0))
	b.console.want(vms(want))
	final := b.awaitVM(want.ID, "is given up", func(v agentapi.VMReport) bool { return v.Problem != nil && v.Problem.Final })

	must(t, b.sim.ReleaseCard(b.device(0).Key))
	for _, r := range b.console.awaitNext(5) {
		if v := find(r, want.ID); v.Power != agentapi.PowerStopped || v.Problem == nil || !v.Problem.Since.Equal(final.Problem.Since) {
			t.Fatalf("VM is %+v with problem %+v, want it given up for good", v, v.Problem)
		}
	}
	b.console.want(vms(want))
	if v := b.runs(want.ID, b.device(0)); v.Problem != nil {
		t.Errorf("problem is still %+v", v.Problem)
	}
}

func TestStartThatFailsIsTriedAgain(t *testing.T) {
	b := newBench(t)
	b.start()
	want := vm("i-00000001")
	want.Power = agentapi.PowerStopped
	b.console.awaitReached(b.console.want(vms(want)))
	must(t, b.sim.FailStarts(want.ID, "no such machine type", 3))
	want.Power = agentapi.PowerRunning
	b.console.want(vms(want))
	b.runs(want.ID)
	failed := func(v agentapi.VMReport) bool {
		return v.Problem != nil && v.Problem.Code == agentapi.ProblemStart && v.Problem.Message == "no such machine type"
	}
	if !b.console.everSaw(want.ID, failed) {
		t.Error("the failure was never reported")
	}
}

func TestVMThatFindsNoRoomStartsWhenThereIsSome(t *testing.T) {
	b := newBench(t)
	b.start()
	big, other := vm("i-00000001"), vm("i-00000002")
	big.VCores, other.VCores = 60, 8
	b.console.awaitReached(b.console.want(vms(big)))
	b.console.want(vms(big, other))
	v := b.awaitVM(other.ID, "has a problem", func(v agentapi.VMReport) bool { return v.Problem != nil })
	if v.Problem.Code != agentapi.ProblemStart {
		t.Errorf("problem is %+v, want start-failed", v.Problem)
	}
	must(t, b.sim.PowerOffGuest(big.ID))
	b.runs(other.ID)
}

func TestFailedInspectionIsAPartialReportAndChangesNothing(t *testing.T) {
	for name, blind := range map[string]func(*sim.Driver, bool) error{
		"nothing is seen": func(d *sim.Driver, on bool) error {
			if !on {
				return d.FailInspect(hostName, nil)
			}
			return d.FailInspect(hostName, errors.New("libvirt does not answer"))
		},
		"VMs are not seen": func(d *sim.Driver, on bool) error { return d.PartialInspect(hostName, on) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.start()
			kept, gone := vm("i-00000001", b.device(0)), vm("i-00000002")
			revision := b.console.want(vms(kept, gone))
			b.console.awaitReached(revision)
			must(t, blind(b.sim, true))
			b.console.awaitReport("a partial report", func(r agentapi.Report) bool { return r.Partial })
			b.console.want(vms(kept, agentapi.DesiredVM{ID: gone.ID, Power: agentapi.PowerAbsent}, vm("i-00000003")))
			b.console.await("the new revision was taken", func(c *console) bool { return c.polls >= 3 })
			for _, r := range b.console.awaitNext(5) {
				if !r.Partial || find(r, kept.ID).ID != "" || find(r, gone.ID).ID != "" || r.Revision != revision {
					t.Fatalf("report is %+v, want a partial one without VMs, at revision %d", r, revision)
				}
			}
			must(t, blind(b.sim, false))
			b.runs("i-00000003")
			b.awaitPower(gone.ID, agentapi.PowerAbsent)
			b.runs(kept.ID, b.device(0))
		})
	}
}

func TestCardIsCleanedOnceForEachOrder(t *testing.T) {
	b := newBench(t)
	b.start()
	key := b.device(0).Key
	r := b.console.awaitReached(b.console.want(nil, agentapi.DesiredCard{Key: key, CleanOrder: 3}))
	if c := findCard(r, key); c.CleanedOrder != 3 || c.FailedOrder != 0 {
		t.Errorf("card is %+v, want order 3 done", c)
	}
	must(t, b.sim.FailResets(key, 1))
	r = b.console.awaitReached(b.console.want(nil, agentapi.DesiredCard{Key: key, CleanOrder: 4}))
	if c := findCard(r, key); c.CleanedOrder != 3 || c.FailedOrder != 4 || c.Problem == nil || c.Problem.Code != agentapi.ProblemReset {
		t.Errorf("card is %+v with problem %+v, want order 4 failed", c, c.Problem)
	}
	for _, r := range b.console.awaitNext(4) { // the next reset would succeed: it must not be tried
		if c := findCard(r, key); c.CleanedOrder != 3 {
			t.Fatalf("card is %+v: the failed order was tried again", c)
		}
	}
	r = b.console.awaitReached(b.console.want(nil, agentapi.DesiredCard{Key: key, CleanOrder: 5}))
	if c := findCard(r, key); c.CleanedOrder != 5 || c.Problem != nil {
		t.Errorf("card is %+v with problem %+v, want order 5 done", c, c.Problem)
	}
}

func TestCardIsCleanedOnlyWhenNoVMHasIt(t *testing.T) {
	b := newBench(t)
	b.start()
	want, key := vm("i-00000001", b.device(0)), b.device(0).Key
	b.console.awaitReached(b.console.want(vms(want)))
	order := agentapi.DesiredCard{Key: key, CleanOrder: 1}
	r := b.console.awaitReached(b.console.want(vms(want), order))
	if c := findCard(r, key); c.CleanedOrder != 0 || c.Problem == nil || c.Problem.Code != agentapi.ProblemInUse || c.Problem.Holder != want.ID {
		t.Errorf("card is %+v with problem %+v, want it in use", c, c.Problem)
	}
	b.console.want(vms(agentapi.DesiredVM{ID: want.ID, Power: agentapi.PowerAbsent}), order)
	b.console.awaitReport("the card is clean", func(r agentapi.Report) bool {
		c := findCard(r, key)
		return c.CleanedOrder == 1 && c.Problem == nil
	})
}

func TestCleaningThatDoesNotEndInTimeHasFailed(t *testing.T) {
	b := newBench(t)
	b.opts.CleanTimeout = 20 * time.Millisecond
	b.simConf.Latency = sim.Latency{Clean: time.Hour}
	b.openSim()
	b.start()
	key := b.device(0).Key
	r := b.console.awaitReached(b.console.want(nil, agentapi.DesiredCard{Key: key, CleanOrder: 1}))
	if c := findCard(r, key); c.FailedOrder != 1 || c.CleanedOrder != 0 {
		t.Errorf("card is %+v, want order 1 failed", c)
	}
}
