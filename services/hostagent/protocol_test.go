package hostagent_test

import (
	"testing"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent/sim"
)

func TestReplayedDesiredStateChangesNothing(t *testing.T) {
	b := newBench(t)
	b.start()
	want := vm("i-00000001", b.device(0))
	first := b.console.want(vms(want))
	b.console.awaitReached(first)
	older := b.console.desired
	older.Hosts = []agentapi.DesiredHost{{Name: hostName, VMs: vms(agentapi.DesiredVM{ID: want.ID, Power: agentapi.PowerAbsent})}}
	want.Reboots = 1
	second := b.console.want(vms(want))
	b.console.awaitReached(second)
	for _, revision := range []int64{first, second} {
		older.Revision = revision
		polls := 0
		b.console.set(func(c *console) { polls, c.replay = c.polls, &older })
		b.console.await("the replay was taken", func(c *console) bool { return c.replay == nil && c.polls > polls })
		for _, r := range b.console.awaitNext(3) {
			if v := find(r, want.ID); v.Power != agentapi.PowerRunning || v.Reboots != 1 || v.Run != 1 || r.Revision != second {
				t.Fatalf("VM is %+v at revision %d, want it untouched", v, r.Revision)
			}
		}
	}
}

func TestConsoleThatWasRestoredIsFollowedFromTheStart(t *testing.T) {
	b := newBench(t)
	b.start()
	want := vm("i-00000001")
	for range 3 {
		b.console.awaitReached(b.console.want(vms(want)))
	}
	want.Power = agentapi.PowerStopped
	b.console.set(func(c *console) {
		c.forgot = true
		c.desired = agentapi.Desired{Revision: 1, Hosts: []agentapi.DesiredHost{{Name: hostName, VMs: vms(want)}}}
	})
	b.awaitPower(want.ID, agentapi.PowerStopped)
	b.console.awaitReport("revision 1 again", func(r agentapi.Report) bool { return r.Revision == 1 })
}

