package libvirt

import (
	"context"
	"time"

	rpc "github.com/digitalocean/go-libvirt"
)

// reconnect is how long to wait before libvirt is dialled again.
const reconnect = time.Second

// watch follows libvirt's events for as long as the driver lives. What happened
// while there was no connection is not told, so the agent looks again after each.
func (d *Driver) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if err := d.follow(ctx); err != nil && ctx.Err() == nil {
			d.log.DebugContext(ctx, "no connection to libvirt", "error", err)
		}
		d.turn()
		select {
		case <-time.After(reconnect):
		case <-ctx.Done():
		}
	}
}

// follow returns when the connection ends.
func (d *Driver) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	to, err := d.link.get()
	if err != nil {
		return err
	}
	life, err := to.LifecycleEvents(ctx)
	if err != nil {
		return err
	}
	reboots, err := to.SubscribeEvents(ctx, rpc.DomainEventIDReboot, nil)
	if err != nil {
		return err
	}
	d.turn()
	defer drain(life)
	defer drain(reboots)
	for {
		select {
		case e, open := <-life:
			if !open {
				return nil
			}
			if rpc.DomainEventType(e.Event) == rpc.DomainEventStopped {
				d.stopped(ctx, e.Dom.Name)
			}
			d.turn()
		case e, open := <-reboots:
			if !open {
				return nil
			}
			if r, ok := e.(*rpc.DomainEventCallbackRebootMsg); ok {
				d.mu.Lock()
				d.reboots[r.Msg.Dom.Name]++
				d.mu.Unlock()
			}
			d.turn()
		case <-to.Disconnected():
			return nil
		}
	}
}

// drain lets a subscription end: the library waits until its last event is taken.
func drain[T any](events <-chan T) {
	go func() {
		for range events {
		}
	}()
}

// noteDeadline bounds the writing down of what an event told.
const noteDeadline = 10 * time.Second

// stopped keeps by whom a VM's run ended, before libvirt forgets it.
func (d *Driver) stopped(ctx context.Context, vm string) {
	ctx, cancel := context.WithTimeout(ctx, noteDeadline)
	defer cancel()
	dom, err := d.find(ctx, vm)
	if err != nil || dom == nil || dom.note == nil || !dom.stopped() || dom.note.Ended != "" || dom.note.Run == 0 {
		return
	}
	ended := dom.stoppedBy()
	if err := d.amend(ctx, vm, func(n *note) {
		if n.Run == dom.note.Run && n.Starting == dom.note.Starting {
			n.Ended = ended
		}
	}); err != nil && ctx.Err() == nil {
		d.log.WarnContext(ctx, "who stopped a VM could not be kept", "vm", vm, "error", err)
	}
}
