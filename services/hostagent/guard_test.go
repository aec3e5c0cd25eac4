package hostagent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/services/agentapi"
)

// obliging is a driver that does whatever it is asked, however wrong, and
// announces nothing, so that only the agent's own care is seen.
type obliging struct {
	mu      sync.Mutex
	in      Inspection
	calls   []string
	release chan struct{} // Apply with cards waits for it; nil: it does not
	lies    bool          // Start does nothing
}

func newObliging() *obliging {
	group := 16
	return &obliging{in: Inspection{
		Host: agentapi.HostReport{Name: "h", Cards: []agentapi.CardReport{
			{Key: "a", PCIAddress: "0000:3b:00.0", IOMMUGroup: &group}, {Key: "b", PCIAddress: "0000:5e:00.0"},
		}},
		Holders: map[string]string{},
	}}
}

func (o *obliging) Name() string                            { return "obliging" }
func (o *obliging) Hosts(context.Context) ([]string, error) { return []string{"h"}, nil }
func (o *obliging) Changes() <-chan struct{}                { return nil }

func (o *obliging) Inspect(context.Context, string) (Inspection, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := o.in
	in.Host.VMs = slices.Clone(in.Host.VMs)
	return in, nil
}

func (o *obliging) note(call string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, call)
}

func (o *obliging) called(call string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, c := range o.calls {
		if c == call {
			n++
		}
	}
	return n
}

// change edits what the next inspection shows of a VM, which is made where it is not.
func (o *obliging) change(id string, edit func(*agentapi.VMReport)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := o.in.vm(id)
	if v == nil {
		o.in.Host.VMs = append(slices.Clone(o.in.Host.VMs), agentapi.VMReport{ID: id, Power: agentapi.PowerStopped})
		v = o.in.vm(id)
	}
	edit(v)
}

func (o *obliging) Apply(ctx context.Context, _ string, want agentapi.DesiredVM) error {
	call := "apply " + want.ID
	for _, d := range want.Devices {
		call += " " + d.Key
	}
	o.note(call)
	o.mu.Lock()
	release := o.release
	o.mu.Unlock()
	if release != nil && len(want.Devices) > 0 {
		select {
		case <-release:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	o.change(want.ID, func(v *agentapi.VMReport) {
		v.Devices = keys(want.Devices)
		v.VCores, v.MemoryMiB = want.VCores, want.MemoryMiB
	})
	return nil
}

func (o *obliging) Start(_ context.Context, _, id string, counts Counts) error {
	o.note("start " + id)
	if !o.lies {
		o.change(id, func(v *agentapi.VMReport) {
			v.Power, v.StoppedBy, v.Run, v.Reboots = agentapi.PowerRunning, "", counts.Run, counts.Reboots
		})
	}
	return nil
}

func (o *obliging) Stop(_ context.Context, _, id string, _ time.Duration) error {
	o.note("stop " + id)
	return nil
}

func (o *obliging) Reboot(_ context.Context, _, id string, reboots int64) error {
	o.note("reboot " + id)
	o.change(id, func(v *agentapi.VMReport) { v.Reboots = reboots })
	return nil
}

func (o *obliging) Remove(_ context.Context, _, id string, _ bool) error {
	o.note("remove " + id)
	return nil
}

func (o *obliging) Clean(_ context.Context, _, key string, _ int64) error {
	o.note("clean " + key)
	return nil
}

// rig runs a converger on an obliging driver, without a console.
type rig struct {
	*testing.T
	driver   *obliging
	conv     *converger
	revision int64
}

func newRig(t *testing.T, d *obliging) *rig {
	t.Helper()
	opts := &Options{
		Console: "https://console.example", StateDir: "unused", Driver: d, Logger: slog.New(slog.DiscardHandler),
		Interval: time.Hour, RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond, GiveUpAfter: time.Hour,
	}
	full, err := opts.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, driver: d}
	s := &site{name: "h", driver: d, opts: &full, obs: newObserver("h", &full, func() { r.conv.hostChanged("h") })}
	ctx, cancel := context.WithCancel(context.Background())
	r.conv = newConverger(ctx, map[string]*site{"h": s}, full.Logger, func() {})
	var wg sync.WaitGroup
	wg.Go(func() { s.obs.run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		r.conv.wg.Wait()
	})
	return r
}

// want sets a new desired state and waits until it is worked through.
func (r *rig) want(h agentapi.DesiredHost) {
	r.Helper()
	r.assign(h)
	r.eventually("the revision is worked through", func() bool { return r.conv.reachedRevision() == r.revision })
}

func (r *rig) assign(h agentapi.DesiredHost) {
	h.Name = "h"
	r.revision++
	r.conv.apply(agentapi.Desired{Revision: r.revision, Hosts: []agentapi.DesiredHost{h}})
}

func (r *rig) eventually(what string, so func() bool) {
	r.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-deadline.C:
			r.Fatalf("not in time: %s; calls %v", what, r.driver.calls)
		case <-tick.C:
		}
	}
}

