package hostagent_test

import (
	"fmt"
	"testing"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent/sim"
)

func TestVMIsMadeGivenItsCardsAndStarted(t *testing.T) {
	b := newBench(t)
	b.start()
	want := vm("i-00000001", b.device(0), b.device(2))
	want.Run, want.Reboots = 4, 2
	r := b.console.awaitReached(b.console.want(vms(want)))
	got := find(r, want.ID)
	if got.Power != agentapi.PowerRunning || got.Run != 4 || got.Reboots != 2 || !has(got, want.Devices...) || got.Problem != nil {
		t.Errorf("VM is %+v, want it running with run 4, 2 reboots and both cards", got)
	}
	if b.console.everSaw(want.ID, func(v agentapi.VMReport) bool { return v.Power == agentapi.PowerRunning && !has(v, want.Devices...) }) {
		t.Error("the VM ran before it had its cards")
	}
}

func TestHeartbeatsGoOnWithoutAChange(t *testing.T) {
	b := newBench(t)
	b.start()
	reports := b.console.awaitNext(4)
	for i, r := range reports {
		if i > 0 && (r.Epoch != reports[0].Epoch || r.Sequence != reports[i-1].Sequence+1) {
			t.Errorf("report %d is numbered %d/%d after %d/%d", i, r.Epoch, r.Sequence, reports[i-1].Epoch, reports[i-1].Sequence)
		}
		if r.Partial || len(r.Hosts) != 1 || len(r.Hosts[0].Cards) != 4 || r.Agent.Driver != "sim" {
			t.Errorf("report %d is %+v, want the whole host", i, r)
		}
	}
}

func TestCardsComeAndGoOnlyWhileTheVMIsStopped(t *testing.T) {
	b := newBench(t)
	b.start()
	want := vm("i-00000001", b.device(0))
	b.console.awaitReached(b.console.want(vms(want)))

	want.Devices, want.VCores = []agentapi.Device{b.device(1)}, 6
	check := func(doing string, r agentapi.Report) {
		t.Helper()
		if v := find(r, want.ID); v.Power != agentapi.PowerRunning || !has(v, b.device(0)) || v.VCores != 4 {
			t.Errorf("%s: VM is %+v, want it running as it was", doing, v)
		}
	}
	check("wanted while it runs", b.console.awaitReached(b.console.want(vms(want))))
	must(t, b.sim.RebootGuest(want.ID))
	check("rebooted inside", b.console.awaitNext(3)[2])
	want.Reboots = 1
	check("rebooted by the console", b.console.awaitReached(b.console.want(vms(want))))

	must(t, b.sim.PowerOffGuest(want.ID))
	v := b.awaitVM(want.ID, "has the other card", func(v agentapi.VMReport) bool { return has(v, b.device(1)) })
	if v.Power != agentapi.PowerStopped || v.StoppedBy != agentapi.StoppedByGuest || v.VCores != 6 {
		t.Errorf("VM is %+v, want it stopped by the guest, with 6 cores", v)
	}
}

func TestPowerOffFromInsideIsNotUndoneUntilTheRunGrows(t *testing.T) {
	for by, end := range map[string]func(*sim.Driver, string) error{
		agentapi.StoppedByGuest: (*sim.Driver).PowerOffGuest,
		agentapi.StoppedByCrash: (*sim.Driver).CrashVM,
	} {
		t.Run(by, func(t *testing.T) {
			b := newBench(t)
			b.start()
			want := vm("i-00000001", b.device(0))
			b.console.awaitReached(b.console.want(vms(want)))
			must(t, end(b.sim, want.ID))
			b.awaitPower(want.ID, agentapi.PowerStopped)

			want.UserData = "changed" // another revision and another wish, with the same run
			b.console.awaitReached(b.console.want(vms(want)))
			for _, r := range b.console.awaitNext(5) {
				if v := find(r, want.ID); v.Power != agentapi.PowerStopped || v.StoppedBy != by || v.Run != 1 {
					t.Fatalf("VM is %+v, want it to stay stopped by %s", v, by)
				}
			}
			want.Run = 2
			b.console.want(vms(want))
			if v := b.runs(want.ID, b.device(0)); v.Run != 2 || v.StoppedBy != "" {
				t.Errorf("VM is %+v, want run 2", v)
			}
		})
	}
}

func TestRebootIsCarriedOutOnceAndIsNoStop(t *testing.T) {
	b := newBench(t)
	b.simConf.Latency = sim.Latency{Reboot: 30 * time.Millisecond}
	b.openSim()
	b.start()
	want := vm("i-00000001")
	b.console.awaitReached(b.console.want(vms(want)))
	want.Reboots = 3
	r := b.console.awaitReached(b.console.want(vms(want)))
	if v := find(r, want.ID); v.Reboots != 3 || v.Run != 1 {
		t.Errorf("VM is %+v, want 3 reboots of run 1", v)
	}
	for _, power := range []string{agentapi.PowerStopped, agentapi.PowerStopping} {
		if b.console.everSaw(want.ID, func(v agentapi.VMReport) bool { return v.Power == power && v.Run == 1 }) {
			t.Errorf("the VM was %s at its reboot", power)
		}
	}
}

