// Package layout is the frame of every page: head, sidebar, top bar and the
// live stream. Pages put their content into Page; those without a session use
// Plain.
package layout

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/urls"
)

// Assets are the URLs of the built files, with their versions.
type Assets struct {
	CSS  string // css/app.css
	HTMX string // vendor/htmx.js, with its extension for event streams
	App  string // js/app.js
	Icon string // img/berth.svg
	Font string // fonts/inter-latin.woff2, without a version: the style sheet names it so
}

// Theme is light, dark, or what the system says.
type Theme string

// The themes.
const (
	ThemeSystem Theme = "system"
	ThemeLight  Theme = "light"
	ThemeDark   Theme = "dark"
)

// Themes lists the themes in the order that the switch shows them.
var Themes = []Theme{ThemeSystem, ThemeLight, ThemeDark}

// Valid reports whether t is one of the themes.
func (t Theme) Valid() bool { return t == ThemeSystem || t == ThemeLight || t == ThemeDark }

// attribute is the daisyUI theme; empty leaves the choice to the system.
func (t Theme) attribute() string {
	switch t {
	case ThemeLight:
		return "berth-light"
	case ThemeDark:
		return "berth-dark"
	}
	return ""
}

func (t Theme) icon() components.Icon {
	switch t {
	case ThemeLight:
		return components.IconSun
	case ThemeDark:
		return components.IconMoon
	}
	return components.IconSystem
}

// Section is the part of the console that a page belongs to.
type Section string

// The sections of the sidebar.
const (
	SectionNone     Section = ""
	SectionOverview Section = "overview"
	SectionCatalog  Section = "catalog"
	SectionGPUs     Section = "gpus"
	SectionVMs      Section = "vms"
	SectionActivity Section = "activity"
	SectionLimits   Section = "limits"

	// Of operators.
	SectionFleet      Section = "fleet"
	SectionHosts      Section = "hosts"
	SectionCards      Section = "cards"
	SectionCapacity   Section = "capacity"
	SectionAccounts   Section = "accounts"
	SectionQuotas     Section = "quotas"
	SectionModels     Section = "models"
	SectionAgents     Section = "agents"
	SectionOperations Section = "operations"
	SectionAudit      Section = "audit"
)

// operators reports whether the section is of those who run the platform: what
// it shows is of every account and region, whichever is looked at.
func (s Section) operators() bool {
	return slices.ContainsFunc(Shell{Admin: true}.operatorEntries(), func(e entry) bool { return e.section == s })
}

// AccountChoice is an account that the user may look at.
type AccountChoice struct {
	ID   services.AccountID
	Name string
	Role services.Role
	// Suspended: its members read, and change nothing; Reason says why.
	Suspended bool
	Reason    string
}

// Frame is what every page has around its content.
type Frame struct {
	Assets Assets
	Theme  Theme
	Path   string // of the page with its query; switches lead back to it
	Now    time.Time
}

// Shell is the frame of whoever is signed in.
type Shell struct {
	Frame
	Email    string
	Admin    bool // of the platform
	Account  AccountChoice
	Accounts []AccountChoice
	Region   string   // looked at; empty: all
	Regions  []string // to choose from
	Search   string   // what was searched for
	Counts   Counts
	// Events is the URL of the live stream; empty: urls.Events. It may carry
	// since=<id of the newest event when the page was read>, so that what
	// happens before the stream opens is not missed.
	Events string
	Notice Notice
}

// CanWrite reports whether the member may change GPUs and VMs here.
func (s Shell) CanWrite() bool { return s.Account.Role.CanWrite() && !s.Account.Suspended }

func (s Shell) events() string {
	if s.Events != "" {
		return s.Events
	}
	return urls.Events
}

// Initials stand for the user in the top bar.
func (s Shell) Initials() string {
	local, _, _ := strings.Cut(s.Email, "@")
	var out []rune
	for _, part := range strings.FieldsFunc(local, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		r, _ := utf8.DecodeRuneInString(part)
		out = append(out, unicode.ToUpper(r))
	}
	return string(out[:min(2, len(out))])
}

