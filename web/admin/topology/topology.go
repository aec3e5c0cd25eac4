// Package topology draws where the cards of a host sit: sockets, NUMA nodes,
// PCIe switches, cards with their state and holder. The picture is an SVG with
// a table as its text twin.
package topology

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"berth/services"
	"berth/web/components"
	"berth/web/i18n"
)

// Node is a NUMA node of the host.
type Node struct {
	ID, Socket, VCores int
	MemoryMiB          int
}

// Card is a card of the host.
type Card struct {
	ID         services.CardID
	URL        string // of its page
	Model      string // empty: unknown to the catalogue
	PCIAddress string
	IOMMUGroup *int
	NUMANode   *int     // nil: unknown
	Driver     string   // empty: none
	Functions  int      // of its slot
	Parents    []string // from the root complex down; empty: unknown
	Status     services.CardCondition
	Reason     string            // of the status
	State      services.GPUState // of the GPU that holds it; empty: none, or built in
	Held       bool
	Holder     string // the machine, else the GPU; empty: nobody
	Account    string // whose it is
}

// Picture is a host laid out: all measures are in pixels.
type Picture struct {
	Width, Height int
	Nodes         []nodeBox
	Cards         []Card // as given, for the table
}

// Measures of the picture.
const (
	cardWidth   = 114
	cardHeight  = 150
	cardGap     = 12
	boxHeight   = 30
	switchWidth = 128
	cpuWidth    = 136
	level       = 26 // between a box and what is below it
	nodePadding = 18
	nodeTop     = 40 // above the CPU
	nodeGap     = 18
	maxWidth    = 1110
	narrowest   = 230
	rowCards    = 8 // in one row of a node
	margin      = 1 // for the strokes
)

type box struct{ X, Y, W, H int }

func (b box) middle() int { return b.X + b.W/2 }

func (b box) bottom() int { return b.Y + b.H }

type nodeBox struct {
	box
	ID, Socket, VCores int
	MemoryMiB          int
	Known              bool // else the cards whose node nobody knows
	CPU                box
	Branches           []branch
	Lines              []line
}

// branch is the cards under one switch, or one card under a root port of its own.
type branch struct {
	Switch bool
	Bridge string // address of the switch's bridge; empty: none
	box           // of the switch
	Cards  []cardBox
}

type cardBox struct {
	box
	Card
}

// line is a path of straight strokes.
type line struct{ D string }

// Build lays a host out. Nodes that are not listed are made from the cards.
func Build(nodes []Node, cards []Card) Picture {
	p := Picture{Cards: cards}
	x, y, rowHeight := margin, margin, 0
	for _, n := range group(nodes, cards) {
		n.layOut()
		if x > margin && x+n.W > maxWidth {
			x, y, rowHeight = margin, y+rowHeight+nodeGap, 0
		}
		n.move(x, y)
		p.Nodes = append(p.Nodes, n)
		x += n.W + nodeGap
		rowHeight = max(rowHeight, n.H)
		p.Width = max(p.Width, x-nodeGap+margin)
	}
	p.Height = y + rowHeight + margin
	return p
}

