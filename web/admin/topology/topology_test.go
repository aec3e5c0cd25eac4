package topology

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth/services"
	"berth/web/webtest"
)

// within reports whether a box lies inside another's measures.
func within(b box, width, height int) bool {
	return b.X >= 0 && b.Y >= 0 && b.X+b.W <= width && b.bottom() <= height
}

func overlap(a, b box) bool {
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.bottom() && b.Y < a.bottom()
}

// apart fails where boxes overlap or stick out.
func apart(t interface{ Errorf(string, ...any) }, what string, boxes []box, width, height int) {
	for i, b := range boxes {
		if !within(b, width, height) {
			t.Errorf("%s: box %+v sticks out of %d x %d", what, b, width, height)
		}
		for _, other := range boxes[:i] {
			if overlap(b, other) {
				t.Errorf("%s: %+v and %+v overlap", what, b, other)
			}
		}
	}
}

func sound(t interface{ Errorf(string, ...any) }, p Picture) (cards int) {
	var nodes []box
	for _, n := range p.Nodes {
		nodes = append(nodes, n.box)
		parts := []box{n.CPU}
		for _, b := range n.Branches {
			if b.Switch {
				parts = append(parts, b.box)
			}
			for _, c := range b.Cards {
				parts = append(parts, c.box)
			}
			cards += len(b.Cards)
		}
		apart(t, "node", parts, n.W, n.H)
	}
	apart(t, "picture", nodes, p.Width, p.Height)
	return cards
}

// dgx is a host of eight cards in pairs under switches, on two sockets.
func dgx() ([]Node, []Card) {
	nodes := []Node{{ID: 0, Socket: 0, VCores: 64, MemoryMiB: 1 << 20}, {ID: 1, Socket: 1, VCores: 64, MemoryMiB: 1 << 20}}
	var cards []Card
	for i := range 8 {
		node := i / 4
		cards = append(cards, Card{
			ID: services.CardID(fmt.Sprintf("card-0000000%d", i)), URL: fmt.Sprintf("/admin/cards/card-0000000%d", i), Model: "nvidia-h100",
			PCIAddress: fmt.Sprintf("0000:%d7:00.0", i), NUMANode: &node, IOMMUGroup: &i, Status: services.CardReady, Driver: "vfio-pci", Functions: 1,
			Parents: []string{fmt.Sprintf("pci0000:%d0", node), fmt.Sprintf("0000:%d0:01.0", i/2), fmt.Sprintf("0000:%d1:0%d.0", i/2, i%2)},
		})
	}
	return nodes, cards
}

func TestCardsBehindOneSwitchHangUnderIt(t *testing.T) {
	p := Build(dgx())
	if n := sound(t, p); n != 8 {
		t.Errorf("%d cards, want 8", n)
	}
	if len(p.Nodes) != 2 || len(p.Nodes[0].Branches) != 2 || !p.Nodes[0].Branches[0].Switch || len(p.Nodes[0].Branches[0].Cards) != 2 {
		t.Errorf("nodes %+v, want two of two switches with two cards each", p.Nodes)
	}
}

// Whatever a host reports: each card stands once, nothing overlaps, nothing sticks out.
func TestNoReportBreaksThePicture(t *testing.T) {
	parent := rapid.SampledFrom([]string{"", "pci0000:00", "0000:00:01.0", "0000:01:00.0", "0000:02:08.0", "<b>", "10000:e0:01.0"})
	rapid.Check(t, func(t *rapid.T) {
		var nodes []Node
		for i := range rapid.IntRange(0, 9).Draw(t, "nodes") {
			nodes = append(nodes, Node{ID: i, Socket: i / 2, VCores: 8})
		}
		var cards []Card
		for i := range rapid.IntRange(0, 40).Draw(t, "cards") {
			c := Card{ID: services.CardID(fmt.Sprintf("card-%08x", i)), PCIAddress: "0000:01:00.0", Status: services.CardReady}
			if node := rapid.IntRange(-2, 9).Draw(t, "node"); node > -2 {
				c.NUMANode = &node
			}
			c.Parents = rapid.SliceOfN(parent, 0, 6).Draw(t, "parents")
			cards = append(cards, c)
		}
		if n := sound(t, Build(nodes, cards)); n != len(cards) {
			t.Errorf("%d cards are drawn, want %d", n, len(cards))
		}
	})
}

func odd() []Card {
	long := strings.Repeat("w", 300)
	return []Card{
		{ID: "card-00000001", URL: "/admin/cards/card-00000001", PCIAddress: "10000:e1:00.0", Status: services.CardNeedsReview, Reason: "<script>" + long},
		{ID: "card-00000002", URL: "/admin/cards/card-00000002", Model: "<b>" + long, PCIAddress: "0000:01:00.0", Driver: "<i>", Status: services.CardReady,
			Held: true, Holder: long, Account: "<u>", Parents: []string{"<p>", "<p>"}},
		{ID: "card-00000003", URL: "/admin/cards/card-00000003", Model: "nvidia-l40", PCIAddress: "0000:02:00.0", Status: services.CardReady, Held: true,
			State: services.GPUAllocated, Holder: "render"},
	}
}

func TestThePictureNamesEveryCardAndLeadsToIt(t *testing.T) {
	_, eight := dgx()
	for name, cards := range map[string][]Card{"eight": eight, "odd": odd()} {
		t.Run(name, func(t *testing.T) {
			doc := webtest.Both(t, Panel(Build(nil, cards), false, "/picture", "/table"))
			for _, c := range cards {
				link := doc.Find(fmt.Sprintf("a.t-card[data-id=%q]", c.ID))
				if link.Length() != 1 || link.AttrOr("href", "") != c.URL || !strings.Contains(link.Find("title").Text(), c.PCIAddress) {
					t.Errorf("%d links to %s, with the title %q", link.Length(), c.ID, link.Find("title").Text())
				}
			}
			if doc.Find("script, b, i, u, p").Length() > 0 {
				t.Error("a text is taken for HTML")
			}
			if doc.Find(`.pill[aria-current][href="/picture"]`).Length() != 1 {
				t.Error("it does not say that this is the picture")
			}
		})
	}
}

func TestTheTableSaysWhatThePictureShows(t *testing.T) {
	cards := odd()
	doc := webtest.Both(t, Panel(Build(nil, cards), true, "/picture", "/table"))
	for _, c := range cards {
		row := doc.Find(fmt.Sprintf("tr[data-id=%q][data-state=%q]", c.ID, c.Status))
		if row.Length() != 1 || row.Find(fmt.Sprintf("a[href=%q]", c.URL)).Length() != 1 || !strings.Contains(row.Text(), c.PCIAddress) || !strings.Contains(row.Text(), c.Holder) {
			t.Errorf("the row of %s says %q", c.ID, webtest.Text(row))
		}
	}
	if doc.Find("svg.topology-picture, td b, td i, td u").Length() > 0 {
		t.Error("it is no table, or takes a text for HTML")
	}
}

func TestAHostWithoutCardsSaysSo(t *testing.T) {
	doc := webtest.Both(t, Panel(Build([]Node{{ID: 0}}, nil), false, "/picture", "/table"))
	if doc.Find("svg.topology-picture").Length() > 0 || doc.Find("p.dim").Length() != 1 {
		t.Error("there is a picture of nothing")
	}
}
