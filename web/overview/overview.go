// Package overview is the page one starts from: what needs somebody now, what
// the account has, and what happened last.
package overview

import (
	"context"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Page is the whole overview, of the region looked at or of all.
type Page struct {
	layout.Shell
	Waiting    []Waiting             // GPUs that wait for a machine or its host
	Operations []components.Progress // stuck, failed, and under way
	Idle       []Idle                // GPUs that are held and used by nothing
	IdleMore   int                   // such GPUs beyond those listed
	Models     []ModelUse
	Machines   []PowerCount
	Events     []components.Happening
	Key        string // idempotency
}

// Waiting is a GPU whose attachment or detachment is planned.
type Waiting struct {
	ID         services.GPUID
	Name       string
	Model      string
	State      services.GPUState
	VM         services.VMID
	VMName     string
	Power      services.Power
	PowerSince time.Time
	OnHost     bool // the machine is stopped; its host has to confirm
	Overdue    bool // the host has had its time
	HostSilent bool
	Since      time.Time
}

// Idle is a GPU that is allocated and attached to nothing.
type Idle struct {
	ID    services.GPUID
	Name  string
	Model string
	Zone  string
	Since time.Time
}

// ModelUse is what the account has of a model in a region. Used counts GPUs of
// every kind against the quota; the states are those of flexible ones.
type ModelUse struct {
	Model                                     string
	Region                                    string
	Allocated, Attaching, Attached, Detaching int
	Used                                      int
	Max                                       *int // nil: unlimited
}

// PowerCount is how many machines are in a power state.
type PowerCount struct {
	Power services.Power
	Count int
}

// New reports whether the account has nothing yet.
func (p Page) New() bool { return p.gpus() == 0 && p.machines() == 0 && len(p.Operations) == 0 }

func (p Page) gpus() int {
	n := 0
	for _, m := range p.Models {
		n += m.Used
	}
	return n
}

func (p Page) machines() int {
	n := 0
	for _, m := range p.Machines {
		n += m.Count
	}
	return n
}

func (p Page) region() components.Region {
	return components.Region{
		ID: "overview", Fragment: urls.OverviewFragment,
		Events: []string{components.EventGPUs, components.EventVMs, components.EventActivity},
	}
}

// figure is a number at the top of the page.
type figure struct {
	count int
	url   string
	key   string
	tone  components.Tone
}

func (p Page) figures() []figure {
	var attached, waiting, allocated int
	for _, m := range p.Models {
		attached += m.Attached
		waiting += m.Attaching + m.Detaching
		allocated += m.Allocated
	}
	byState := func(state string) string { return urls.GPUs(urls.GPUQuery{State: state}) }
	return []figure{
		{attached, byState(string(services.GPUAttached)), "overview.attached", components.ToneOK},
		{waiting, byState("waiting"), "overview.waiting", components.ToneWait},
		{allocated, byState(string(services.GPUAllocated)), "overview.allocated", components.ToneHeld},
		{p.machines(), urls.VMs(urls.VMQuery{}), "overview.machines", components.ToneInfo},
	}
}

// stop is a machine that GPUs wait for.
type stop struct {
	first Waiting
	gpus  []Waiting
}

// stops gathers the waiting GPUs by machine: one stop serves all of them.
func (p Page) stops() []stop {
	var out []stop
	at := map[services.VMID]int{}
	for _, w := range p.Waiting {
		i, ok := at[w.VM]
		if !ok {
			i = len(out)
			at[w.VM] = i
			out = append(out, stop{first: w})
		}
		out[i].gpus = append(out[i].gpus, w)
	}
	return out
}

func (s stop) look() components.Look {
	if s.first.Overdue {
		return components.Look{Tone: components.ToneBad, Icon: components.IconWarning}
	}
	return components.Look{Tone: components.ToneWait, Icon: components.IconClock}
}

// restartable reports whether stopping and starting the machine ends the wait.
func (p Page) restartable(s stop) bool {
	if !p.CanWrite() || s.first.OnHost || s.first.Power != services.PowerRunning {
		return false
	}
	for _, o := range p.Operations {
		if o.VM == s.first.VM && o.Open() {
			return false
		}
	}
	return true
}

// why says what the machine's GPUs wait for.
func (s stop) why(ctx context.Context, now time.Time) string {
	switch {
	case s.first.HostSilent:
		return i18n.T(ctx, "overview.host-silent")
	case s.first.OnHost && s.first.Overdue:
		return i18n.T(ctx, "overview.host-overdue")
	case s.first.OnHost:
		return i18n.T(ctx, "overview.host-works")
	case s.first.Power == services.PowerRunning:
		return i18n.T(ctx, "overview.next-stop", "VM", s.first.VMName, "Time", i18n.Duration(ctx, now.Sub(s.first.PowerSince)))
	}
	return i18n.T(ctx, "overview.next-stop-soon", "VM", s.first.VMName)
}

// urgent are the operations that need somebody, and running those under way.
func (p Page) urgent() (urgent, running []components.Progress) {
	for _, o := range p.Operations {
		if o.State == services.OpRunning {
			running = append(running, o)
		} else {
			urgent = append(urgent, o)
		}
	}
	return urgent, running
}

// quiet reports whether nothing needs anybody.
func (p Page) quiet() bool { return len(p.Operations) == 0 && len(p.Waiting) == 0 && len(p.Idle) == 0 }

// bar draws a model's GPUs by state against the quota; GPUs that are built in
// stand with the attached ones.
func (m ModelUse) bar(ctx context.Context) components.Bar {
	total := m.Used
	if m.Max != nil {
		total = max(m.Used, *m.Max)
	}
	builtIn := max(0, m.Used-m.Allocated-m.Attaching-m.Attached-m.Detaching)
	return components.Bar{Label: m.words(ctx), Total: total, Parts: []components.BarPart{
		{Tone: components.ToneOK, Value: m.Attached + builtIn},
		{Tone: components.ToneWait, Value: m.Attaching + m.Detaching},
		{Tone: components.ToneHeld, Value: m.Allocated},
	}}
}

func (m ModelUse) words(ctx context.Context) string {
	if m.Max == nil {
		return i18n.T(ctx, "overview.used-unlimited", "Used", m.Used)
	}
	return i18n.T(ctx, "overview.used-of", "Used", m.Used, "Max", *m.Max)
}
