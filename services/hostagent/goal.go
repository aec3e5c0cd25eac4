package hostagent

import (
	"context"
	"reflect"

	"berth/services/agentapi"
)

// site is one host with what its workers share.
type site struct {
	name   string
	driver Driver
	obs    *observer
	claims claims
	opts   *Options
}

// goal is what is wanted of one thing on a host.
type goal interface {
	// next tells which step is due.
	next(Inspection) action
	// do carries out one step.
	do(context.Context, action) error
	// same tells whether the other goal wants the same.
	same(goal) bool
	// urgent: even a stop that has begun gives way to it.
	urgent() bool
}

// vmGoal is a VM as it should be.
type vmGoal struct {
	site *site
	want agentapi.DesiredVM
}

func (g vmGoal) next(in Inspection) action { return nextForVM(g.want, in) }

func (g vmGoal) same(other goal) bool {
	o, ok := other.(vmGoal)
	return ok && reflect.DeepEqual(g.want, o.want)
}

func (g vmGoal) urgent() bool { return g.want.Power == agentapi.PowerAbsent && !g.want.KeepDisk }

func (g vmGoal) do(ctx context.Context, act action) error {
	d, host, vm := g.site.driver, g.site.name, g.want.ID
	switch act {
	case actDefine:
		bare := g.want
		bare.Devices = nil
		return d.Apply(ctx, host, bare)
	case actApply:
		return g.apply(ctx)
	case actStart:
		return d.Start(ctx, host, vm, Counts{Run: g.want.Run, Reboots: g.want.Reboots})
	case actAdopt:
		return g.adopt(ctx)
	case actStop:
		return d.Stop(ctx, host, vm, g.site.opts.ShutdownGrace)
	case actKill:
		return d.Stop(ctx, host, vm, 0)
	case actReboot:
		return d.Reboot(ctx, host, vm, g.want.Reboots)
	case actRemove:
		return d.Remove(ctx, host, vm, g.want.KeepDisk)
	}
	return nil
}

// apply claims the cards first, so that the inspection which follows shows
// whatever another worker has done with them, and gives the claim back when an
// inspection shows what was done here.
func (g vmGoal) apply(ctx context.Context) error {
	cards := keys(g.want.Devices)
	if err := g.site.claims.take(g.want.ID, cards); err != nil {
		return err
	}
	defer g.site.claims.release(g.want.ID, cards)
	in, err := g.site.obs.await(ctx, g.site.obs.request())
	if err != nil {
		return err
	}
	if err := verify(g.want.ID, g.want.Devices, in); err != nil {
		return err
	}
	if nextForVM(g.want, in) != actApply {
		return nil
	}
	err = g.site.driver.Apply(ctx, g.site.name, g.want)
	_, _ = g.site.obs.await(ctx, g.site.obs.request())
	return err
}

// adopt keeps the wanted start's number with a VM that runs already; reboots
// that are still wanted stay so.
func (g vmGoal) adopt(ctx context.Context) error {
	in, err := g.site.obs.await(ctx, 0)
	if err != nil {
		return err
	}
	have := in.vm(g.want.ID)
	if have == nil {
		return nil
	}
	return g.site.driver.Start(ctx, g.site.name, g.want.ID, Counts{Run: g.want.Run, Reboots: have.Reboots})
}

// cardGoal is a card to be cleaned.
type cardGoal struct {
	site *site
	want agentapi.DesiredCard
}

func (g cardGoal) next(in Inspection) action { return nextForCard(g.want, in) }

func (g cardGoal) same(other goal) bool {
	o, ok := other.(cardGoal)
	return ok && g.want == o.want
}

func (cardGoal) urgent() bool { return false }

// do cleans the card once no VM has it or is about to take it.
func (g cardGoal) do(ctx context.Context, _ action) error {
	key := g.want.Key
	owner := "cleaning"
	if err := g.site.claims.take(owner, []string{key}); err != nil {
		return err
	}
	defer g.site.claims.release(owner, []string{key})
	in, err := g.site.obs.await(ctx, g.site.obs.request())
	if err != nil {
		return err
	}
	if holder := in.Holders[key]; holder != "" {
		return inUse(key, holder)
	}
	err = g.site.driver.Clean(ctx, g.site.name, key, g.want.CleanOrder)
	_, _ = g.site.obs.await(ctx, g.site.obs.request())
	return err
}
