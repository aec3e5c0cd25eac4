package fleet

import (
	"context"
	"errors"
	"slices"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
)

// Impact is what an action on a card means for others.
type Impact string

// The impacts.
const (
	ImpactNone   Impact = "none"   // nobody notices
	ImpactVM     Impact = "vm"     // the VM that has the card is stopped and started
	ImpactReboot Impact = "reboot" // the card may come back only with a reboot of its host
)

// CardChoice is an action that may be asked for a card as it is, with what it
// means, known before the click.
type CardChoice struct {
	Action services.CardAction
	Impact Impact
	VMs    []string // names of the VMs that would stop
}

// conditions lists from which conditions each action leads, and where to. To is
// cleaning where the card has to be reset first.
var conditions = map[services.CardAction]struct {
	from []services.CardCondition
	to   services.CardCondition
}{
	services.CardEnable: {[]services.CardCondition{services.CardDisabled}, services.CardCleaning},
	services.CardReturn: {[]services.CardCondition{services.CardQuarantined, services.CardNeedsReview}, services.CardCleaning},
	services.CardDisable: {[]services.CardCondition{
		services.CardReady, services.CardCleaning, services.CardQuarantined, services.CardNeedsReview,
	}, services.CardDisabled},
	services.CardQuarantine: {[]services.CardCondition{
		services.CardReady, services.CardCleaning, services.CardDisabled, services.CardNeedsReview,
	}, services.CardQuarantined},
	services.CardRetire: {[]services.CardCondition{
		services.CardReady, services.CardDisabled, services.CardQuarantined, services.CardNeedsReview, services.CardCleaning,
	}, services.CardRetired},
	services.CardRetry:    {[]services.CardCondition{services.CardCleaning}, services.CardCleaning},
	services.CardRollBack: {[]services.CardCondition{services.CardCleaning}, ""}, // to where the preparation began
}

// allowed reports whether an action makes sense for a card as it is.
func allowed(c db.Card, action services.CardAction) bool {
	switch {
	case action == services.CardForceRelease:
		return c.GPU != ""
	case !slices.Contains(conditions[action].from, c.Condition):
		return false
	case action == services.CardRollBack:
		return c.Undo != ""
	case action == services.CardRetire:
		return c.GPU == ""
	case action == services.CardEnable, action == services.CardReturn:
		return c.Model != ""
	}
	return true
}

func choices(row db.CardRow, problem *agentapi.Problem, vms []db.HostVM) []CardChoice {
	var all []CardChoice
	for _, a := range services.CardActions {
		if !allowed(row.Card, a) || a == services.CardForceRelease && row.GPUKind == services.GPUBuiltIn {
			continue
		}
		c := CardChoice{Action: a, Impact: ImpactNone}
		switch {
		case a == services.CardForceRelease && row.VM != "" && row.VMPower != services.PowerStopped:
			c.Impact, c.VMs = ImpactVM, []string{row.VMName}
		case (a == services.CardReturn || a == services.CardRetry) && problem != nil && problem.Code == agentapi.ProblemReset:
			c.Impact, c.VMs = ImpactReboot, running(vms)
		case a == services.CardRetire:
			c.Impact, c.VMs = ImpactReboot, running(vms)
		}
		all = append(all, c)
	}
	return all
}

// running names the VMs that a reboot of their host would stop.
func running(vms []db.HostVM) []string {
	var names []string
	for _, v := range vms {
		if v.DesiredPower == services.PowerRunning {
			names = append(names, v.Name)
		}
	}
	return names
}

// NewCondition asks something of a card.
type NewCondition struct {
	Action  services.CardAction
	Reason  string // needed to disable, quarantine and force a release
	Confirm string // to force a release or retire: the card's id, serial or address
}

// SetCondition carries out an operator's action on a card. Asking again for
// what is so already changes nothing. Refusals: invalid-value, required,
// too-long and confirm (invalid), wrong-state and held (conflict).
func (s *Service) SetCondition(ctx context.Context, a services.Actor, id services.CardID, in NewCondition) error {
	reason, err := checkAction(in)
	if err != nil {
		return err
	}
	row, err := s.db.CardRow(ctx, id)
	if err != nil {
		return err
	}
	if err := confirmed(row.Card, in); err != nil {
		return err
	}
	if in.Action == services.CardForceRelease {
		return s.forceRelease(ctx, a, row.Card, reason)
	}
	return s.db.Tx(ctx, func(tx *db.Tx) error { return s.setCondition(ctx, tx, a, id, in.Action, reason) })
}