// group puts each card into its node and branch, in order.
func group(nodes []Node, cards []Card) []nodeBox {
	var boxes []nodeBox
	at := func(id *int) *nodeBox {
		for i := range boxes {
			if b := &boxes[i]; b.Known == (id != nil) && (id == nil || b.ID == *id) {
				return b
			}
		}
		b := nodeBox{Known: id != nil}
		if id != nil {
			b.ID, b.Socket = *id, *id
		}
		boxes = append(boxes, b)
		return &boxes[len(boxes)-1]
	}
	for _, n := range nodes {
		b := at(&n.ID)
		b.Socket, b.VCores, b.MemoryMiB = n.Socket, n.VCores, n.MemoryMiB
	}
	shared := bridges(cards)
	for _, c := range cards {
		at(c.NUMANode).add(c, shared)
	}
	slices.SortStableFunc(boxes, func(a, b nodeBox) int {
		if a.Known != b.Known {
			return cmp.Compare(strconv.FormatBool(b.Known), strconv.FormatBool(a.Known))
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return boxes
}

// bridges counts the cards below each bridge; the root complex is none.
func bridges(cards []Card) map[string]int {
	n := map[string]int{}
	for _, c := range cards {
		for _, p := range slices.Compact(slices.Sorted(slices.Values(below(c)))) {
			n[p]++
		}
	}
	return n
}

// below is the bridges above a card, without its root complex.
func below(c Card) []string {
	if len(c.Parents) == 0 {
		return nil
	}
	return c.Parents[1:]
}

// switchOf is the closest bridge that a card shares with another; empty: none.
func switchOf(c Card, shared map[string]int) string {
	for _, p := range slices.Backward(below(c)) {
		if shared[p] > 1 {
			return p
		}
	}
	return ""
}

func (n *nodeBox) add(c Card, shared map[string]int) {
	bridge := switchOf(c, shared)
	for i := range n.Branches {
		if b := &n.Branches[i]; b.Switch && b.Bridge == bridge {
			b.Cards = append(b.Cards, cardBox{Card: c})
			return
		}
	}
	n.Branches = append(n.Branches, branch{Switch: bridge != "", Bridge: bridge, Cards: []cardBox{{Card: c}}})
}

// layOut gives everything within the node its place, from the node's corner on.
func (n *nodeBox) layOut() {
	rows := n.rows()
	inner := narrowest
	for _, r := range rows {
		inner = max(inner, widthOf(r))
	}
	n.W = inner + 2*nodePadding
	n.CPU = box{X: (n.W - cpuWidth) / 2, Y: nodeTop, W: cpuWidth, H: boxHeight}
	y := n.CPU.bottom()
	for _, r := range rows {
		y = n.layRow(r, y)
	}
	n.H = y + nodePadding
}

// rows spreads the branches over rows of a bounded number of cards.
func (n *nodeBox) rows() [][]*branch {
	var rows [][]*branch
	count := rowCards
	for i := range n.Branches {
		b := &n.Branches[i]
		if count+len(b.Cards) > rowCards {
			rows, count = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], b)
		count += len(b.Cards)
	}
	return rows
}

func widthOf(row []*branch) int {
	w := -2 * cardGap
	for _, b := range row {
		w += b.width() + 2*cardGap
	}
	return w
}

func (b *branch) width() int {
	w := len(b.Cards)*(cardWidth+cardGap) - cardGap
	if b.Switch {
		w = max(w, switchWidth)
	}
	return w
}

// layRow places a row of branches below y, and gives its bottom.
func (n *nodeBox) layRow(row []*branch, y int) int {
	x := (n.W - widthOf(row)) / 2
	switches := slices.ContainsFunc(row, func(b *branch) bool { return b.Switch })
	cardsAt := y + level
	if switches {
		cardsAt += boxHeight + level
	}
	for _, b := range row {
		from := n.CPU.middle()
		if b.Switch {
			b.box = box{X: x + (b.width()-switchWidth)/2, Y: y + level, W: switchWidth, H: boxHeight}
			n.join(from, y, b.middle(), b.Y)
			from = b.middle()
		}
		at := x + (b.width()-(len(b.Cards)*(cardWidth+cardGap)-cardGap))/2
		for i := range b.Cards {
			c := &b.Cards[i]
			c.box = box{X: at, Y: cardsAt, W: cardWidth, H: cardHeight}
			top := y
			if b.Switch {
				top = b.bottom()
			}
			n.join(from, top, c.middle(), c.Y)
			at += cardWidth + cardGap
		}
		x += b.width() + 2*cardGap
	}
	return cardsAt + cardHeight
}

// join draws from a point down to another, with a level stretch between.
func (n *nodeBox) join(x, y, toX, toY int) {
	n.Lines = append(n.Lines, line{fmt.Sprintf("M%d %dV%dH%dV%d", x, y, y+level/2, toX, toY)})
}

// move puts the node to a place of the picture; its lines are drawn from its corner.
func (n *nodeBox) move(x, y int) { n.X, n.Y = x, y }

// label names a card for those who do not see it.
func (c Card) label(ctx context.Context) string {
	parts := []string{i18n.T(ctx, "topology.card", "Model", c.model(ctx), "Address", c.PCIAddress), c.state(ctx)}
	if c.Holder != "" {
		parts = append(parts, c.Holder)
	}
	parts = append(parts, c.group(ctx))
	return strings.Join(parts, ", ")
}

func (c Card) model(ctx context.Context) string {
	if c.Model == "" {
		return i18n.T(ctx, "cards.unknown-model")
	}
	return c.Model
}

// state is the word for what the card is doing.
func (c Card) state(ctx context.Context) string {
	switch {
	case c.Status != services.CardReady:
		return i18n.T(ctx, "condition."+string(c.Status))
	case c.State == services.GPUAllocated:
		return i18n.T(ctx, "topology.reserved")
	case c.State.Valid():
		return i18n.T(ctx, "state."+string(c.State))
	case c.Held:
		return i18n.T(ctx, "state.built-in")
	}
	return i18n.T(ctx, "topology.free")
}

// kind is the class of the card's colour and outline.
func (c Card) kind() string {
	switch {
	case c.Status == services.CardQuarantined || c.Status == services.CardMissing:
		return "bad"
	case c.Status == services.CardCleaning || c.Status == services.CardNeedsReview:
		return "wait"
	case c.Status != services.CardReady:
		return "held"
	case c.State == services.GPUAllocated || c.State == services.GPUAttaching || c.State == services.GPUDetaching:
		return "wait"
	case c.Held:
		return "ok"
	}
	return "free"
}

// second is the line below the state: who has it, or why it is out.
func (c Card) second() string {
	if c.Holder != "" {
		return c.Holder
	}
	return c.Reason
}

func (c Card) group(ctx context.Context) string {
	if c.IOMMUGroup == nil {
		return i18n.T(ctx, "topology.no-group")
	}
	return i18n.T(ctx, "topology.group", "Group", strconv.Itoa(*c.IOMMUGroup))
}

func (c Card) driver(ctx context.Context) string {
	if c.Driver == "" {
		return i18n.T(ctx, "topology.no-driver")
	}
	return c.Driver
}

// short leaves the ordinary domain out of an address.
func short(address string) string { return strings.TrimPrefix(address, "0000:") }

// most is how many letters fit on a line of a card.
const most = 15

func cut(text string) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most-1]) + "…"
}

func (n nodeBox) title(ctx context.Context) string {
	if !n.Known {
		return i18n.T(ctx, "topology.no-node")
	}
	return i18n.T(ctx, "topology.node", "Node", strconv.Itoa(n.ID))
}

func (n nodeBox) size(ctx context.Context) string {
	if n.VCores == 0 && n.MemoryMiB == 0 {
		return ""
	}
	return i18n.T(ctx, "topology.size", "VCores", n.VCores, "Memory", i18n.GiB(ctx, n.MemoryMiB))
}

func (c Card) look() components.Look { return components.ConditionLook(c.Status) }

// bridgeOf names what stands right above a card.
func bridgeOf(c Card) string {
	if len(c.Parents) == 0 {
		return "–"
	}
	return c.Parents[len(c.Parents)-1]
}

func number(n *int) string {
	if n == nil {
		return "–"
	}
	return strconv.Itoa(*n)
}

func cpuName(ctx context.Context, n nodeBox) string {
	if !n.Known {
		return i18n.T(ctx, "topology.root")
	}
	return i18n.T(ctx, "topology.cpu", "Socket", strconv.Itoa(n.Socket))
}