// Counts stand in the sidebar.
type Counts struct {
	GPUs    int
	Waiting int // GPUs that wait for a machine to stop
	VMs     int
}

// Notice is a sentence about what was just done, shown once above a page.
type Notice struct {
	Key  string // of its text, "notice.<...>"; empty: none
	Args map[string]any
	Tone components.Tone // empty: ok
}

func (n Notice) look() components.Look {
	switch n.Tone {
	case components.ToneBad:
		return components.Look{Tone: n.Tone, Icon: components.IconWarning}
	case components.ToneWait:
		return components.Look{Tone: n.Tone, Icon: components.IconClock}
	}
	return components.Look{Tone: components.ToneOK, Icon: components.IconCheck}
}

type entry struct {
	section Section
	url     string
	icon    components.Icon
	key     string
	count   int
	waiting int
}

func (s Shell) entries() []entry {
	all := []entry{
		{SectionOverview, urls.Home, components.IconOverview, "nav.overview", 0, 0},
		{SectionCatalog, urls.Catalog(urls.CatalogQuery{}), components.IconCatalog, "nav.catalog", 0, 0},
		{SectionGPUs, urls.GPUs(urls.GPUQuery{}), components.IconGPU, "nav.gpus", s.Counts.GPUs, s.Counts.Waiting},
		{SectionVMs, urls.VMs(urls.VMQuery{}), components.IconVM, "nav.vms", s.Counts.VMs, 0},
		{SectionLimits, urls.Quotas, components.IconGauge, "nav.quotas", 0, 0},
		{SectionActivity, urls.Activity(urls.ActivityQuery{}), components.IconActivity, "nav.activity", 0, 0},
	}
	return all
}

// operatorEntries are the pages of those who run the platform.
func (s Shell) operatorEntries() []entry {
	if !s.Admin {
		return nil
	}
	return []entry{
		{SectionFleet, urls.Admin, components.IconFleet, "nav.fleet", 0, 0},
		{SectionHosts, urls.AdminHosts, components.IconHost, "nav.hosts", 0, 0},
		{SectionCards, urls.AdminCards, components.IconChip, "nav.cards", 0, 0},
		{SectionCapacity, urls.AdminCapacity, components.IconLayers, "nav.capacity", 0, 0},
		{SectionOperations, urls.AdminOperations, components.IconRestart, "nav.operations", 0, 0},
		{SectionAccounts, urls.AdminAccounts, components.IconUser, "nav.accounts", 0, 0},
		{SectionQuotas, urls.AdminQuotas, components.IconGauge, "nav.all-quotas", 0, 0},
		{SectionModels, urls.AdminCatalog, components.IconBook, "nav.models", 0, 0},
		{SectionAgents, urls.AdminAgents, components.IconLink, "nav.agents", 0, 0},
		{SectionAudit, urls.AdminActivity, components.IconActivity, "nav.audit", 0, 0},
	}
}

// htmxConfig sets htmx for the whole console: answers of a broken server
// change nothing, Back loads the page anew.
const htmxConfig = `{"noSwap":[204,304,"5xx"],"history":"reload","includeIndicatorCSS":false,"sse":{"reconnectMaxDelay":8000}}`

// regionName is a region's name, or that of all regions.
func regionName(ctx context.Context, region string) string {
	if region == "" {
		return i18n.T(ctx, "layout.all-regions")
	}
	return region
}

// PageLink is a page of the console, as menus list it.
type PageLink struct {
	Key  string // of its name
	URL  string
	Icon components.Icon
}

// Pages lists the pages of the sidebar.
func (s Shell) Pages() []PageLink {
	var out []PageLink
	for _, e := range append(s.entries(), s.operatorEntries()...) {
		out = append(out, PageLink{e.key, e.url, e.icon})
	}
	return out
}
