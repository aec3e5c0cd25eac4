package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/web/i18n"
	"berth/web/webtest"
)

// hung makes cards that hang where their chains of bridges say.
func hung(chains ...[]string) []Card {
	var cards []Card
	for i, chain := range chains {
		id := fmt.Sprintf("card-%08x", i)
		cards = append(cards, Card{
			ID: services.CardID(id), URL: "/admin/cards/" + id, Model: "nvidia-l40", PCIAddress: fmt.Sprintf("0000:%02x:00.0", i), NUMANode: new(0),
			Status: services.CardReady, Parents: chain,
		})
	}
	return cards
}

// behind hangs n cards under as many switches as it takes with so many each.
func behind(n, each int) []Card {
	var chains [][]string
	for i := range n {
		chains = append(chains, []string{"pci0000:00", fmt.Sprintf("0000:%02x:00.0", 64+i/each), fmt.Sprintf("0000:%02x:01.0", 128+i)})
	}
	return hung(chains...)
}

// at changes the one card that a shape is about.
func at(change func(*Card)) []Card {
	cards := hung(nil)
	change(&cards[0])
	return cards
}

// shapes are hosts as they can be reported.
func shapes() map[string][]Card {
	return map[string][]Card{
		"a card without parents":        hung(nil),
		"a card below its root alone":   hung([]string{"pci0000:00"}),
		"a card of no known node":       at(func(c *Card) { c.NUMANode = nil }),
		"a card of node -1":             at(func(c *Card) { c.NUMANode = new(-1) }),
		"a card in domain 10000":        at(func(c *Card) { c.PCIAddress = "10000:e1:00.0" }),
		"a card in IOMMU group 0":       at(func(c *Card) { c.IOMMUGroup = new(0) }),
		"a card named at great length":  at(func(c *Card) { c.Model, c.Holder, c.Driver = long, long, long }),
		"a card named by markup":        at(func(c *Card) { c.Model, c.Holder, c.Driver, c.Account = "<b>m", "<b>h", "<b>d", "<b>a" }),
		"16 cards on 8 switches":        behind(16, 2),
		"16 cards on one switch":        behind(16, 16),
		"16 cards on no switch":         behind(16, 1),
		"a switch below another":        hung([]string{"r", "a", "b"}, []string{"r", "a", "b"}, []string{"r", "a"}),
		"a switch between two nodes":    append(behind(2, 2)[:1], across()),
		"cards with and without a node": append(behind(2, 2), at(func(c *Card) { c.ID, c.NUMANode = "card-0000000f", nil })...),
	}
}

var long = strings.Repeat("ÆW", 150)

// across hangs under the same switch as the first card of behind(2, 2), on another node.
func across() Card {
	c := behind(2, 2)[1]
	c.NUMANode = new(1)
	return c
}

// drawn reads the boxes of a class off the picture, at their places in it.
func drawn(t *testing.T, doc *goquery.Document, class string) []box {
	t.Helper()
	var boxes []box
	for _, s := range doc.Find("rect." + class).EachIter() {
		var x, y int
		if _, err := fmt.Sscanf(s.Closest("g").AttrOr("transform", ""), "translate(%d %d)", &x, &y); err != nil {
			t.Fatalf("a node stands nowhere: %v", err)
		}
		boxes = append(boxes, box{X: x + measure(t, s, "x"), Y: y + measure(t, s, "y"), W: measure(t, s, "width"), H: measure(t, s, "height")})
	}
	return boxes
}

