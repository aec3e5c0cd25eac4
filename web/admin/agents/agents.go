// Package agents is the operator's page about the programs on the hosts: how
// they join, whom they are trusted as, and what they say that the books do not.
package agents

import (
	"context"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is the whole page.
type Page struct {
	layout.Shell
	components.Listing
	Rows    []Row
	Zones   []string // to filter by and to make tokens for
	Tokens  []Token  // that may still be used, newest first
	Drifts  []components.Drift
	Made    Made // the token just made
	Asked   Asked
	Broken  []services.Violation
	Console string // what agents dial; empty: not known
	Key     string
}

// Row is an agent of the list.
type Row struct {
	ID        services.AgentID
	Zone      string
	Version   string
	Driver    string
	Hosts     int
	Drifts    int
	Seen      time.Time // last report; zero: none yet
	Behind    int       // desired revisions that it has still to reach
	ExpiresAt time.Time // of its certificate
	RevokedAt time.Time // zero: it is trusted
}

// Token is an enrolment token without its secret.
type Token struct {
	ID        string
	Zone      string
	By        string
	MadeAt    time.Time
	ExpiresAt time.Time
}

// Made is a token that was just made; its secret is shown once.
type Made struct {
	Secret string // empty: none was
	Zone   string
	Life   time.Duration
}

// Asked is what was asked of a token.
type Asked struct{ Zone, Life string }

// Lives are how long a token may be valid, as the form offers it.
var Lives = []string{"1h", "24h", "168h"}

// States are what the list can be narrowed to.
var States = []string{"", "active", "expired", "revoked"}

func (p Page) frame(ctx context.Context) components.ListFrame {
	var states []components.Option
	for _, s := range States {
		key := "agents.state." + s
		if s == "" {
			key = "agents.any-state"
		}
		states = append(states, components.Option{Value: s, Label: i18n.T(ctx, key), Selected: p.Query.State == s})
	}
	return components.ListFrame{
		Listing: p.Listing, Label: i18n.T(ctx, "nav.agents"),
		Icon: components.IconLink, Empty: i18n.T(ctx, "agents.none"), Hint: i18n.T(ctx, "agents.none-text"),
		Bar: components.FilterBar{
			ID: "agents", Action: urls.AdminAgents, Text: p.Query.Text, Hint: i18n.T(ctx, "agents.search"), Keep: p.Kept("zone", "state"),
			Picks: []components.Pick{
				{Name: "zone", Label: i18n.T(ctx, "field.zone"), Options: components.AnyOf(p.Zones, p.Query.Zone, i18n.T(ctx, "list.any-zone"))},
				{Name: "state", Label: i18n.T(ctx, "gpus.state"), Options: states},
			},
		},
	}
}

// expiresSoon is when a certificate should have been renewed.
const expiresSoon = 5 * 24 * time.Hour

func (r Row) state(now time.Time) string {
	switch {
	case !r.RevokedAt.IsZero():
		return "revoked"
	case r.ExpiresAt.Before(now):
		return "expired"
	}
	return "active"
}

func (r Row) certificate(now time.Time) components.Look {
	switch {
	case r.ExpiresAt.Before(now):
		return components.Look{Tone: components.ToneBad, Icon: components.IconWarning}
	case r.ExpiresAt.Before(now.Add(expiresSoon)):
		return components.Look{Tone: components.ToneWait, Icon: components.IconClock}
	}
	return components.Look{Tone: components.ToneOK, Icon: components.IconCheck}
}

func (p Page) zoneOptions() []components.Option {
	var out []components.Option
	for _, z := range p.Zones {
		out = append(out, components.Option{Value: z, Label: z, Selected: z == p.Asked.Zone})
	}
	return out
}

func (p Page) lifeOptions(ctx context.Context) []components.Option {
	var out []components.Option
	for _, l := range Lives {
		d, err := time.ParseDuration(l)
		if err == nil {
			out = append(out, components.Option{Value: l, Label: i18n.Duration(ctx, d), Selected: l == p.Asked.Life})
		}
	}
	return out
}

// command starts an agent with the token just made.
func (p Page) command() string {
	console := p.Console
	if console == "" {
		console = "https://CONSOLE:8443"
	}
	return "berth-agent run --console " + console + " --token " + p.Made.Secret
}
