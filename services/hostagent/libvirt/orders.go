package libvirt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"

	"berth/services/agentapi"
	"berth/services/hostagent/internal/atomicfile"
)

// order is what became of the cleaning orders of a card.
type order struct {
	Cleaned int64             `json:"cleaned,omitempty"`
	Failed  int64             `json:"failed,omitempty"`
	Problem *agentapi.Problem `json:"problem,omitempty"` // why, of Failed
}

// orders are kept on disk by card key.
type orders struct {
	file string

	mu sync.Mutex
	of map[string]order
}

func loadOrders(file string) (*orders, error) {
	o := &orders{file: file, of: make(map[string]order)}
	raw, err := os.ReadFile(file) //nolint:gosec // in the agent's own state folder
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &o.of)
	}
	if err != nil {
		return nil, fmt.Errorf("read which cards were cleaned: %w", err)
	}
	return o, nil
}

func (o *orders) get(key string) order {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of[key]
}

func (o *orders) set(key string, to order) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := maps.Clone(o.of)
	next[key] = to
	raw, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("encode which cards were cleaned: %w", err)
	}
	if err := atomicfile.Write(o.file, append(raw, '\n')); err != nil {
		return fmt.Errorf("keep which cards were cleaned: %w", err)
	}
	o.of = next
	return nil
}
