package hostagent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"berth/services/agentapi"
)

// converger has a worker for each thing that the console wants something of.
type converger struct {
	sites   map[string]*site
	log     *slog.Logger
	changed func()

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // workers start later than the converger and end with its Run
	workers  map[unit]*worker
	revision int64 // that the workers were last given
	reached  int64
	wg       sync.WaitGroup
}

// unit names a VM or a card of a host.
type unit struct {
	host, kind, id string
}

const (
	unitVM   = "vm"
	unitCard = "card"
)

func newConverger(ctx context.Context, sites map[string]*site, log *slog.Logger, changed func()) *converger {
	return &converger{ctx: ctx, sites: sites, log: log, changed: changed, workers: make(map[unit]*worker)}
}

// apply gives each worker its goal. What is not listed is let go of.
func (c *converger) apply(d agentapi.Desired) {
	goals := c.goals(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	for u, w := range c.workers {
		if _, listed := goals[u]; !listed {
			w.assign(nil, d.Revision)
		}
	}
	for u, g := range goals {
		c.worker(u).assign(g, d.Revision)
	}
	if d.Revision < c.revision { // the console counts anew
		c.reached = 0
	}
	c.revision = d.Revision
	c.changed()
}

func (c *converger) goals(d agentapi.Desired) map[unit]goal {
	goals := make(map[unit]goal)
	for _, h := range d.Hosts {
		s := c.sites[h.Name]
		if s == nil {
			c.log.Warn("desired state for a host that is not served here", "host", h.Name)
			continue
		}
		for _, vm := range h.VMs {
			goals[unit{h.Name, unitVM, vm.ID}] = vmGoal{site: s, want: vm}
		}
		for _, card := range h.Cards {
			goals[unit{h.Name, unitCard, card.Key}] = cardGoal{site: s, want: card}
		}
	}
	return goals
}

// worker finds the worker of a unit or starts one; c.mu is held.
func (c *converger) worker(u unit) *worker {
	w := c.workers[u]
	if w == nil {
		w = newWorker(u.id, c.sites[u.host], c.changed)
		c.workers[u] = w
		c.wg.Go(func() { w.run(c.ctx, func() bool { return c.retire(u, w) }) })
	}
	return w
}

// retire forgets a worker without a goal.
func (c *converger) retire(u unit, w *worker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g, _, _ := w.state(); g != nil {
		return false
	}
	delete(c.workers, u)
	return true
}

// abandon lets go of everything: nothing is touched until a desired state comes.
func (c *converger) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		w.assign(nil, c.revision)
	}
}

// hostChanged lets the workers of a host look again.
func (c *converger) hostChanged(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for u, w := range c.workers {
		if u.host == host {
			w.hostChanged()
		}
	}
}

// reachedRevision is the newest revision that every worker has worked through.
func (c *converger) reachedRevision() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	lowest := c.revision
	for _, w := range c.workers {
		if g, _, settled := w.state(); g != nil {
			lowest = min(lowest, settled)
		}
	}
	c.reached = max(c.reached, lowest)
	return c.reached
}

// annotate adds to what was seen on a host what the workers know: problems, and
// the VMs that are wanted absent and are.
func (c *converger) annotate(in *Inspection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range slices.SortedFunc(maps.Keys(c.workers), compareUnits) {
		if u.host != in.Host.Name {
			continue
		}
		g, problem, settled := c.workers[u].state()
		switch g := g.(type) {
		case vmGoal:
			annotateVM(in, g, problem, settled)
		case cardGoal:
			if card := in.card(u.id); card != nil && problem != nil {
				card.Problem = problem
			}
		}
	}
}

// annotateVM lists a VM that does not exist only where that is known and says
// something: it was wanted so, or a problem keeps it from being made.
func annotateVM(in *Inspection, g vmGoal, problem *agentapi.Problem, settled int64) {
	have := in.vm(g.want.ID)
	if have == nil {
		if in.Partial || (g.want.Power != agentapi.PowerAbsent && problem == nil) {
			return
		}
		in.Host.VMs = append(in.Host.VMs, agentapi.VMReport{ID: g.want.ID, Power: agentapi.PowerAbsent, Devices: []string{}})
		have = &in.Host.VMs[len(in.Host.VMs)-1]
	}
	have.Revision = settled
	if problem != nil {
		have.Problem = problem
	}
}

func compareUnits(a, b unit) int {
	return slices.Compare([]string{a.host, a.kind, a.id}, []string{b.host, b.kind, b.id})
}

// checkDesired refuses a desired state that this agent does not understand, as
// a whole: half of one may be the harmful half.
func checkDesired(d agentapi.Desired) error {
	hosts := make(map[string]bool)
	for _, h := range d.Hosts {
		if h.Name == "" || hosts[h.Name] {
			return fmt.Errorf("desired state: host %q is unnamed or listed twice", h.Name)
		}
		hosts[h.Name] = true
		if err := checkDesiredVMs(h); err != nil {
			return err
		}
		for _, card := range h.Cards {
			if card.Key == "" {
				return fmt.Errorf("desired state: a card of host %s has no key", h.Name)
			}
		}
	}
	return nil
}

func checkDesiredVMs(h agentapi.DesiredHost) error {
	vms, holders := make(map[string]bool), make(map[string]string)
	for _, vm := range h.VMs {
		if vm.ID == "" || vms[vm.ID] {
			return fmt.Errorf("desired state: VM %q of host %s is unnamed or listed twice", vm.ID, h.Name)
		}
		vms[vm.ID] = true
		switch vm.Power {
		case agentapi.PowerRunning, agentapi.PowerStopped, agentapi.PowerAbsent:
		default:
			return fmt.Errorf("desired state: VM %s has the unknown power %q", vm.ID, vm.Power)
		}
		for _, d := range vm.Devices {
			if other, twice := holders[d.Key]; twice {
				return fmt.Errorf("desired state: card %s is for %s and %s", d.Key, other, vm.ID)
			}
			holders[d.Key] = vm.ID
		}
	}
	return nil
}
