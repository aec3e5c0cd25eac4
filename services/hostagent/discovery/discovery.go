// Package discovery describes the host that the agent runs on: its cards with
// their identity, its processors and memory, and whether it is ready to hand
// cards out. It changes nothing on the host but a file of its own, in which it
// remembers which card is which.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"berth/services/agentapi"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/pci"
	"berth/services/hostagent/readiness"
)

// Library is NVIDIA's management library as far as it tells which card is
// which. It answers by address, for the cards that are on NVIDIA's driver.
// ErrNoLibrary means that there is none, any other error that it could not be
// asked.
type Library interface {
	Cards(ctx context.Context) (map[pci.Address]Seen, error)
}

// ErrNoLibrary means that the library, or the driver that it speaks to, is not there.
var ErrNoLibrary = errors.New("NVIDIA's library or driver is not there")

// Options say where to look.
type Options struct {
	Name   string       // the host's, as it is reported
	Root   machine.Root // where its file system lies; empty: "/"
	Config Config
	// Identities is the file that remembers which card is which; empty: none
	// is kept, as for a look that reports to nobody.
	Identities string
	Library    Library // nil: cards are told apart by their place
	Logger     *slog.Logger
}

// Host is the machine that is looked at. Its methods may be called at the same
// time.
type Host struct {
	opt Options

	mu   sync.Mutex // guards what follows
	ids  *identities
	told map[pci.Address]bool // the library has answered since these came on NVIDIA's driver
	// library is what came of the last question to it.
	library readiness.Library
}

// New prepares to look. An error means that the file of identities can't be
// read.
func New(opt Options) (*Host, error) {
	if opt.Root == "" {
		opt.Root = "/"
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	ids, err := loadIdentities(opt.Identities)
	if err != nil {
		return nil, err
	}
	return &Host{opt: opt, ids: ids, told: make(map[pci.Address]bool)}, nil
}

// Found is a host at one moment.
type Found struct {
	Report  agentapi.HostReport // without VMs
	Cards   map[string]pci.Card // by key
	CPU     string              // model name
	Nodes   []machine.Node
	Partial bool // something could not be looked at
}

// Look describes the host now. An error means that nothing is known.
func (h *Host) Look(ctx context.Context) (Found, error) {
	bus, err := pci.Read(string(h.opt.Root))
	if err != nil {
		return Found{}, err
	}
	facts, err := machine.Read(h.opt.Root)
	if err != nil {
		return Found{}, err
	}
	cards := slices.DeleteFunc(slices.Clone(bus.Cards), h.opt.Config.excludes)
	generation := h.opt.Config.generation(facts.CPUModel)
	found := Found{CPU: facts.CPUModel, Nodes: facts.Nodes, Cards: make(map[string]pci.Card, len(cards)), Partial: len(bus.Unreadable) > 0}
	found.Report = agentapi.HostReport{
		Name: h.opt.Name, Generation: generation, Kernel: facts.Kernel, NUMA: nodes(facts.Nodes),
		VCores:    max(0, facts.Threads-h.opt.Config.ReserveVCores),
		MemoryMiB: max(0, facts.MemoryMiB-h.opt.Config.ReserveMemoryMiB),
		Cards:     make([]agentapi.CardReport, 0, len(cards)), VMs: []agentapi.VMReport{},
	}
	library, err := h.identify(ctx, cards, &found)
	if err != nil {
		return Found{}, err
	}
	found.Report.Findings = readiness.Look(readiness.Host{
		Root: h.opt.Root, Facts: facts, Bus: bus, Cards: cards, Generation: generation, Library: library,
	})
	return found, nil
}

// identify tells which card is which, and keeps it before anybody hears of it.
func (h *Host) identify(ctx context.Context, cards []pci.Card, found *Found) (readiness.Library, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.ask(ctx, cards)
	before := slices.Clone(h.ids.Cards)
	for _, c := range cards {
		var s *Seen
		if at, there := seen[c.GPU.Address]; there {
			at.Serial = serial(at.Serial)
			s = &at
		}
		id := h.ids.of(c.GPU, s)
		found.Cards[id.Key] = c
		found.Report.Cards = append(found.Report.Cards, report(c, id))
	}
	if h.ids.same(before) {
		return h.library, nil
	}
	if err := h.ids.save(); err != nil {
		h.ids.Cards = before
		return h.library, fmt.Errorf("remember which card is which: %w", err)
	}
	return h.library, nil
}

// ask asks the library at first, and where a card has come on NVIDIA's driver
// since it last answered: a question opens every card that is there.
func (h *Host) ask(ctx context.Context, cards []pci.Card) map[pci.Address]Seen {
	if h.opt.Library == nil || len(cards) == 0 {
		return nil
	}
	due := !h.library.Asked
	for _, c := range cards {
		if c.GPU.Driver != nvidiaDriver {
			delete(h.told, c.GPU.Address)
		} else if !h.told[c.GPU.Address] {
			due = true
		}
	}
	if !due {
		return nil
	}
	seen, err := h.opt.Library.Cards(ctx)
	h.library = readiness.Library{Asked: true, Err: err}
	if err != nil {
		if !errors.Is(err, ErrNoLibrary) {
			h.opt.Logger.WarnContext(ctx, "NVIDIA's library does not answer", "error", err)
		}
		return nil
	}
	for _, c := range cards {
		if c.GPU.Driver == nvidiaDriver {
			h.told[c.GPU.Address] = true
		}
	}
	return seen
}

// nvidiaDriver is the driver by which the library sees a card.
const nvidiaDriver = "nvidia"

func report(c pci.Card, id identity) agentapi.CardReport {
	r := agentapi.CardReport{
		Key: id.Key, Serial: id.Serial, UUID: id.UUID, VBIOS: id.VBIOS, Firmware: id.Firmware,
		VendorID: c.GPU.Vendor, DeviceID: c.GPU.Device, SubsystemID: c.GPU.SubsystemID, PCIAddress: string(c.GPU.Address),
		IOMMUGroup: c.GPU.IOMMUGroup, NUMANode: c.GPU.NUMANode, Parents: c.GPU.Parents,
		Functions: make([]agentapi.Function, len(c.Functions)),
	}
	for i, f := range c.Functions {
		r.Functions[i] = agentapi.Function{Address: string(f.Address), Class: f.Class, Driver: f.Driver}
	}
	return r
}

func nodes(found []machine.Node) []agentapi.NUMANode {
	out := make([]agentapi.NUMANode, len(found))
	for i, n := range found {
		out[i] = agentapi.NUMANode{ID: n.ID, Socket: n.Socket, VCores: n.Threads, MemoryMiB: n.MemoryMiB}
	}
	return out
}