func TestStopAndStartAgain(t *testing.T) {
	b := newBench(t)
	b.start()
	want := vm("i-00000001", b.device(0))
	b.console.awaitReached(b.console.want(vms(want)))
	want.Power = agentapi.PowerStopped
	v := find(b.console.awaitReached(b.console.want(vms(want))), want.ID)
	if v.Power != agentapi.PowerStopped || v.StoppedBy != agentapi.StoppedByConsole || !has(v, b.device(0)) {
		t.Errorf("VM is %+v, want it stopped by the console, with its card", v)
	}
	want.Power = agentapi.PowerRunning // the stop is taken back: no new run is needed
	b.console.want(vms(want))
	b.runs(want.ID, b.device(0))
}

func TestGuestThatIgnoresTheButtonIsTurnedOff(t *testing.T) {
	b := newBench(t)
	b.opts.ShutdownGrace = 20 * time.Millisecond
	b.start()
	want := vm("i-00000001")
	b.console.awaitReached(b.console.want(vms(want)))
	must(t, b.sim.IgnoreShutdown(want.ID, true))
	want.Power = agentapi.PowerStopped
	b.console.want(vms(want))
	if v := b.awaitPower(want.ID, agentapi.PowerStopped); v.StoppedBy != agentapi.StoppedByConsole {
		t.Errorf("VM was stopped by %q, want the console", v.StoppedBy)
	}
}

func TestDeletionDoesNotWaitForASlowShutdown(t *testing.T) {
	b := newBench(t)
	b.opts.ShutdownGrace = time.Hour
	b.start()
	want := vm("i-00000001", b.device(0))
	b.console.awaitReached(b.console.want(vms(want)))
	must(t, b.sim.IgnoreShutdown(want.ID, true))
	want.Power = agentapi.PowerStopped
	b.console.want(vms(want))
	b.awaitPower(want.ID, agentapi.PowerStopping)
	b.console.want(vms(agentapi.DesiredVM{ID: want.ID, Power: agentapi.PowerAbsent}))
	b.awaitPower(want.ID, agentapi.PowerAbsent)
	if b.sim.HasDisk(hostName, want.ID) {
		t.Error("the disk is still there")
	}
}

func TestRemovedVMIsReportedAbsentUntilItIsNoLongerDesired(t *testing.T) {
	b := newBench(t)
	b.start()
	want := vm("i-00000001", b.device(0))
	b.console.awaitReached(b.console.want(vms(want)))
	gone := agentapi.DesiredVM{ID: want.ID, Power: agentapi.PowerAbsent, KeepDisk: true}
	b.console.awaitReached(b.console.want(vms(gone)))
	b.stop()
	b.start() // it is known to be absent from what is seen, not from memory
	revision := b.console.want(vms(gone))
	b.console.awaitReached(revision)
	if v := find(b.console.awaitNext(2)[1], want.ID); v.Power != agentapi.PowerAbsent {
		t.Errorf("VM is %+v, want it reported absent", v)
	}
	if !b.sim.HasDisk(hostName, want.ID) {
		t.Error("a disk that was to be kept is gone")
	}
	r := b.console.awaitReached(b.console.want(nil))
	if v := find(r, want.ID); v.ID != "" {
		t.Errorf("VM is still reported: %+v", v)
	}
}

func TestWhatIsNotDesiredIsLeftAsItIs(t *testing.T) {
	b := newBench(t)
	must(t, b.sim.AddForeignVM(hostName, "somebody-elses", b.device(3).Key))
	b.start()
	kept := vm("i-00000001", b.device(0))
	b.console.awaitReached(b.console.want(vms(kept)))
	for doing, list := range map[string][]agentapi.DesiredVM{"an empty state": nil, "another VM": vms(vm("i-00000002"))} {
		r := b.console.awaitReached(b.console.want(list))
		if v := find(r, kept.ID); v.Power != agentapi.PowerRunning || !has(v, b.device(0)) {
			t.Errorf("%s: VM is %+v, want it running with its card", doing, v)
		}
		if v := find(r, "somebody-elses"); v.ID != "" {
			t.Errorf("%s: a VM of others is reported: %+v", doing, v)
		}
	}
}

func TestCardOfAnotherVMIsTakenOnlyWhenItIsFree(t *testing.T) {
	b := newBench(t)
	must(t, b.sim.AddForeignVM(hostName, "somebody-elses", b.device(0).Key))
	b.start()
	want := vm("i-00000001", b.device(0))
	revision := b.console.want(vms(want))
	v := b.awaitVM(want.ID, "has a problem", func(v agentapi.VMReport) bool { return v.Problem != nil })
	if p := v.Problem; p.Code != agentapi.ProblemInUse || p.Holder != "somebody-elses" || p.Card != b.device(0).Key || p.Since.IsZero() {
		t.Errorf("problem is %+v, want the card in use by somebody-elses", p)
	}
	if v := find(b.console.awaitReached(revision), want.ID); v.Power != agentapi.PowerStopped {
		t.Errorf("VM without its card is %s, want stopped", v.Power)
	}
	must(t, b.sim.AddForeignVM(hostName, "somebody-elses"))
	if v := b.runs(want.ID, b.device(0)); v.Problem != nil {
		t.Errorf("problem is still %+v", v.Problem)
	}
}

