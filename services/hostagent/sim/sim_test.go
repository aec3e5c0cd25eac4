package sim_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	hostName = "gpu-par-014"
	vmID     = "i-00000001"
	patience = 10 * time.Second
)

func config(t *testing.T) sim.Config {
	return sim.Config{
		StatePath: filepath.Join(t.TempDir(), "hosts.json"),
		Hosts: []sim.HostSpec{{
			Name: hostName, Generation: "v7", VCores: 16, MemoryMiB: 64 << 10, Cards: sim.Cards(hostName, 1, sim.L40, sim.L40),
		}},
	}
}

func device(conf sim.Config, n int) agentapi.Device {
	c := conf.Hosts[0].Cards[n]
	return agentapi.Device{Key: c.Key(), PCIAddress: c.PCIAddress, IOMMUGroup: c.IOMMUGroup}
}

func desired(id string, devices ...agentapi.Device) agentapi.DesiredVM {
	return agentapi.DesiredVM{ID: id, VCores: 8, MemoryMiB: 16 << 10, Devices: devices}
}

// running makes and starts the VM.
func running(t *testing.T, d *sim.Driver, devices ...agentapi.Device) {
	t.Helper()
	must(t, d.Apply(t.Context(), hostName, desired(vmID, devices...)))
	must(t, d.Start(t.Context(), hostName, vmID, hostagent.Counts{Run: 1}))
}

func seen(t *testing.T, d *sim.Driver, id string) agentapi.VMReport {
	t.Helper()
	in, err := d.Inspect(context.Background(), hostName)
	must(t, err)
	i := slices.IndexFunc(in.Host.VMs, func(v agentapi.VMReport) bool { return v.ID == id })
	if i < 0 {
		t.Fatalf("VM %s is not there", id)
	}
	return in.Host.VMs[i]
}

func card(t *testing.T, d *sim.Driver, key string) *agentapi.CardReport {
	t.Helper()
	in, err := d.Inspect(context.Background(), hostName)
	must(t, err)
	for i := range in.Host.Cards {
		if in.Host.Cards[i].Key == key {
			return &in.Host.Cards[i]
		}
	}
	return nil
}

func wantProblem(t *testing.T, err error, code string) {
	t.Helper()
	var b *hostagent.Blocked
	if !errors.As(err, &b) || b.Problem.Code != code {
		t.Errorf("error %v, want problem %q", err, code)
	}
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-deadline.C:
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}

func TestGuestThatIgnoresTheButton(t *testing.T) {
	conf := config(t)
	d := open(t, conf)
	running(t, d)
	must(t, d.IgnoreShutdown(vmID, true))

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if err := d.Stop(ctx, hostName, vmID, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop ended with %v, want its deadline", err)
	}
	if v := seen(t, d, vmID); v.Power != agentapi.PowerRunning {
		t.Errorf("after a stop that was broken off the VM is %s, want running", v.Power)
	}
	must(t, d.Stop(t.Context(), hostName, vmID, 5*time.Millisecond))
	if v := seen(t, d, vmID); v.Power != agentapi.PowerStopped || v.StoppedBy != agentapi.StoppedByConsole {
		t.Errorf("VM is %s, stopped by %q, want it turned off", v.Power, v.StoppedBy)
	}
}

func TestProgramThatDiesWhileAGuestIgnoresTheButton(t *testing.T) {
	conf := config(t)
	d := open(t, conf)
	running(t, d)
	must(t, d.IgnoreShutdown(vmID, true))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Stop(ctx, hostName, vmID, time.Hour) }()
	eventually(t, "the button is pressed", func() bool { return seen(t, d, vmID).Power == agentapi.PowerStopping })
	must(t, d.Close())
	cancel()
	<-done
	if v := seen(t, open(t, conf), vmID); v.Power != agentapi.PowerRunning {
		t.Errorf("VM is %s, want running", v.Power)
	}
}