// seen is the host as it would be reported.
func (r *rig) seen() Inspection {
	r.Helper()
	in, ok := r.conv.sites["h"].obs.latest()
	if !ok {
		r.Fatal("nothing was seen")
	}
	in.Host.VMs, in.Host.Cards = slices.Clone(in.Host.VMs), slices.Clone(in.Host.Cards)
	r.conv.annotate(&in)
	return in
}

func (r *rig) device(key string) agentapi.Device {
	c := r.driver.in.card(key)
	return agentapi.Device{Key: key, PCIAddress: c.PCIAddress, IOMMUGroup: c.IOMMUGroup}
}

func wantRunning(id string, devices ...agentapi.Device) agentapi.DesiredVM {
	return agentapi.DesiredVM{ID: id, Power: agentapi.PowerRunning, Run: 1, Devices: devices}
}

func TestAgentItselfKeepsWrongCardsFromTheDriver(t *testing.T) {
	group := 99
	for name, c := range map[string]struct {
		spoil func(*obliging, *agentapi.Device)
		code  string
	}{
		"no such card":         {func(_ *obliging, d *agentapi.Device) { d.Key = "c" }, agentapi.ProblemIdentity},
		"another address":      {func(_ *obliging, d *agentapi.Device) { d.PCIAddress = "0000:5e:00.0" }, agentapi.ProblemIdentity},
		"another group":        {func(_ *obliging, d *agentapi.Device) { d.IOMMUGroup = &group }, agentapi.ProblemGroup},
		"a group out of none":  {func(_ *obliging, d *agentapi.Device) { d.IOMMUGroup = nil }, agentapi.ProblemGroup},
		"a card of another VM": {func(o *obliging, _ *agentapi.Device) { o.in.Holders["a"] = "other" }, agentapi.ProblemInUse},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObliging()
			r := newRig(t, o)
			d := r.device("a")
			o.mu.Lock()
			c.spoil(o, &d)
			o.mu.Unlock()
			r.want(agentapi.DesiredHost{VMs: []agentapi.DesiredVM{wantRunning("i-1", d)}})
			v := r.seen().vm("i-1")
			if v == nil || v.Problem == nil || v.Problem.Code != c.code {
				t.Errorf("VM is %+v, want problem %q", v, c.code)
			}
			if o.called("apply i-1") != 1 || len(o.calls) != 1 {
				t.Errorf("the driver was called %v, want the bare definition alone", o.calls)
			}
		})
	}
}

func TestUnseenCardIsNoVerdictOnItsIdentity(t *testing.T) {
	d := agentapi.Device{Key: "c", PCIAddress: "0000:af:00.0"}
	if err := verify("i-1", []agentapi.Device{d}, Inspection{Partial: true}); !errors.Is(err, errUnseen) {
		t.Errorf("error %v, want that the card was not seen", err)
	}
}

func TestAgentItselfKeepsACardInUseFromCleaning(t *testing.T) {
	o := newObliging()
	o.in.Holders["a"] = "other"
	r := newRig(t, o)
	r.want(agentapi.DesiredHost{Cards: []agentapi.DesiredCard{{Key: "a", CleanOrder: 1}}})
	if p := r.seen().card("a").Problem; p == nil || p.Code != agentapi.ProblemInUse || p.Holder != "other" {
		t.Errorf("problem is %+v, want the card in use", p)
	}
	if len(o.calls) != 0 {
		t.Errorf("the driver was called %v", o.calls)
	}
}

func TestCardThatAWorkerIsAboutToTakeIsClaimed(t *testing.T) {
	o := newObliging()
	o.release = make(chan struct{})
	r := newRig(t, o)
	d := r.device("a")
	r.assign(agentapi.DesiredHost{VMs: []agentapi.DesiredVM{wantRunning("i-1", d)}})
	r.eventually("the first is bound", func() bool { return o.called("apply i-1 a") == 1 })
	// The console would not ask for this; its twin from before an exchange might.
	r.assign(agentapi.DesiredHost{
		VMs:   []agentapi.DesiredVM{wantRunning("i-1", d), wantRunning("i-2", d)},
		Cards: []agentapi.DesiredCard{{Key: "a", CleanOrder: 1}},
	})
	r.eventually("the second is told", func() bool {
		v, c := r.seen().vm("i-2"), r.seen().card("a")
		return v != nil && v.Problem != nil && v.Problem.Holder == "i-1" && c.Problem != nil && c.Problem.Holder == "i-1"
	})
	if o.called("apply i-2 a") != 0 || o.called("clean a") != 0 {
		t.Errorf("the driver was called %v", o.calls)
	}
	close(o.release)
	r.eventually("the first runs", func() bool { return o.called("start i-1") == 1 })
}

