package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"berth/services/agentapi"
	"berth/services/hostagent/internal/atomicfile"
)

// savedHost is what outlives the process of one host.
type savedHost struct {
	VMs   []*vm                `json:"vms"`
	Disks map[string]bool      `json:"disks"`
	Cards map[string]savedCard `json:"cards"` // by key
}

type savedCard struct {
	Cleaned int64             `json:"cleaned,omitempty"`
	Failed  int64             `json:"failed,omitempty"`
	Problem *agentapi.Problem `json:"problem,omitempty"`
}

// save writes the state file where something that it holds has changed; d.mu is
// held. A driver whose file can't be written goes on from memory.
func (d *Driver) save() {
	if d.statePath == "" || d.closed {
		return
	}
	text, err := json.Marshal(d.snapshot())
	if err == nil && !bytes.Equal(text, d.saved) {
		if err = atomicfile.Write(d.statePath, text); err == nil {
			d.saved = text
		}
	}
	if err != nil {
		d.log.Error("simulated hosts not saved", "error", err)
	}
}

func (d *Driver) snapshot() map[string]savedHost {
	all := make(map[string]savedHost, len(d.hosts))
	for _, h := range d.hosts {
		s := savedHost{VMs: h.vms, Disks: h.disks, Cards: make(map[string]savedCard)}
		for _, c := range h.cards {
			if c.cleaned > 0 || c.failed > 0 {
				s.Cards[c.spec.Key()] = savedCard{Cleaned: c.cleaned, Failed: c.failed, Problem: c.problem}
			}
		}
		all[h.spec.Name] = s
	}
	return all
}

// load restores what the file holds of hosts that there still are, and goes on
// with what was under way.
func (d *Driver) load() error {
	if d.statePath == "" {
		return nil
	}
	text, err := os.ReadFile(d.statePath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load simulated hosts: %w", err)
	}
	var all map[string]savedHost
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("load simulated hosts from %s: %w", d.statePath, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.hosts {
		d.restore(h, all[h.spec.Name])
	}
	return nil
}

func (d *Driver) restore(h *host, s savedHost) {
	h.vms = s.VMs
	for id := range s.Disks {
		h.disks[id] = true
	}
	for key, saved := range s.Cards {
		if c := h.card(key); c != nil {
			c.cleaned, c.failed, c.problem = saved.Cleaned, saved.Failed, saved.Problem
		}
	}
	for _, v := range h.vms {
		switch {
		case v.Change != nil:
			d.schedule(v)
		case v.Power == agentapi.PowerStopping: // the guest did not heed the button
			v.Power = agentapi.PowerRunning
		}
	}
}