func TestWhatIsUnderWayOutlivesTheProgram(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(context.Context, *sim.Driver) error
		mid   string
		check func(agentapi.VMReport) bool
	}{
		"boot": {func(ctx context.Context, d *sim.Driver) error {
			must(t, d.Stop(ctx, hostName, vmID, 0))
			return d.Start(ctx, hostName, vmID, hostagent.Counts{Run: 2, Reboots: 5})
		}, agentapi.PowerStarting, func(v agentapi.VMReport) bool {
			return v.Power == agentapi.PowerRunning && v.Run == 2 && v.Reboots == 5
		}},
		"shutdown": {func(ctx context.Context, d *sim.Driver) error {
			return d.Stop(ctx, hostName, vmID, time.Hour)
		}, agentapi.PowerStopping, func(v agentapi.VMReport) bool {
			return v.Power == agentapi.PowerStopped && v.StoppedBy == agentapi.StoppedByConsole && v.Run == 1
		}},
		"reboot": {func(ctx context.Context, d *sim.Driver) error {
			return d.Reboot(ctx, hostName, vmID, 1)
		}, agentapi.PowerRunning, func(v agentapi.VMReport) bool {
			return v.Power == agentapi.PowerRunning && v.Reboots == 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conf := config(t)
			d := open(t, conf)
			running(t, d, device(conf, 0))
			d.SetLatency(sim.Latency{Boot: 30 * time.Millisecond, Shutdown: 30 * time.Millisecond, Reboot: 30 * time.Millisecond})
			for len(d.Changes()) > 0 {
				<-d.Changes()
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.begin(ctx, d) }()
			<-d.Changes()
			eventually(t, "it is under way", func() bool { return seen(t, d, vmID).Power == c.mid })
			must(t, d.Close())
			cancel()
			<-done
			again := open(t, conf)
			eventually(t, "it is finished", func() bool { return c.check(seen(t, again, vmID)) })
			if v := seen(t, again, vmID); len(v.Devices) != 1 {
				t.Errorf("VM has cards %v, want its one", v.Devices)
			}
		})
	}
}

func TestCardThatIsBeingCleanedIsNotBound(t *testing.T) {
	conf := config(t)
	conf.Latency.Clean = time.Hour
	d := open(t, conf)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		err := error(new(hostagent.Blocked))
		for errors.As(err, new(*hostagent.Blocked)) { // the card is the VM's for moments
			err = d.Clean(ctx, hostName, device(conf, 0).Key, 1)
		}
		done <- err
	}()
	eventually(t, "the card is being cleaned", func() bool {
		return d.Apply(t.Context(), hostName, desired(vmID, device(conf, 0))) != nil ||
			d.Apply(t.Context(), hostName, desired(vmID)) != nil
	})
	wantProblem(t, d.Apply(t.Context(), hostName, desired(vmID, device(conf, 0))), agentapi.ProblemInUse)
	wantProblem(t, d.Clean(t.Context(), hostName, device(conf, 0).Key, 2), agentapi.ProblemInUse)
	cancel(errors.New("the database went away"))
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cleaning ended with %v, want that it was cancelled", err)
	}
	if c := card(t, d, device(conf, 0).Key); c.CleanedOrder != 0 || c.FailedOrder != 0 {
		t.Errorf("card is %+v, want no order kept", c)
	}
}

func TestHeldCardIsLetGoAfterItsTime(t *testing.T) {
	conf := config(t)
	d := open(t, conf)
	key := device(conf, 0).Key
	must(t, d.HangBind(key, "ollama", 4711, 20*time.Millisecond))
	done := make(chan error, 1)
	go func() { done <- d.Apply(context.Background(), hostName, desired(vmID, device(conf, 0))) }()
	eventually(t, "the bind has ended", func() bool { return len(done) == 1 })
	must(t, <-done)
	if c := card(t, d, key); c.Problem != nil || c.Functions[1].Driver != "vfio-pci" {
		t.Errorf("card is %+v with problem %+v, want it bound", c, c.Problem)
	}
}

