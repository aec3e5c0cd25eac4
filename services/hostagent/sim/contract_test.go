package sim_test

import (
	"path/filepath"
	"testing"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/contract"
	"berth/services/hostagent/sim"
)

// quick latencies are long enough for states in between to be seen.
var quick = sim.Latency{
	Bind: time.Millisecond, Boot: 2 * time.Millisecond, Shutdown: 2 * time.Millisecond,
	Reboot: 5 * time.Millisecond, Clean: time.Millisecond,
}

func TestContract(t *testing.T) {
	for name, latency := range map[string]sim.Latency{"at once": {}, "with latency": quick} {
		t.Run(name, func(t *testing.T) {
			contract.Test(t, func(t *testing.T) contract.Fixture { return fixture(t, latency) })
		})
	}
}

func fixture(t *testing.T, latency sim.Latency) contract.Fixture {
	t.Helper()
	conf := sim.Config{
		Hosts: []sim.HostSpec{{
			Name: "gpu-par-014", Generation: "v7", VCores: 64, MemoryMiB: 512 << 10, NUMANodes: 2,
			Cards: sim.Cards("gpu-par-014", 2, sim.L40, sim.H100),
		}},
		Latency: latency, StatePath: filepath.Join(t.TempDir(), "hosts.json"),
	}
	d := open(t, conf)
	return contract.Fixture{
		Driver: d, Host: "gpu-par-014", VM: agentapi.DesiredVM{VCores: 4, MemoryMiB: 8 << 10, Image: "debian-12"},
		PowerOff: func(t *testing.T, vm string) { must(t, d.PowerOffGuest(vm)) },
		Hold: func(t *testing.T, card string) (string, int, func()) {
			must(t, d.HoldCard(card, "nvidia-persistenced", 4242, 0))
			return "nvidia-persistenced", 4242, func() { must(t, d.ReleaseCard(card)) }
		},
		Reopen: func(t *testing.T) hostagent.Driver {
			must(t, d.Close())
			return open(t, conf)
		},
	}
}

func open(t *testing.T, conf sim.Config) *sim.Driver {
	t.Helper()
	d, err := sim.New(conf)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