func TestDriverThatClaimsWhatIsNotSeenIsNotDrivenInCircles(t *testing.T) {
	o := newObliging()
	o.lies = true
	r := newRig(t, o)
	for _, w := range r.conv.sites {
		w.opts.RetryMin, w.opts.RetryMax = time.Hour, time.Hour
	}
	r.want(agentapi.DesiredHost{VMs: []agentapi.DesiredVM{wantRunning("i-1")}})
	if p := r.seen().vm("i-1").Problem; p == nil || p.Code != agentapi.ProblemStart {
		t.Errorf("problem is %+v, want that the start has no effect", p)
	}
	if n := o.called("start i-1"); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}

func TestANewGoalIsJudgedByAFreshInspection(t *testing.T) {
	o := newObliging()
	r := newRig(t, o)
	vm := wantRunning("i-1")
	r.want(agentapi.DesiredHost{VMs: []agentapi.DesiredVM{vm}})
	o.change("i-1", func(v *agentapi.VMReport) { v.Power, v.StoppedBy = agentapi.PowerStopped, agentapi.StoppedByGuest }) // unannounced
	vm.Reboots = 1
	r.want(agentapi.DesiredHost{VMs: []agentapi.DesiredVM{vm}})
	if v := r.seen().vm("i-1"); v.Power != agentapi.PowerStopped || o.called("reboot i-1") != 0 {
		t.Errorf("VM is %s, driver was called %v; want the power-off seen before a reboot", v.Power, o.calls)
	}
}

func TestALargerRunIsTakenOverByAVMThatRuns(t *testing.T) {
	o := newObliging()
	r := newRig(t, o)
	vm := wantRunning("i-1")
	vm.Reboots = 2
	r.want(agentapi.DesiredHost{VMs: []agentapi.DesiredVM{vm}})
	vm.Run, vm.Reboots = 5, 3
	r.want(agentapi.DesiredHost{VMs: []agentapi.DesiredVM{vm}})
	if v := r.seen().vm("i-1"); v.Run != 5 || v.Reboots != 3 {
		t.Errorf("VM is %+v, want run 5 and 3 reboots", v)
	}
	if o.called("reboot i-1") != 1 {
		t.Errorf("driver was called %v, want the outstanding reboot carried out", o.calls)
	}
}

func TestACardThatIsFreedIsTakenAtOnce(t *testing.T) {
	o := newObliging()
	o.in.Holders["a"] = "other"
	r := newRig(t, o)
	for _, s := range r.conv.sites {
		s.opts.RetryMin, s.opts.RetryMax = time.Hour, time.Hour
	}
	r.want(agentapi.DesiredHost{VMs: []agentapi.DesiredVM{wantRunning("i-1", r.device("a"))}})
	o.mu.Lock()
	o.in.Holders = map[string]string{}
	o.mu.Unlock()
	r.conv.sites["h"].obs.poke()
	r.eventually("the VM starts", func() bool { return o.called("start i-1") == 1 })
}

func TestAConsoleThatCountsAnewIsNotToldOfOldRevisions(t *testing.T) {
	o := newObliging()
	r := newRig(t, o)
	stopped := agentapi.DesiredVM{ID: "i-1", Power: agentapi.PowerStopped}
	for range 3 {
		r.want(agentapi.DesiredHost{VMs: []agentapi.DesiredVM{stopped}})
	}
	o.mu.Lock()
	o.release = make(chan struct{})
	o.mu.Unlock()
	r.revision = 0
	r.assign(agentapi.DesiredHost{VMs: []agentapi.DesiredVM{wantRunning("i-1", r.device("a"))}})
	r.eventually("the card is being bound", func() bool { return o.called("apply i-1 a") == 1 })
	if reached, vm := r.conv.reachedRevision(), r.seen().vm("i-1").Revision; reached != 0 || vm != 0 {
		t.Errorf("revisions %d and %d are reported of the former count, want none", reached, vm)
	}
	close(o.release)
	r.eventually("revision 1 is reached", func() bool { return r.conv.reachedRevision() == 1 && r.seen().vm("i-1").Revision == 1 })
}