func TestCardsPassFromVMToVMInOneRevision(t *testing.T) {
	b := newBench(t)
	b.simConf.Latency = sim.Latency{Shutdown: 5 * time.Millisecond, Bind: 2 * time.Millisecond, Boot: 2 * time.Millisecond}
	b.openSim()
	b.start()
	first, second := vm("i-00000001", b.device(0)), vm("i-00000002", b.device(1))
	b.console.awaitReached(b.console.want(vms(first, second)))
	third := vm("i-00000003", b.device(0), b.device(1))
	second.Power, second.Devices = agentapi.PowerStopped, nil
	b.console.want(vms(agentapi.DesiredVM{ID: first.ID, Power: agentapi.PowerAbsent}, second, third))
	b.runs(third.ID, third.Devices...)
	b.awaitPower(first.ID, agentapi.PowerAbsent)
	b.awaitVM(second.ID, "gave its card up", func(v agentapi.VMReport) bool { return v.Power == agentapi.PowerStopped && has(v) })
}

func TestCardThatIsNotTheExpectedOneIsNotBound(t *testing.T) {
	for code, spoil := range map[string]func(*bench, *agentapi.Device){
		agentapi.ProblemIdentity: func(b *bench, d *agentapi.Device) { d.PCIAddress = b.device(1).PCIAddress },
		agentapi.ProblemGroup:    func(b *bench, d *agentapi.Device) { d.IOMMUGroup = b.device(1).IOMMUGroup },
	} {
		t.Run(code, func(t *testing.T) {
			b := newBench(t)
			b.start()
			d := b.device(0)
			spoil(b, &d)
			r := b.console.awaitReached(b.console.want(vms(vm("i-00000001", d))))
			v := find(r, "i-00000001")
			if v.Problem == nil || v.Problem.Code != code || v.Power != agentapi.PowerStopped || !has(v) {
				t.Errorf("VM is %+v with problem %+v, want it stopped without cards for %q", v, v.Problem, code)
			}
		})
	}
}

func TestVanishedCardKeepsTheVMFromStarting(t *testing.T) {
	b := newBench(t)
	b.start()
	want := vm("i-00000001", b.device(0))
	b.console.awaitReached(b.console.want(vms(want)))
	must(t, b.sim.RemoveCard(b.device(0).Key))
	must(t, b.sim.PowerOffGuest(want.ID))
	want.Run = 2
	r := b.console.awaitReached(b.console.want(vms(want)))
	v := find(r, want.ID)
	if v.Power != agentapi.PowerStopped || v.Problem == nil || v.Problem.Code != agentapi.ProblemIdentity || findCard(r, b.device(0).Key).Key != "" {
		t.Errorf("VM is %+v with problem %+v, want it stopped for the missing card", v, v.Problem)
	}
	must(t, b.sim.ReturnCard(b.device(0).Key))
	if v := b.runs(want.ID, b.device(0)); v.Run != 2 {
		t.Errorf("VM has run %d, want 2", v.Run)
	}
}

func TestManyVMsShareAHostWithoutADouble(t *testing.T) {
	b := newBench(t)
	b.simConf.Latency = sim.Latency{Bind: time.Millisecond, Boot: time.Millisecond, Shutdown: time.Millisecond}
	b.openSim()
	b.start()
	for round := range 5 {
		var list []agentapi.DesiredVM
		for n := range 4 {
			v := vm(fmt.Sprintf("i-%08x", n+1), b.device((n+round)%4))
			v.Run = int64(2*round + 1)
			list = append(list, v)
		}
		b.console.want(list)
		for n := range 4 {
			b.awaitVM(list[n].ID, "runs", func(v agentapi.VMReport) bool { return v.Power == agentapi.PowerRunning && v.Run == list[n].Run })
		}
		for n := range list {
			list[n].Power, list[n].Devices = agentapi.PowerStopped, nil
		}
		b.console.want(list)
		for _, v := range list {
			b.awaitVM(v.ID, "is stopped without cards", func(v agentapi.VMReport) bool { return v.Power == agentapi.PowerStopped && has(v) })
		}
	}
	b.console.set(func(c *console) {
		for _, r := range c.reports {
			checkNoDouble(t, r)
		}
	})
}

func checkNoDouble(t *testing.T, r agentapi.Report) {
	t.Helper()
	holder := make(map[string]string)
	for _, h := range r.Hosts {
		for _, v := range h.VMs {
			for _, key := range v.Devices {
				if other := holder[key]; other != "" {
					t.Errorf("report %d: card %s is in %s and %s", r.Sequence, key, other, v.ID)
				}
				holder[key] = v.ID
			}
		}
	}
}