func TestHeldCardIsNotCleaned(t *testing.T) {
	conf := config(t)
	d := open(t, conf)
	must(t, d.HoldCard(device(conf, 0).Key, "nvidia-smi", 7, 0))
	wantProblem(t, d.Clean(t.Context(), hostName, device(conf, 0).Key, 1), agentapi.ProblemHeld)
}

func TestMovedCardKeepsItsKey(t *testing.T) {
	conf := config(t)
	d := open(t, conf)
	dev := device(conf, 0)
	must(t, d.MoveCard(dev.Key, "0000:af:00.0"))
	c := card(t, d, dev.Key)
	if c == nil || c.PCIAddress != "0000:af:00.0" || c.Functions[1].Address != "0000:af:00.1" {
		t.Errorf("card is %+v, want it whole at the new address", c)
	}
	wantProblem(t, d.Apply(t.Context(), hostName, desired(vmID, dev)), agentapi.ProblemIdentity)
}

func TestVanishedCard(t *testing.T) {
	conf := config(t)
	d := open(t, conf)
	dev := device(conf, 0)
	running(t, d, dev)
	must(t, d.RemoveCard(dev.Key))
	if c := card(t, d, dev.Key); c != nil || len(seen(t, d, vmID).Devices) != 0 {
		t.Errorf("card %+v is still seen", c)
	}
	must(t, d.Stop(t.Context(), hostName, vmID, 0))
	wantProblem(t, d.Start(t.Context(), hostName, vmID, hostagent.Counts{Run: 2}), agentapi.ProblemStart)
	must(t, d.ReturnCard(dev.Key))
	must(t, d.Start(t.Context(), hostName, vmID, hostagent.Counts{Run: 2}))
}

func TestHostHasOnlySoMuchRoom(t *testing.T) {
	d := open(t, config(t))
	running(t, d)
	second := desired("i-00000002")
	second.VCores = 9
	must(t, d.Apply(t.Context(), hostName, second))
	wantProblem(t, d.Start(t.Context(), hostName, second.ID, hostagent.Counts{Run: 1}), agentapi.ProblemStart)
	second.VCores = 8
	must(t, d.Apply(t.Context(), hostName, second))
	must(t, d.Start(t.Context(), hostName, second.ID, hostagent.Counts{Run: 1}))
}

func TestDiskGoesWithItsVMUnlessItIsKept(t *testing.T) {
	d := open(t, config(t))
	for _, keep := range []bool{true, false} {
		must(t, d.Apply(t.Context(), hostName, desired(vmID)))
		must(t, d.Remove(t.Context(), hostName, vmID, keep))
		if d.HasDisk(hostName, vmID) != keep {
			t.Errorf("with keep %t the disk is there: %t", keep, !keep)
		}
	}
}

func TestChecklistShowsWhatIsSet(t *testing.T) {
	d := open(t, config(t))
	want := agentapi.Finding{Code: agentapi.FindingIOMMUOff, Detail: "the IOMMU is off", Fix: "intel_iommu=on"}
	must(t, d.SetFinding(hostName, want))
	in, err := d.Inspect(t.Context(), hostName)
	must(t, err)
	if !slices.Contains(in.Host.Findings, want) || len(in.Host.Findings) != 3 {
		t.Errorf("findings are %+v", in.Host.Findings)
	}
}

func TestFaultsForWhatThereIsNotAreErrors(t *testing.T) {
	d := open(t, config(t))
	must(t, d.Apply(t.Context(), hostName, desired(vmID)))
	for name, err := range map[string]error{
		"card":           d.HoldCard("none", "p", 1, 0),
		"host":           d.FailInspect("none", nil),
		"VM":             d.CrashVM("i-ffffffff"),
		"VM not running": d.PowerOffGuest(vmID),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