// SetConditions is SetCondition for several cards: each that can be changed is;
// the error joins the violations of the others. Actions that need a typed
// confirmation are not for several.
func (s *Service) SetConditions(ctx context.Context, a services.Actor, ids []services.CardID, in NewCondition) error {
	var broken []services.Violation
	for _, id := range ids {
		err := s.SetCondition(ctx, a, id, in)
		if e, ok := services.AsError(err); ok && e.Kind != services.KindNotFound {
			broken = append(broken, e.Violations...)
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(broken) > 0 {
		return &services.Error{Kind: services.KindConflict, Violations: broken}
	}
	return nil
}

func checkAction(in NewCondition) (reason string, err error) {
	if !in.Action.Valid() {
		names := make([]string, 0, len(services.CardActions))
		for _, a := range services.CardActions {
			names = append(names, string(a))
		}
		return "", services.NoneOf("action", string(in.Action), names...)
	}
	reason, err = checkReason(in.Reason)
	needed := in.Action == services.CardDisable || in.Action == services.CardQuarantine || in.Action == services.CardForceRelease
	if err == nil && needed && reason == "" {
		err = services.Invalid("reason", services.CodeRequired, nil)
	}
	return reason, err
}

// confirmed refuses what can't be taken back unless the card was named.
func confirmed(c db.Card, in NewCondition) error {
	if in.Action != services.CardForceRelease && in.Action != services.CardRetire {
		return nil
	}
	names := []string{string(c.ID), c.Serial, c.PCIAddress, string(c.GPU)}
	if in.Confirm != "" && slices.Contains(names, in.Confirm) {
		return nil
	}
	return services.Invalid("confirm", services.CodeConfirm, map[string]any{"Text": string(c.ID)})
}

func (s *Service) forceRelease(ctx context.Context, a services.Actor, c db.Card, reason string) error {
	if c.GPU == "" {
		return cardWrongState(c)
	}
	return s.machines.ForceRelease(ctx, a, c.GPU, reason)
}

func (s *Service) setCondition(ctx context.Context, tx *db.Tx, a services.Actor, id services.CardID, action services.CardAction, reason string) error {
	c, err := tx.LockCard(ctx, id)
	if err != nil {
		return err
	}
	to := conditions[action].to
	switch {
	case done(c, action):
		return nil
	case action == services.CardRetire && c.GPU != "":
		return services.Fail(services.KindConflict, services.CodeHeld, map[string]any{"Card": string(c.ID), "GPU": string(c.GPU)})
	case !allowed(c, action):
		return cardWrongState(c)
	case action == services.CardRollBack:
		to = c.Undo
	}
	before := c.Condition
	if err := s.enter(ctx, tx, &c, action, to, reason, a.Email); err != nil {
		return err
	}
	return tx.InsertEvent(ctx, s.event(a, "card."+string(action), map[string]any{"Reason": reason}),
		db.Subject{Card: c.ID, Host: c.Host, From: string(before), To: string(c.Condition)})
}

// done reports whether what is asked for is so already.
func done(c db.Card, action services.CardAction) bool {
	switch action {
	case services.CardEnable, services.CardReturn:
		return c.Condition == services.CardReady || c.Condition == services.CardCleaning
	case services.CardRetry, services.CardRollBack:
		return false
	}
	return c.Condition == conditions[action].to
}

// enter writes a card's new condition. One that is to be offered again is reset
// and scrubbed first, unless somebody has it.
func (s *Service) enter(ctx context.Context, tx *db.Tx, c *db.Card, action services.CardAction, to services.CardCondition, reason, actor string) error {
	undo := c.Undo
	if action == services.CardEnable || action == services.CardReturn {
		undo = c.Condition
	}
	prepare := to == services.CardCleaning
	if prepare && c.GPU != "" {
		to, prepare = services.CardReady, false
	}
	if !prepare {
		undo = ""
	}
	c.Condition, c.ConditionReason, c.ConditionSince, c.ConditionActor, c.Undo = to, reason, s.now(), actor, undo
	if err := tx.SetCondition(ctx, *c); err != nil || !prepare {
		return errors.Join(err, s.wake(ctx, tx, c.Host))
	}
	if _, err := tx.Clean(ctx, c.ID); err != nil {
		return err
	}
	return s.wake(ctx, tx, c.Host)
}

// wake tells a host's agent that what is wanted of its cards has changed.
func (s *Service) wake(ctx context.Context, tx *db.Tx, host services.HostID) error {
	_, err := tx.Bump(ctx, host)
	return err
}

func cardWrongState(c db.Card) *services.Error {
	return services.Fail(services.KindConflict, services.CodeWrongState, map[string]any{"Card": string(c.ID), "State": string(c.Condition), "VM": "", "GPU": ""})
}
