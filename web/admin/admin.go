// Package admin is the operator's overview: agents, hosts, cards, and where
// reality and the books differ.
package admin

import (
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is the whole overview.
type Page struct {
	layout.Shell
	Drifts []Drift // newest first
	Hosts  []Host  // by zone and name
	Pools  []Pool  // by zone and model
	Agents []Agent
}

// Drift is a difference between reality and the books.
type Drift struct {
	Kind    string // "empty-report", "foreign-card", ...; texts "admin.drift.<kind>"
	Subject string // host, card or VM
	Detail  string // in English, for operators
	Agent   services.AgentID
	Since   time.Time
}

// Host is a machine with cards.
type Host struct {
	ID         services.HostID
	Name       string
	Zone       string
	Generation string
	VCores     int
	MemoryMiB  int
	Mode       services.HostMode
	Seen       time.Time // last report that mentioned it
	Vouched    bool      // a full report still vouches for it; else its cards are not offered
}

// Pool is the cards of a model in a zone; Free, Held and Unavailable add up.
type Pool struct {
	Zone        string
	Model       string // empty: unknown to the catalogue
	Free        int
	Held        int
	Unavailable int
	Total       int
}

// Agent is a program that serves hosts.
type Agent struct {
	ID        services.AgentID
	Zone      string
	Version   string
	Driver    string
	Seen      time.Time // last report; zero: none yet
	Behind    int64     // desired revisions that it has still to reach
	ExpiresAt time.Time // of its certificate
	Revoked   bool
}

func (p Page) region() components.Region {
	return components.Region{ID: "fleet", Fragment: urls.AdminFragment, Events: []string{components.EventFleet}}
}

// silent counts hosts that no report vouches for any more.
func (p Page) silent() int {
	n := 0
	for _, h := range p.Hosts {
		if !h.Vouched {
			n++
		}
	}
	return n
}

func (p Page) sum(of func(Pool) int) int {
	n := 0
	for _, pool := range p.Pools {
		n += of(pool)
	}
	return n
}

func (h Host) look() components.Look {
	if h.Vouched {
		return components.Look{Tone: components.ToneOK, Icon: components.IconCheck}
	}
	return components.Look{Tone: components.ToneBad, Icon: components.IconWarning}
}

func (h Host) contact() string {
	if h.Vouched {
		return "admin.in-touch"
	}
	return "admin.silent"
}

func (p Pool) bar(label string) components.Bar {
	return components.Bar{Label: label, Total: p.Total, Parts: []components.BarPart{
		{Tone: components.ToneInfo, Value: p.Held}, {Tone: components.ToneBad, Value: p.Unavailable},
	}}
}
