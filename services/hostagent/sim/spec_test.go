package sim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/services/hostagent/sim"
)

func TestCardsFollowFromTheirHostAlone(t *testing.T) {
	models := append(sim.Repeat(sim.L40, 3), sim.H100)
	cards := sim.Cards("gpu-par-014", 2, models...)
	if diff := cmp.Diff(cards, sim.Cards("gpu-par-014", 2, models...)); diff != "" {
		t.Errorf("the same host has other cards the second time:\n%s", diff)
	}
	if other := sim.Cards("gpu-par-015", 2, models...); other[0].Serial == cards[0].Serial {
		t.Error("two hosts have a card with one serial")
	}
	if len(cards[0].Functions) != 2 || cards[0].Functions[1].Class != "0403" || len(cards[3].Functions) != 1 {
		t.Errorf("functions are %v and %v, want audio beside the L40 alone", cards[0].Functions, cards[3].Functions)
	}
	for i, want := range []int{0, 0, 1, 1} {
		if *cards[i].NUMANode != want {
			t.Errorf("card %d is on node %d, want %d", i, *cards[i].NUMANode, want)
		}
	}
}

func TestAHostHoldsManyCardsWithoutAClash(t *testing.T) {
	for _, nodes := range []int{0, 1, 2, 4, 8} {
		for _, n := range []int{1, 7, 16, 32} {
			spec := sim.HostSpec{Name: "h", NUMANodes: nodes, Cards: sim.Cards("h", nodes, sim.Repeat(sim.H200, n)...)}
			open(t, sim.Config{Hosts: []sim.HostSpec{spec}})
		}
	}
}

func TestConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sim.json")
	must(t, os.WriteFile(path, []byte(`{
		"hosts": [{"name": "gpu-par-014", "generation": "v7", "vcores": 64, "memory_mib": 524288, "numa_nodes": 2, "models": ["l40", "h100"]}],
		"latency": {"bind": "300ms", "boot": "4s"}
	}`), 0o600))
	conf, err := sim.LoadConfig(path)
	must(t, err)
	if conf.Latency != (sim.Latency{Bind: 300 * time.Millisecond, Boot: 4 * time.Second}) {
		t.Errorf("latency is %+v", conf.Latency)
	}
	in, err := open(t, conf).Inspect(t.Context(), "gpu-par-014")
	must(t, err)
	var devices []string
	for _, c := range in.Host.Cards {
		devices = append(devices, c.VendorID+":"+c.DeviceID)
	}
	if diff := cmp.Diff([]string{"10de:26b5", "10de:2331"}, devices); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
}

func TestConfigThatCanNotWorkIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no hosts":         `{"hosts": []}`,
		"no name":          `{"hosts": [{"vcores": 1}]}`,
		"name twice":       `{"hosts": [{"name": "a"}, {"name": "a"}]}`,
		"unknown model":    `{"hosts": [{"name": "a", "models": ["l41"]}]}`,
		"address twice":    `{"hosts": [{"name": "a", "cards": [{"serial": "1", "pci_address": "0000:3b:00.0"}, {"serial": "2", "pci_address": "0000:3b:00.0"}]}]}`,
		"serial twice":     `{"hosts": [{"name": "a", "cards": [{"serial": "1", "pci_address": "0000:3b:00.0"}, {"serial": "1", "pci_address": "0000:5e:00.0"}]}]}`,
		"unknown field":    `{"hosts": [{"name": "a", "vcpus": 4}]}`,
		"unknown latency":  `{"hosts": [{"name": "a"}], "latency": {"sleep": "1s"}}`,
		"unclear latency":  `{"hosts": [{"name": "a"}], "latency": {"boot": "soon"}}`,
		"latency a number": `{"hosts": [{"name": "a"}], "latency": {"boot": 4}}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sim.json")
			must(t, os.WriteFile(path, []byte(text), 0o600))
			conf, err := sim.LoadConfig(path)
			if err == nil {
				_, err = sim.New(conf)
			}
			if err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestKeyOfACardWithoutSerial(t *testing.T) {
	c := sim.Cards("h", 1, sim.L40)[0]
	c.Serial = ""
	if key := c.Key(); !strings.HasPrefix(key, "10de:26b5:10de:169d@0000:") || strings.HasSuffix(key, ".0") {
		t.Errorf("key is %q, want ids and slot", key)
	}
}
