package libvirt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/pci"
)

// cleaner and tidier are who has a card while the driver itself works on it.
const (
	cleaner = "cleaning"
	tidier  = "giving it back to the host"
)

// Clean resets a card, gives it back to the host's driver and scrubs it there.
func (d *Driver) Clean(ctx context.Context, host, key string, number int64) error {
	if err := d.begin(ctx, host); err != nil {
		return err
	}
	defer d.turn()
	release, err := d.claim(cleaner, key)
	if err != nil {
		return err
	}
	defer release()
	found, err := d.found(ctx)
	if err != nil {
		return err
	}
	card, there := found.Cards[key]
	if !there {
		return hostagent.Block(agentapi.ProblemIdentity, key, "this host has no card %s", key)
	}
	if err := d.unused(ctx, cleaner, key, card); err != nil {
		return err
	}
	err = d.clean(ctx, key, card)
	if b, blocked := errors.AsType[*hostagent.Blocked](err); errors.Is(err, context.Canceled) || blocked && b.Problem.Code == agentapi.ProblemHeld {
		return err // not tried, or not to the end
	}
	return d.conclude(key, number, err)
}

func (d *Driver) clean(ctx context.Context, key string, card pci.Card) error {
	if err := d.binder.Take(ctx, key, card); err != nil {
		return err
	}
	err := d.binder.Reset(ctx, key, card)
	if back := d.binder.Return(ctx, key); err == nil {
		err = back
	}
	if err != nil {
		return err
	}
	return d.scrub(ctx, key, card.GPU.Address)
}

// scrub runs the operator's command. The end of what it says is why it failed.
func (d *Driver) scrub(ctx context.Context, key string, at pci.Address) error {
	if len(d.conf.Scrub) == 0 {
		return nil
	}
	argv := append(slices.Clone(d.conf.Scrub), string(at))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the operator's own command
	cmd.WaitDelay = 5 * time.Second
	said, err := cmd.CombinedOutput()
	if err != nil {
		last := said[bytes.LastIndexByte(bytes.TrimSpace(said), '\n')+1:]
		failed := hostagent.Block(agentapi.ProblemReset, key, "%s: %v: %.200s", argv[0], err, bytes.TrimSpace(last))
		failed.Cause = err
		return failed
	}
	return nil
}

// conclude keeps how a cleaning ended. Whatever went wrong, the card is not fit
// for the next tenant.
func (d *Driver) conclude(key string, number int64, err error) error {
	was := d.orders.get(key)
	if err == nil {
		return d.orders.set(key, order{Cleaned: number})
	}
	b, ok := errors.AsType[*hostagent.Blocked](err)
	if !ok || b.Problem.Code != agentapi.ProblemReset {
		b = hostagent.Block(agentapi.ProblemReset, key, "%v", err)
		b.Cause = err
	}
	p := b.Problem
	p.Since = time.Now()
	was.Failed, was.Problem = number, &p
	return errors.Join(b, d.orders.set(key, was))
}

// tidyInterval is how often cards are looked for that nobody has and the host
// has not got back.
const tidyInterval = 10 * time.Second

// tidyUp gives back what a step left half way that nobody repeats: one that was
// interrupted by the agent's end, or an unbind that came through too late.
func (d *Driver) tidyUp(ctx context.Context) {
	tick := time.NewTicker(tidyInterval)
	defer tick.Stop()
	for {
		if err := d.tidy(ctx); err != nil && ctx.Err() == nil {
			d.log.WarnContext(ctx, "a card could not be given back to the host", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (d *Driver) tidy(ctx context.Context) error {
	var errs []error
	for _, key := range d.binder.Loans() {
		if err := d.giveBackUnclaimed(ctx, key); err != nil {
			errs = append(errs, fmt.Errorf("card %s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

func (d *Driver) giveBackUnclaimed(ctx context.Context, key string) error {
	release, err := d.claim(tidier, key)
	if err != nil {
		return nil // somebody is at work on it
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, tidyInterval)
	defer cancel()
	list, err := d.domains(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(dom *domain) bool { return dom.note != nil && dom.note.has(key) }) {
		return nil
	}
	if err := d.binder.Return(ctx, key); err != nil {
		return err
	}
	d.log.InfoContext(ctx, "a card that nobody had went back to the host's driver", "card", strings.ToValidUTF8(key, "?"))
	d.turn()
	return nil
}