func measure(t *testing.T, s *goquery.Selection, name string) int {
	t.Helper()
	n, err := strconv.Atoi(s.AttrOr(name, "0"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// ids are the cards that a selector finds, in order of their names.
func ids(doc *goquery.Document, selector string) []string {
	var out []string
	for _, s := range doc.Find(selector).EachIter() {
		out = append(out, s.AttrOr("data-id", ""))
	}
	slices.Sort(out)
	return out
}

func TestWhatIsDrawnStandsApartWithinThePicture(t *testing.T) {
	for name, cards := range shapes() {
		t.Run(name, func(t *testing.T) {
			doc := webtest.Both(t, Draw(Build([]Node{{ID: 0, VCores: 64, MemoryMiB: 1 << 20}}, cards)))
			var x, y, width, height int
			view := doc.Find("svg.topology-picture").AttrOr("viewbox", doc.Find("svg.topology-picture").AttrOr("viewBox", ""))
			if _, err := fmt.Sscanf(view, "%d %d %d %d", &x, &y, &width, &height); err != nil || x != 0 || y != 0 {
				t.Fatalf("the picture shows %q: %v", view, err)
			}
			apart(t, "ground", drawn(t, doc, "t-ground"), width, height)
			slots := drawn(t, doc, "t-slot")
			apart(t, "box", append(slots, drawn(t, doc, "t-box")...), width, height)
			if len(slots) != len(cards) {
				t.Errorf("%d cards are drawn, want %d", len(slots), len(cards))
			}
		})
	}
}

func TestThePictureAndTheTableShowTheSameCards(t *testing.T) {
	for name, cards := range shapes() {
		t.Run(name, func(t *testing.T) {
			p := Build(nil, cards)
			picture := webtest.Both(t, Panel(p, false, "/picture", "/table"))
			table := webtest.Both(t, Panel(p, true, "/picture", "/table"))
			var want []string
			for _, c := range cards {
				want = append(want, string(c.ID))
			}
			slices.Sort(want)
			for what, got := range map[string][]string{"picture": ids(picture, "a.t-card"), "table": ids(table, "tbody tr")} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the %s: %s", what, diff)
				}
			}
			if picture.Find("b").Length()+table.Find("td b").Length() > 0 {
				t.Error("a text is taken for HTML")
			}
		})
	}
}

// switches counts the switches that a host's cards hang under.
func switches(p Picture) int {
	n := 0
	for _, node := range p.Nodes {
		for _, b := range node.Branches {
			if b.Switch {
				n++
			}
		}
	}
	return n
}

func TestASwitchIsABridgeThatCardsShare(t *testing.T) {
	tests := []struct {
		rule  string
		cards []Card
		want  int
	}{
		{"two cards on a switch share it", behind(2, 2), 1},
		{"16 cards on 8 switches", behind(16, 2), 8},
		{"16 cards on one switch", behind(16, 16), 1},
		{"a port of its own is no switch", behind(16, 1), 0},
		{"a root complex is no switch", hung([]string{"pci0000:00"}, []string{"pci0000:00"}), 0},
		{"no parents, no switch", hung(nil, nil), 0},
		{"the closest of two", hung([]string{"r", "a", "b"}, []string{"r", "a", "b"}), 1},
		{"a bridge named twice is shared with nobody", hung([]string{"r", "a", "a"}), 0},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			if got := switches(Build(nil, tt.cards)); got != tt.want {
				t.Errorf("%d switches, want %d", got, tt.want)
			}
		})
	}
}

