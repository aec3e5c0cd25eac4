package gpus

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
)

// edge is an arrow of the life cycle's drawing.
type edge struct {
	from, to services.GPUState
	plan     bool   // by somebody's wish; else by the machine's next stop
	cancel   bool   // takes a plan back
	path     string // the line
	head     string // where the arrow's head stands, and its turn
	text     string // key of the word at it
	x, y     string
	anchor   string
}

type node struct {
	state services.GPUState
	x, y  int // of its middle
}

// drawing is the life cycle on one of two grounds: wide, or narrow for phones.
type drawing struct {
	class, box    string
	width, height int // of a node
	nodes         []node
	edges         []edge
}

var wide = drawing{
	class: "cycle cycle-wide", box: "0 0 760 252", width: 152, height: 48,
	nodes: []node{
		{services.GPUAllocated, 92, 126}, {services.GPUAttaching, 380, 44}, {services.GPUAttached, 668, 126}, {services.GPUDetaching, 380, 208},
	},
	edges: []edge{
		{from: services.GPUAllocated, to: services.GPUAttaching, plan: true, path: "M92 100C92 62 150 38 294 38", head: "translate(302 38)", text: "cycle.attach", x: "160", y: "42", anchor: "end"},
		{from: services.GPUAttaching, to: services.GPUAllocated, cancel: true, path: "M322 70C292 100 246 114 178 116", head: "translate(170 116) rotate(180)", text: "cycle.cancel", x: "288", y: "122", anchor: "middle"},
		{from: services.GPUAttaching, to: services.GPUAttached, path: "M458 38C610 38 668 62 668 92", head: "translate(668 100) rotate(90)", text: "cycle.next-stop", x: "600", y: "42", anchor: "start"},
		{from: services.GPUAttached, to: services.GPUDetaching, plan: true, path: "M668 152C668 190 610 214 466 214", head: "translate(458 214) rotate(180)", text: "cycle.detach", x: "600", y: "220", anchor: "start"},
		{from: services.GPUDetaching, to: services.GPUAttached, cancel: true, path: "M438 182C468 152 514 138 582 136", head: "translate(590 136)", text: "cycle.cancel", x: "472", y: "138", anchor: "middle"},
		{from: services.GPUDetaching, to: services.GPUAllocated, path: "M302 214C150 214 92 190 92 160", head: "translate(92 152) rotate(-90)", text: "cycle.next-stop", x: "160", y: "220", anchor: "end"},
	},
}

var narrow = drawing{
	class: "cycle cycle-narrow", box: "0 0 340 372", width: 136, height: 44,
	nodes: []node{
		{services.GPUAllocated, 170, 28}, {services.GPUAttaching, 268, 186}, {services.GPUAttached, 170, 344}, {services.GPUDetaching, 72, 186},
	},
	edges: []edge{
		{from: services.GPUAllocated, to: services.GPUAttaching, plan: true, path: "M240 28C276 34 290 80 289 154", head: "translate(289 162) rotate(90)", text: "cycle.attach", x: "276", y: "96", anchor: "end"},
		{from: services.GPUAttaching, to: services.GPUAllocated, cancel: true, path: "M250 162C240 120 222 84 202 58", head: "translate(197 52) rotate(-128)", text: "cycle.cancel", x: "226", y: "132", anchor: "end"},
		{from: services.GPUAttaching, to: services.GPUAttached, path: "M289 210C290 292 276 338 248 344", head: "translate(240 344) rotate(180)", text: "cycle.next-stop", x: "278", y: "286", anchor: "end"},
		{from: services.GPUAttached, to: services.GPUDetaching, plan: true, path: "M100 344C64 338 50 292 51 218", head: "translate(51 210) rotate(-90)", text: "cycle.detach", x: "64", y: "286", anchor: "start"},
		{from: services.GPUDetaching, to: services.GPUAttached, cancel: true, path: "M90 210C100 252 118 288 138 314", head: "translate(143 320) rotate(52)", text: "cycle.cancel", x: "114", y: "250", anchor: "start"},
		{from: services.GPUDetaching, to: services.GPUAllocated, path: "M51 162C50 80 64 34 92 28", head: "translate(100 28)", text: "cycle.next-stop", x: "62", y: "96", anchor: "start"},
	},
}

func (d drawing) left(n node) string { return strconv.Itoa(n.x - d.width/2) }
func (d drawing) top(n node) string  { return strconv.Itoa(n.y - d.height/2) }
func (d drawing) w() string          { return strconv.Itoa(d.width) }
func (d drawing) h() string          { return strconv.Itoa(d.height) }
func (d drawing) radius() string     { return strconv.Itoa(d.height / 2) }
func (n node) cx() string            { return strconv.Itoa(n.x) }
func (n node) text() string          { return strconv.Itoa(n.y + 5) }

// place says how an arrow relates to the present state: the next step by
// itself, a step that can be taken, or neither.
func (e edge) place(now services.GPUState) string {
	switch {
	case e.from != now:
		return "far"
	case e.plan || e.cancel:
		return "open"
	}
	return "next"
}

// standing says in a sentence what the drawing shows.
func (p Page) standing(ctx context.Context) string {
	args := []any{"State", i18n.T(ctx, "state."+string(p.GPU.State))}
	if p.Machine != nil {
		args = append(args, "VM", p.Machine.Name)
	}
	key := "standing." + string(p.GPU.State)
	if p.Pending != nil && p.Pending.OnHost {
		key += "-on-host"
	}
	return i18n.T(ctx, key, args...)
}

// Span is a stretch of time in one state.
type Span struct {
	State services.GPUState
	From  time.Time
	To    time.Time
}

// Spans reads the states a GPU went through out of its events, which come
// newest first. The last span ends at end.
func Spans(events []components.Happening, end time.Time) []Span {
	var spans []Span
	for _, event := range slices.Backward(events) {
		state := services.GPUState(event.To)
		if !state.Valid() && event.To != "released" {
			continue
		}
		if n := len(spans); n > 0 {
			spans[n-1].To = event.At
		}
		if state.Valid() {
			spans = append(spans, Span{State: state, From: event.At, To: end})
		}
	}
	return spans
}

// stretch is a span on the strip, in percent of its width.
type stretch struct {
	Span
	x, width string
}

// leastShare keeps a span of seconds visible beside one of months, in percent.
const leastShare = 2.5

// strip places spans by their length, none narrower than can be seen.
func strip(spans []Span) []stretch {
	total := 0.0
	for _, s := range spans {
		total += s.To.Sub(s.From).Seconds()
	}
	shares, sum := make([]float64, len(spans)), 0.0
	for i, s := range spans {
		shares[i] = leastShare
		if total > 0 {
			shares[i] = max(leastShare, 100*s.To.Sub(s.From).Seconds()/total)
		}
		sum += shares[i]
	}
	out, at := make([]stretch, 0, len(spans)), 0.0
	for i, s := range spans {
		w := 100 * shares[i] / sum
		out = append(out, stretch{s, percent(at), percent(w)})
		at += w
	}
	return out
}

func percent(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + "%" }

// told is the strip in words.
func told(ctx context.Context, spans []Span) string {
	var text strings.Builder
	for i, s := range spans {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(i18n.T(ctx, "gpu.span", "State", i18n.T(ctx, "state."+string(s.State)), "Time", i18n.Duration(ctx, s.To.Sub(s.From))))
	}
	return text.String()
}
