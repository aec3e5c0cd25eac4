package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"berth/services/agentapi"
)

// Config describes all hosts of one driver.
type Config struct {
	Hosts   []HostSpec `json:"hosts"`
	Latency Latency    `json:"latency"`
	// StatePath is a JSON file in which the hosts outlive the process; empty: they do not.
	StatePath string       `json:"state_path,omitempty"`
	Logger    *slog.Logger `json:"-"` // nil: slog.Default()
}

// HostSpec is the shape of a host.
type HostSpec struct {
	Name       string     `json:"name"`
	Generation string     `json:"generation"` // of the CPUs, e.g. "v7"
	VCores     int        `json:"vcores"`     // for VMs; a start that needs more fails
	MemoryMiB  int64      `json:"memory_mib"` // likewise
	NUMANodes  int        `json:"numa_nodes"` // 0 counts as 1; where Models are put
	Kernel     string     `json:"kernel,omitempty"`
	Cards      []CardSpec `json:"cards,omitempty"`
	// Models names further cards, which are made as Cards makes them.
	Models []string `json:"models,omitempty"`
	// Findings replace lines of the readiness checklist, or add to it.
	Findings []agentapi.Finding `json:"findings,omitempty"`
}

// CardSpec is one simulated card. Its key is the serial, else vendor, device,
// subsystem and slot.
type CardSpec struct {
	Serial      string         `json:"serial,omitempty"`
	VendorID    string         `json:"vendor_id"`
	DeviceID    string         `json:"device_id"`
	SubsystemID string         `json:"subsystem_id,omitempty"`
	PCIAddress  string         `json:"pci_address"`
	IOMMUGroup  *int           `json:"iommu_group"`
	NUMANode    *int           `json:"numa_node"`
	Functions   []FunctionSpec `json:"functions"`
	VBIOS       string         `json:"vbios,omitempty"`
	Firmware    string         `json:"firmware,omitempty"`
	Parents     []string       `json:"parents,omitempty"`     // from the root complex down
	FailResets  int            `json:"fail_resets,omitempty"` // how many cleanings fail, from the first on
}

// FunctionSpec is one PCI function of a card.
type FunctionSpec struct {
	Address string `json:"address"`
	Class   string `json:"class"`  // "0302" 3D controller, "0300" VGA, "0403" audio
	Driver  string `json:"driver"` // that has it while no VM does; empty: none
}

// Key is the card's identity on its agent.
func (c CardSpec) Key() string {
	if c.Serial != "" {
		return c.Serial
	}
	slot, _, _ := strings.Cut(c.PCIAddress, ".")
	return fmt.Sprintf("%s:%s:%s@%s", c.VendorID, c.DeviceID, c.SubsystemID, slot)
}

// Latency is how long things take; 0 is at once.
type Latency struct {
	Bind     time.Duration // of one card
	Boot     time.Duration
	Shutdown time.Duration
	Reboot   time.Duration
	Clean    time.Duration
}

// UnmarshalJSON reads durations as texts: {"bind": "300ms", "boot": "4s"}.
func (l *Latency) UnmarshalJSON(text []byte) error {
	fields := map[string]*time.Duration{
		"bind": &l.Bind, "boot": &l.Boot, "shutdown": &l.Shutdown, "reboot": &l.Reboot, "clean": &l.Clean,
	}
	var texts map[string]string
	if err := json.Unmarshal(text, &texts); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	for name, value := range texts {
		field, known := fields[name]
		if !known {
			return fmt.Errorf("latency: there is no %q", name)
		}
		d, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("latency %s: %w", name, err)
		}
		*field = d
	}
	return nil
}

// LoadConfig reads a Config from a JSON file.
func LoadConfig(path string) (Config, error) {
	var c Config
	f, err := os.Open(path)
	if err != nil {
		return c, fmt.Errorf("load simulated hosts: %w", err)
	}
	defer func() { _ = f.Close() }()
	dec := json.NewDecoder(f)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("load simulated hosts from %s: %w", path, err)
	}
	return c, nil
}

// Model is a kind of card that simulated hosts can have.
type Model struct {
	Name        string
	DeviceID    string // the vendor is NVIDIA, 10de
	SubsystemID string
	Class       string         // of the GPU function
	Beside      []FunctionSpec // further functions of its slot: class and driver
	VBIOS       string
}

// The models that can be simulated, with their PCI ids.
var (
	L40    = Model{Name: "l40", DeviceID: "26b5", SubsystemID: "10de:169d", Class: "0300", VBIOS: "95.02.66.00.02", Beside: []FunctionSpec{audio}}
	L40S   = Model{Name: "l40s", DeviceID: "26b9", SubsystemID: "10de:1851", Class: "0302", VBIOS: "95.02.66.00.0F"}
	A10080 = Model{Name: "a100-80", DeviceID: "20b5", SubsystemID: "10de:1533", Class: "0302", VBIOS: "92.00.A0.00.0A"}
	H100   = Model{Name: "h100", DeviceID: "2331", SubsystemID: "10de:1626", Class: "0302", VBIOS: "96.00.74.00.11"}
	H200   = Model{Name: "h200", DeviceID: "2335", SubsystemID: "10de:18be", Class: "0302", VBIOS: "96.00.9F.00.04"}

	// Titan is a workstation card of four functions, each with a driver of its
	// own; no catalogue has it.
	Titan = Model{Name: "titan", DeviceID: "1e02", SubsystemID: "10de:12a3", Class: "0300", VBIOS: "90.02.23.00.01", Beside: []FunctionSpec{
		audio, {Class: "0c03", Driver: "xhci_hcd"}, {Class: "0c80", Driver: "nvidia-gpu"},
	}}
)