func TestNodesStandInOrderAndTheUnknownOneLast(t *testing.T) {
	cards := hung(nil, nil, nil)
	cards[0].NUMANode, cards[1].NUMANode, cards[2].NUMANode = nil, new(7), new(2)
	doc := webtest.Both(t, Draw(Build([]Node{{ID: 7, Socket: 1, VCores: 8, MemoryMiB: 1536}, {ID: 0}}, cards)))
	var got []string
	for _, s := range doc.Find(".t-node").EachIter() {
		got = append(got, webtest.Text(s.Find(".t-title"))+"; "+webtest.Text(s.ChildrenFiltered(".t-dim"))+"; "+webtest.Text(s.Find(".t-box + .t-text").First()))
	}
	want := []string{"NUMA node 0; ; CPU 0", "NUMA node 2; ; CPU 2", "NUMA node 7; 8 cores, 1.5 GiB; CPU 1", "NUMA node unknown; ; PCIe root"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTextsFitTheirCardAndTheLinkSaysThemWhole(t *testing.T) {
	c := at(func(c *Card) { c.Model, c.Holder, c.Driver, c.Reason = long, long, long, long })
	doc := webtest.Both(t, Draw(Build(nil, c)))
	for _, s := range doc.Find("a.t-card text.t-model, a.t-card text.t-text, a.t-card text.t-state").EachIter() {
		if n := utf8.RuneCountInString(s.Text()); n > most {
			t.Errorf("%q has %d letters, want %d at most", s.Text(), n, most)
		}
	}
	if title := doc.Find("a.t-card title").Text(); strings.Count(title, long) != 2 {
		t.Errorf("the link does not say the model and the holder: %q", title)
	}
	if webtest.Both(t, Table(Build(nil, c))).Find("td:contains('"+long+"')").Length() != 3 {
		t.Error("the table cuts the model, the driver or the holder")
	}
}

func TestALinkSaysWhatIsWhereDoingWhatForWhom(t *testing.T) {
	free := Card{Model: "nvidia-l40", PCIAddress: "0000:01:00.0", IOMMUGroup: new(0), Status: services.CardReady}
	held := Card{PCIAddress: "10000:e1:00.0", Status: services.CardReady, State: services.GPUAttached, Held: true, Holder: "render <1>"}
	tests := []struct {
		locale i18n.Locale
		card   Card
		want   string
	}{
		{i18n.English, free, "nvidia-l40 at 0000:01:00.0, free, IOMMU group 0"},
		{i18n.French, free, "nvidia-l40 en 0000:01:00.0, libre, Groupe IOMMU 0"},
		{i18n.English, held, "unknown model at 10000:e1:00.0, attached, render <1>, no IOMMU group"},
		{i18n.French, held, "modèle inconnu en 10000:e1:00.0, attaché, render <1>, sans groupe IOMMU"},
	}
	for _, tt := range tests {
		got := webtest.Text(webtest.Render(t, Draw(Build(nil, []Card{tt.card})), tt.locale).Find("a.t-card title"))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.locale, diff)
		}
	}
}

func TestACardShowsWhatItIsDoing(t *testing.T) {
	held := func(s services.GPUState) Card { return Card{Status: services.CardReady, Held: true, State: s} }
	tests := []struct {
		rule, kind, word string
		card             Card
	}{
		{"nobody has it", "free", "free", Card{Status: services.CardReady}},
		{"it is wiped", "wait", "cleaning", Card{Status: services.CardCleaning}},
		{"wiping it failed", "bad", "quarantined", Card{Status: services.CardQuarantined}},
		{"an operator took it out", "held", "disabled", Card{Status: services.CardDisabled}},
		{"no report has it", "bad", "missing", Card{Status: services.CardMissing}},
		{"somebody has to look at it", "wait", "needs review", Card{Status: services.CardNeedsReview}},
		{"it is gone for good", "held", "retired", Card{Status: services.CardRetired}},
		{"a GPU without a machine reserves it", "wait", "reserved", held(services.GPUAllocated)},
		{"its GPU is on its way in", "wait", "attaching", held(services.GPUAttaching)},
		{"its GPU is on its way out", "wait", "detaching", held(services.GPUDetaching)},
		{"its GPU is on a machine", "ok", "attached", held(services.GPUAttached)},
		{"a machine has it built in", "ok", "built in", held("")},
		{"its condition outweighs its holder", "bad", "missing", Card{Status: services.CardMissing, Held: true, State: services.GPUAttached}},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			link := webtest.Both(t, Draw(Build(nil, []Card{tt.card}))).Find("a.t-card")
			if diff := cmp.Diff([]string{tt.kind, tt.word}, []string{link.AttrOr("data-kind", ""), webtest.Text(link.Find(".t-state"))}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
