package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"berth/services/agentapi"
	"berth/services/hostagent/sim"
)

// two are hosts of one driver.
func two(t *testing.T) (sim.Config, *sim.Driver) {
	conf := config(t)
	conf.Hosts = append(conf.Hosts, sim.HostSpec{
		Name: "gpu-par-015", Generation: "v7", VCores: 16, MemoryMiB: 64 << 10, Cards: sim.Cards("gpu-par-015", 1, sim.H100),
	})
	return conf, open(t, conf)
}

// whose lists where a card is seen, as host@address.
func whose(t *testing.T, d *sim.Driver, key string) string {
	t.Helper()
	var all []string
	for _, host := range []string{hostName, "gpu-par-015"} {
		in, err := d.Inspect(context.Background(), host)
		must(t, err)
		for _, c := range in.Host.Cards {
			if c.Key == key {
				all = append(all, host+"@"+c.PCIAddress)
			}
		}
	}
	return strings.Join(all, " ")
}

func TestACardMovesToAnotherHostWithAllThatIsKnownOfIt(t *testing.T) {
	conf, d := two(t)
	key := conf.Hosts[0].Cards[0].Key()
	must(t, d.Clean(t.Context(), hostName, key, 3))
	must(t, d.MoveToHost(key, "gpu-par-015", "0000:99:00.0"))
	if got, want := whose(t, d, key), "gpu-par-015@0000:99:00.0"; got != want {
		t.Errorf("it is seen at %q, want %q", got, want)
	}
	in, err := d.Inspect(t.Context(), "gpu-par-015")
	must(t, err)
	for _, c := range in.Host.Cards {
		if c.Key == key && (c.CleanedOrder != 3 || c.Functions[0].Address != "0000:99:00.0") {
			t.Errorf("it is %+v, want its cleaning and its functions with it", c)
		}
	}
	if err := d.MoveToHost("nobody's", "gpu-par-015", "0000:99:00.0"); err == nil {
		t.Error("a card that is not there moves")
	}
	if err := d.MoveToHost(key, "nowhere", "0000:99:00.0"); err == nil {
		t.Error("a card moves to a host that is not there")
	}
}

func TestACardCanBeSeenTwiceAtOnce(t *testing.T) {
	conf, d := two(t)
	key := conf.Hosts[0].Cards[1].Key()
	before := conf.Hosts[0].Cards[1].PCIAddress
	must(t, d.Duplicate(key, "gpu-par-015", "0000:98:00.0", false))
	if got, want := whose(t, d, key), hostName+"@"+before+" gpu-par-015@0000:98:00.0"; got != want {
		t.Errorf("it is seen at %q, want %q", got, want)
	}
}

func TestAChecklistLineIsReplacedByItsCode(t *testing.T) {
	conf := config(t)
	conf.Hosts[0].Findings = []agentapi.Finding{{Code: agentapi.FindingNouveauBound, Fix: "blacklist it"}}
	d := open(t, conf)
	line := func() (found []agentapi.Finding) {
		in, err := d.Inspect(context.Background(), hostName)
		must(t, err)
		for _, f := range in.Host.Findings {
			if f.Code == agentapi.FindingNouveauBound {
				found = append(found, f)
			}
		}
		return found
	}
	if got := line(); len(got) != 1 || got[0].OK || got[0].Fix != "blacklist it" {
		t.Errorf("at first the line is %+v", got)
	}
	must(t, d.SetFinding(hostName, agentapi.Finding{Code: agentapi.FindingNouveauBound, OK: true}))
	if got := line(); len(got) != 1 || !got[0].OK {
		t.Errorf("then the line is %+v", got)
	}
}

// F7: a card of four functions is one card.
func TestACardOfManyFunctionsIsOneCard(t *testing.T) {
	cards := sim.Cards("lab", 2, sim.Titan, sim.L40)
	if len(cards) != 2 || len(cards[0].Functions) != 4 {
		t.Fatalf("%d cards, the first of %d functions; want 2, and 4", len(cards), len(cards[0].Functions))
	}
	drivers := map[string]bool{}
	for i, f := range cards[0].Functions {
		if want := fmt.Sprintf("%s.%d", strings.TrimSuffix(cards[0].PCIAddress, ".0"), i); f.Address != want {
			t.Errorf("function %d is at %s, want %s", i, f.Address, want)
		}
		drivers[f.Driver] = true
	}
	if len(drivers) != 4 {
		t.Errorf("its functions have the drivers %v, want one each", drivers)
	}
}

func TestEveryCardOfAHostHasAnAddressAGroupAndASerialOfItsOwn(t *testing.T) {
	for n := 1; n <= 32; n++ {
		seen := map[string]bool{}
		for _, c := range sim.Cards("host", 2, sim.Repeat(sim.L40, n)...) {
			for _, id := range []string{c.PCIAddress, "group " + fmt.Sprint(*c.IOMMUGroup), c.Serial} {
				if seen[id] {
					t.Fatalf("of %d cards two have %s", n, id)
				}
				seen[id] = true
			}
			if len(c.Parents) == 0 || !strings.HasPrefix(c.Parents[0], "pci0000:") {
				t.Fatalf("card %s hangs below %v, want a root complex first", c.PCIAddress, c.Parents)
			}
		}
	}
}