func TestDesiredStateThatIsNotUnderstoodChangesNothing(t *testing.T) {
	for name, raw := range map[string]string{
		"no JSON":       `{"revision": 9, "hosts": [`,
		"unknown power": `{"revision": 9, "hosts": [{"name": "gpu-par-014", "vms": [{"id": "i-00000001", "power": "absent"}, {"id": "i-00000002", "power": "paused"}]}]}`,
		"VM twice":      `{"revision": 9, "hosts": [{"name": "gpu-par-014", "vms": [{"id": "i-00000001", "power": "absent"}, {"id": "i-00000001", "power": "running"}]}]}`,
		"host twice":    `{"revision": 9, "hosts": [{"name": "gpu-par-014", "vms": [{"id": "i-00000001", "power": "absent"}]}, {"name": "gpu-par-014"}]}`,
		"card for two":  `{"revision": 9, "hosts": [{"name": "gpu-par-014", "vms": [{"id": "i-00000001", "power": "stopped", "devices": [{"key": "k"}]}, {"id": "i-00000002", "power": "stopped", "devices": [{"key": "k"}]}]}]}`,
		"card unnamed":  `{"revision": 9, "hosts": [{"name": "gpu-par-014", "vms": [{"id": "i-00000001", "power": "absent"}], "cards": [{"clean_order": 1}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var log recorder
			b.opts.Logger = log.logger()
			b.start()
			want := vm("i-00000001")
			revision := b.console.want(vms(want))
			b.console.awaitReached(revision)
			b.console.set(func(c *console) { c.rawDesired = raw })
			log.await(t, "request failed", 2)
			for _, r := range b.console.awaitNext(3) {
				if v := find(r, want.ID); v.Power != agentapi.PowerRunning || r.Revision != revision {
					t.Fatalf("VM is %+v at revision %d, want it untouched", v, r.Revision)
				}
			}
			b.console.set(func(c *console) { c.rawDesired = "" })
			b.console.awaitReached(b.console.want(vms(want)))
		})
	}
}

func TestDesiredStateOfAnotherHostIsIgnored(t *testing.T) {
	b := newBench(t)
	b.start()
	b.console.set(func(c *console) {
		c.desired = agentapi.Desired{Revision: 7, Hosts: []agentapi.DesiredHost{{Name: "elsewhere", VMs: vms(vm("i-00000009"))}}}
	})
	if v := find(b.console.awaitReached(7), "i-00000009"); v.ID != "" {
		t.Errorf("VM is %+v, want none", v)
	}
}

func TestStaleReportRaisesTheEpoch(t *testing.T) {
	b := newBench(t)
	future := time.Now().Add(24 * time.Hour).UnixNano()
	b.console.lastEpoch, b.console.lastSeq = future, 5
	b.start()
	r := b.console.awaitNext(1)[0]
	if r.Epoch <= future || r.Sequence != 1 {
		t.Errorf("report is numbered %d/%d, want an epoch above %d", r.Epoch, r.Sequence, future)
	}
	b.stop()
	b.start()
	eventually(t, "a report of a later epoch", func() bool { return b.console.awaitNext(1)[0].Epoch > r.Epoch })
	b.console.set(func(c *console) {
		if c.staleAnswer != 1 {
			t.Errorf("%d reports were stale, want 1: the epoch is kept over restarts", c.staleAnswer)
		}
	})
}

func TestRevokedAgentTouchesNothingUntilItIsAdmittedAgain(t *testing.T) {
	b := newBench(t)
	var log recorder
	b.opts.Logger = log.logger()
	b.opts.BindTimeout = time.Hour
	must(t, b.sim.HangBind(b.device(1).Key, "ollama", 4711, 0))
	b.start()
	running, stuck := vm("i-00000001", b.device(0)), vm("i-00000002", b.device(1))
	b.console.want(vms(running, stuck))
	b.runs(running.ID, b.device(0))

	b.console.set(func(c *console) { c.revoked = true })
	log.await(t, "revoked this agent", 1)
	must(t, b.sim.ReleaseCard(b.device(1).Key))
	looks := b.looks.Load()
	eventually(t, "the agent looks several times", func() bool { return b.looks.Load() > looks+4 })
	if holders := b.inspect().Holders; len(holders) != 1 || holders[b.device(0).Key] != running.ID {
		t.Errorf("holders are %v after the agent was revoked, want the first VM's card alone", holders)
	}
	if n := log.count("revoked this agent"); n != 1 {
		t.Errorf("logged %d times within a minute, want once", n)
	}
	b.console.set(func(c *console) { c.revoked = false })
	b.runs(stuck.ID, b.device(1))
}

func TestKilledAgentGoesOnWhereItWas(t *testing.T) {
	b := newBench(t)
	b.simConf.Latency = sim.Latency{Bind: 10 * time.Millisecond, Boot: 40 * time.Millisecond, Shutdown: 10 * time.Millisecond, Reboot: 20 * time.Millisecond}
	b.openSim()
	want := vm("i-00000001", b.device(0), b.device(1))
	second := vm("i-00000002", b.device(2))
	for round := range 12 {
		b.start()
		b.console.awaitNext(1 + round%4)
		switch round % 3 {
		case 0:
			want.Run++
			want.Power = agentapi.PowerRunning
		case 1:
			want.Reboots++
		case 2:
			want.Power = agentapi.PowerStopped
		}
		b.console.want(vms(want, second))
		b.console.awaitNext(1)
		b.kill()
		b.openSim()
	}
	want.Power, want.Run = agentapi.PowerRunning, want.Run+1
	b.start()
	r := b.console.awaitReached(b.console.want(vms(want, second)))
	if v := find(r, want.ID); v.Power != agentapi.PowerRunning || v.Run != want.Run || v.Reboots != want.Reboots || !has(v, want.Devices...) {
		t.Errorf("VM is %+v, want %+v", v, want)
	}
	if v := find(r, second.ID); v.Power != agentapi.PowerRunning || v.Run != 1 || !has(v, b.device(2)) {
		t.Errorf("the other VM is %+v, want it running as from the start", v)
	}
}

func TestVMsRunOnWithoutTheAgent(t *testing.T) {
	b := newBench(t)
	b.start()
	want := vm("i-00000001", b.device(0))
	b.console.awaitReached(b.console.want(vms(want)))
	b.stop()
	if in := b.inspect(); len(in.Host.VMs) != 1 || in.Host.VMs[0].Power != agentapi.PowerRunning {
		t.Errorf("VMs are %+v, want the one running", in.Host.VMs)
	}
	must(t, b.sim.PowerOffGuest(want.ID)) // while nobody looks
	b.start()
	v := b.awaitPower(want.ID, agentapi.PowerStopped)
	if v.StoppedBy != agentapi.StoppedByGuest {
		t.Errorf("VM was stopped by %q, want the guest", v.StoppedBy)
	}
	for _, r := range b.console.awaitNext(4) {
		if v := find(r, want.ID); v.Power != agentapi.PowerStopped {
			t.Fatalf("VM is %s, want it to stay stopped", v.Power)
		}
	}
}
