package hostagent_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hostName = "gpu-par-014"

// bench is an agent with simulated hosts and the console that it talks to.
type bench struct {
	*testing.T
	console *console
	sim     *sim.Driver
	looks   *atomic.Int64 // inspections by the agent
	simConf sim.Config
	opts    hostagent.Options
	stop    func() // ends the agent and waits for it
}

// newBench starts nothing yet, so that a test can change opts first.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, console: newConsole(t), looks: new(atomic.Int64)}
	b.simConf = sim.Config{
		StatePath: filepath.Join(t.TempDir(), "hosts.json"),
		Hosts: []sim.HostSpec{{
			Name: hostName, Generation: "v7", VCores: 64, MemoryMiB: 256 << 10, NUMANodes: 2,
			Cards: sim.Cards(hostName, 2, sim.Repeat(sim.L40, 4)...),
		}},
	}
	b.openSim()
	b.opts = hostagent.Options{
		Console: b.console.URL, Token: b.console.token(), StateDir: filepath.Join(t.TempDir(), "state"), Driver: b.opts.Driver,
		Logger:   slog.New(slog.DiscardHandler),
		Interval: 20 * time.Millisecond, Coalesce: time.Millisecond, Wait: 2 * time.Second,
		RetryMin: 2 * time.Millisecond, RetryMax: 20 * time.Millisecond, GiveUpAfter: time.Hour,
		BindTimeout: 5 * time.Second, ShutdownGrace: 5 * time.Second, RevokedRetry: 10 * time.Millisecond,
	}
	return b
}

func (b *bench) openSim() {
	b.Helper()
	d, err := sim.New(b.simConf)
	must(b.T, err)
	b.Cleanup(func() { must(b.T, d.Close()) })
	b.sim, b.opts.Driver = d, counting{Driver: d, looks: b.looks}
}

// counting counts the inspections of a driver.
type counting struct {
	*sim.Driver
	looks *atomic.Int64
}

func (c counting) Inspect(ctx context.Context, host string) (hostagent.Inspection, error) {
	c.looks.Add(1)
	return c.Driver.Inspect(ctx, host)
}

// start runs the agent until stop or the end of the test.
func (b *bench) start() {
	b.Helper()
	agent, err := hostagent.New(b.opts)
	must(b.T, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	stopped := false
	b.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				b.Errorf("the agent ended with %v", err)
			}
		case <-time.After(patience):
			b.Error("the agent did not end")
		}
	}
	b.Cleanup(func() { b.stop() })
}

// runToEnd runs the agent until it gives up by itself.
func (b *bench) runToEnd() error {
	b.Helper()
	agent, err := hostagent.New(b.opts)
	must(b.T, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return agent.Run(ctx)
}

// kill ends agent and hosts' program as a kill would: nothing is tidied up.
func (b *bench) kill() {
	b.Helper()
	must(b.T, b.sim.Close())
	b.stop()
}

// inspect looks at the host past the agent.
func (b *bench) inspect() hostagent.Inspection {
	b.Helper()
	in, err := b.sim.Inspect(context.Background(), hostName)
	must(b.T, err)
	return in
}

// device is the host's nth card as the console hands it out.
func (b *bench) device(n int) agentapi.Device {
	c := b.simConf.Hosts[0].Cards[n]
	return agentapi.Device{Key: c.Key(), PCIAddress: c.PCIAddress, IOMMUGroup: c.IOMMUGroup}
}

// vm is a small VM that should run for the first time.
func vm(id string, devices ...agentapi.Device) agentapi.DesiredVM {
	return agentapi.DesiredVM{
		ID: id, Power: agentapi.PowerRunning, Run: 1, VCores: 4, MemoryMiB: 8 << 10, Image: "debian-12", Devices: devices,
	}
}

func vms(list ...agentapi.DesiredVM) []agentapi.DesiredVM { return list }

// find looks a VM up in a report; the zero VMReport stands for none.
func find(r agentapi.Report, id string) agentapi.VMReport {
	for _, h := range r.Hosts {
		for _, v := range h.VMs {
			if v.ID == id {
				return v
			}
		}
	}
	return agentapi.VMReport{}
}

func findCard(r agentapi.Report, key string) agentapi.CardReport {
	for _, h := range r.Hosts {
		for _, c := range h.Cards {
			if c.Key == key {
				return c
			}
		}
	}
	return agentapi.CardReport{}
}

// awaitVM waits for a report in which so holds of a VM.
func (b *bench) awaitVM(id, what string, so func(agentapi.VMReport) bool) agentapi.VMReport {
	b.Helper()
	r := b.console.awaitReport(id+" "+what, func(r agentapi.Report) bool { return so(find(r, id)) })
	return find(r, id)
}

func (b *bench) awaitPower(id, power string) agentapi.VMReport {
	b.Helper()
	return b.awaitVM(id, "is "+power, func(v agentapi.VMReport) bool { return v.Power == power })
}

func has(v agentapi.VMReport, devices ...agentapi.Device) bool {
	var want []string
	for _, d := range devices {
		want = append(want, d.Key)
	}
	return slices.Equal(slices.Sorted(slices.Values(v.Devices)), slices.Sorted(slices.Values(want)))
}

// runs waits until the VM runs with exactly these cards.
func (b *bench) runs(id string, devices ...agentapi.Device) agentapi.VMReport {
	b.Helper()
	return b.awaitVM(id, "runs with its cards", func(v agentapi.VMReport) bool {
		return v.Power == agentapi.PowerRunning && has(v, devices...)
	})
}

// everSaw tells whether any report so far shows the VM so.
func (c *console) everSaw(id string, so func(agentapi.VMReport) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.reports, func(r agentapi.Report) bool { return so(find(r, id)) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