var audio = FunctionSpec{Class: "0403", Driver: "snd_hda_intel"}

// firmware is the version of the cards' own processors, as their driver brings it.
const firmware = "550.127.05"

func modelNamed(name string) (Model, error) {
	models := []Model{L40, L40S, A10080, H100, H200, Titan}
	i := slices.IndexFunc(models, func(m Model) bool { return m.Name == name })
	if i < 0 {
		return Model{}, fmt.Errorf("there is no simulated model %q", name)
	}
	return models[i], nil
}

// Cards makes one card for each model, spread evenly over the host's NUMA
// nodes in order. Serials, addresses and groups follow from the arguments
// alone, so that the same host has the same cards each time.
func Cards(host string, numaNodes int, models ...Model) []CardSpec {
	numaNodes = max(numaNodes, 1)
	perNode := (len(models) + numaNodes - 1) / numaNodes
	cards := make([]CardSpec, len(models))
	for i, m := range models {
		node, slot := i/perNode, i%perNode
		cards[i] = makeCard(host, i, node, busOf(node, slot, numaNodes, perNode), m)
		cards[i].Parents = parents(node, slot, numaNodes, len(models) >= switched)
	}
	return cards
}

// switched is how many cards a host has at least whose cards are behind PCIe
// switches, two behind each.
const switched = 8

// parents is what stands above a card: its node's root complex, a root port,
// and on large hosts a switch that it shares with its neighbour.
func parents(node, slot, nodes int, behindSwitch bool) []string {
	bus := node * (256 / nodes)
	root := fmt.Sprintf("pci0000:%02x", bus)
	if !behindSwitch {
		return []string{root, fmt.Sprintf("0000:%02x:%02x.0", bus, slot+1)}
	}
	pair := slot / 2
	up, down := bus+1+2*pair, bus+2+2*pair
	return []string{
		root, fmt.Sprintf("0000:%02x:%02x.0", bus, pair+1), fmt.Sprintf("0000:%02x:00.0", up), fmt.Sprintf("0000:%02x:%02x.0", down, slot%2),
	}
}

// Repeat lists a model n times, for Cards.
func Repeat(m Model, n int) []Model { return slices.Repeat([]Model{m}, n) }

// busOf spreads the slots of a node over its share of the 256 bus numbers.
func busOf(node, slot, nodes, perNode int) int {
	share := 256 / nodes
	return node*share + 3 + slot*max(1, (share-4)/perNode)
}

func makeCard(host string, index, node, bus int, m Model) CardSpec {
	group := 16 + index
	slot := fmt.Sprintf("0000:%02x:00", bus)
	card := CardSpec{
		Serial: serialOf(host, index), VendorID: "10de", DeviceID: m.DeviceID, SubsystemID: m.SubsystemID,
		PCIAddress: slot + ".0", IOMMUGroup: &group, NUMANode: &node,
		Functions: []FunctionSpec{{Address: slot + ".0", Class: m.Class, Driver: "nvidia"}}, VBIOS: m.VBIOS, Firmware: firmware,
	}
	for i, f := range m.Beside {
		f.Address = fmt.Sprintf("%s.%d", slot, i+1)
		card.Functions = append(card.Functions, f)
	}
	return card
}

// serialOf draws 13 digits, as NVIDIA's serials have, from the host's name and the card's index.
func serialOf(host string, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", host, index))
	return fmt.Sprintf("16%011d", binary.BigEndian.Uint64(sum[:8])%100_000_000_000)
}

// complete makes the cards of Models and checks that every host and card has a
// name of its own.
func (c Config) complete() (Config, error) {
	c.Hosts = slices.Clone(c.Hosts)
	hosts := make(map[string]bool)
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.Name == "" || hosts[h.Name] {
			return c, fmt.Errorf("simulated host %d: the name %q is empty or taken", i, h.Name)
		}
		hosts[h.Name] = true
		if err := h.complete(); err != nil {
			return c, fmt.Errorf("simulated host %s: %w", h.Name, err)
		}
	}
	if len(c.Hosts) == 0 {
		return c, errors.New("no simulated hosts")
	}
	return c, nil
}

func (h *HostSpec) complete() error {
	models := make([]Model, len(h.Models))
	for i, name := range h.Models {
		m, err := modelNamed(name)
		if err != nil {
			return err
		}
		models[i] = m
	}
	h.Cards = append(slices.Clone(h.Cards), Cards(h.Name, h.NUMANodes, models...)...)
	h.Models = nil
	if h.Kernel == "" {
		h.Kernel = "6.1.0-40-amd64"
	}
	seen := make(map[string]bool)
	for _, c := range h.Cards {
		if seen[c.Key()] || seen[c.PCIAddress] || c.PCIAddress == "" {
			return fmt.Errorf("card %s at %q stands there twice, or nowhere", c.Key(), c.PCIAddress)
		}
		seen[c.Key()], seen[c.PCIAddress] = true, true
	}
	return nil
}
