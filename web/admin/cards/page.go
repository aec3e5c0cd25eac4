package cards

import (
	"context"
	"strconv"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is a card's page.
type Page struct {
	layout.Shell
	Card     Card
	Choices  []Choice
	Holdings []Holding // newest first
	Events   []components.Happening
	Asked    Asked // of a refused action
	Broken   []services.Violation
	Key      string
}

// Card is everything about a physical GPU.
type Card struct {
	Row
	UUID         string
	SubsystemID  string
	VBIOS        string
	Firmware     string
	Parents      []string
	Functions    []Function
	Since        time.Time // of the condition
	By           string    // who decided it; empty: the console or the host
	Preparing    bool      // an operator's enabling or return is under way
	Deadline     time.Time // of a cleaning or preparation
	MissingSince time.Time // zero: it is there
	FoundAt      time.Time
	Dirty        string // id of the account whose data may be on it; empty: clean
	VM           services.VMID
	Power        services.Power
	Problem      *Problem
}

// Function is one PCI function of the card's slot.
type Function struct {
	Address string
	Class   string // "0300"
	Driver  string // empty: none
}

// Problem is what the host says keeps the card from what is wanted.
type Problem struct {
	Code    string
	Message string // for operators, English
	Holder  string // name of the process or VM that holds it; empty: unknown
	PID     int    // 0: unknown
	Since   time.Time
	Final   bool // the host has given up
}

// Choice is an action that is possible now, with what it means.
type Choice struct {
	Action services.CardAction
	Impact string   // "none", "vm", "reboot"; texts "cards.impact.<impact>"
	VMs    []string // that would stop
}

// Holding is who had the card, and when.
type Holding struct {
	GPU         services.GPUID
	GPUName     string
	Account     services.AccountID
	AccountName string
	From        time.Time
	Until       time.Time // zero: has it now
}

// Asked is what was asked of the card.
type Asked struct {
	Action  services.CardAction
	Reason  string
	Confirm string
}

func (p Page) region() components.Region {
	return components.Region{ID: "card", Fragment: urls.Fragment(urls.Card(p.Card.ID)), Events: []string{components.EventFleet, components.EventOperations}}
}

// title is what the card is called on its page.
func (p Page) title(ctx context.Context) string {
	if p.Card.Model == "" {
		return i18n.T(ctx, "cards.unknown-model")
	}
	return p.Card.Model
}

// late reports whether a cleaning or preparation has passed its deadline.
func (p Page) late() bool {
	return p.Card.Status == services.CardCleaning && !p.Card.Deadline.IsZero() && p.Now.After(p.Card.Deadline)
}

func (p Page) asks(a services.CardAction) bool { return p.Asked.Action == a && len(p.Broken) > 0 }

func (p Page) problemOf(ctx context.Context, a services.CardAction, field string) string {
	if !p.asks(a) {
		return ""
	}
	return components.Of(ctx, p.Broken, field)
}

func (p Page) asked(a services.CardAction) Asked {
	if p.Asked.Action != a {
		return Asked{}
	}
	return p.Asked
}

// needsReason reports whether an action needs a reason.
func (c Choice) needsReason() bool {
	return c.Action == services.CardDisable || c.Action == services.CardQuarantine || c.Action == services.CardForceRelease
}

// typed reports whether the card's identifier has to be typed.
func (c Choice) typed() bool {
	return c.Action == services.CardForceRelease || c.Action == services.CardRetire
}

// simple reports whether an action needs no form of its own.
func (c Choice) simple() bool {
	return c.Impact == "none" && !c.needsReason() && !c.typed()
}

func (c Choice) icon() components.Icon {
	switch c.Action {
	case services.CardEnable, services.CardReturn:
		return components.IconCheck
	case services.CardRetry:
		return components.IconRestart
	case services.CardRollBack:
		return components.IconUndo
	case services.CardDisable:
		return components.IconBan
	case services.CardQuarantine:
		return components.IconWarning
	}
	return components.IconTrash
}

func whole(n *int) string {
	if n == nil {
		return "–"
	}
	return strconv.Itoa(*n)
}

// why says in a word what the host says of a problem: its holder where it is known.
func (p Problem) why(ctx context.Context) string {
	if p.Holder != "" {
		return i18n.T(ctx, "cards.held-by", "Holder", p.Holder, "PID", strconv.Itoa(p.PID))
	}
	return p.Message
}
