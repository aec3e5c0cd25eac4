package capacity

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/web/i18n"
	"berth/web/urls"
	"berth/web/webtest"
)

func full() Page {
	return Page{
		Shell: webtest.Shell(), Range: "24h", Ranges: []string{"1h", "24h", "7d", "30d"}, Sizes: []int{1, 2, 4, 8}, Regions: []string{"r"}, Zones: []string{"a", "b"},
		Models: []string{"nvidia-l40"},
		Cells: []Cell{
			{Zone: "a", Model: "nvidia-l40", Free: 1, Held: 2, Unavailable: 1, Total: 4, Reasons: []Reason{
				{Key: "quarantined", Count: 1, State: "quarantined"}, {Key: "draining", Count: 1, State: "draining"},
			}},
			{Zone: "b", Model: "nvidia-l40", Total: 0}, {Zone: "b", Free: 0, Unavailable: 3, Total: 3},
		},
		Rooms: []Room{{Zone: "a", Model: "nvidia-l40", Machines: []int{1, 0, 0, 0}}},
	}
}

func TestTheHeatMapLeadsToTheCardsAndHostsThatItCounts(t *testing.T) {
	doc := webtest.Both(t, View(full()))
	cell := doc.Find(`td[data-zone=a][data-model="nvidia-l40"][data-free="1"][data-held="2"][data-unavailable="1"]`)
	for _, q := range []string{"/admin/cards?model=nvidia-l40&state=free&zone=a", "/admin/cards?model=nvidia-l40&state=held&zone=a",
		"/admin/cards?model=nvidia-l40&state=quarantined&zone=a", "/admin/hosts?model=nvidia-l40&state=draining&zone=a"} {
		if cell.Find(`a[href="`+q+`"]`).Length() != 1 {
			t.Errorf("nothing leads to %s", q)
		}
	}
	if doc.Find(`td[data-zone=b][data-model=""] a[href="/admin/cards?model=none&state=held&zone=b"]`).Length() != 1 {
		t.Error("cards of no known model have no list")
	}
	if doc.Find("td.heat-none").Length() != 1 {
		t.Errorf("%d cells are empty, want the one of zone a", doc.Find("td.heat-none").Length())
	}
	if text := webtest.Text(doc.Find(`tr[data-zone=a][data-model="nvidia-l40"] [data-size="1"]`)); text != "1" {
		t.Errorf("%q machines with one GPU could start, want 1", text)
	}
}

func TestHeatFollowsHowFullACellIs(t *testing.T) {
	for want, c := range map[string]Cell{"0": {}, "4": {Total: 3, Held: 3}, "2": {Total: 8, Free: 4, Held: 4}, "1": {Total: 4, Free: 3, Unavailable: 1}} {
		if got := c.heat(); got != want {
			t.Errorf("%+v has heat %s, want %s", c, got, want)
		}
	}
}

func TestEveryReasonAndRangeHasAName(t *testing.T) {
	p := full()
	for _, key := range []string{"missing", "quarantined", "disabled", "needs_review", "cleaning", "draining", "maintenance", "silent", "not-ready"} {
		p.Cells[0].Reasons = append(p.Cells[0].Reasons, Reason{Key: key, Count: 2, State: key})
	}
	for _, r := range p.Ranges {
		p.Range = r
		doc := webtest.Both(t, View(p))
		if doc.Find(`.pill[aria-current][href="/admin/capacity?range=`+r+`"]`).Length() != 1 {
			t.Errorf("%s is not shown as chosen", r)
		}
	}
}

func TestAFleetWithoutCardsShowsNoMap(t *testing.T) {
	doc := webtest.Both(t, View(Page{Shell: webtest.Shell(), Sizes: []int{1}}))
	if doc.Find("table.heat, svg.trend").Length() > 0 || doc.Find(".empty").Length() != 1 {
		t.Error("there is a map of nothing, or no word of what to do")
	}
}

func TestTheFiltersStayWithTheRange(t *testing.T) {
	p := full()
	p.Query = urls.ListQuery{Zone: "a", Model: "nvidia-l40"}
	doc := webtest.Both(t, View(p))
	if doc.Find(`.pill[href="/admin/capacity?model=nvidia-l40&zone=a&range=7d"]`).Length() != 1 || doc.Find(`input[type=hidden][name=range][value="24h"]`).Length() != 1 {
		t.Error("a range forgets the filters, or a filter the range")
	}
}

var number = regexp.MustCompile(`-?[0-9]+\.?[0-9]*`)

// Areas lie inside the drawing, each on top of the one before it.
func TestTheTrendStacksWithinItsFrame(t *testing.T) {
	hour := func(n int) time.Time { return webtest.Now.Add(time.Duration(n-24) * time.Hour) }
	for name, points := range map[string][]Point{
		"many":              {{At: hour(0), Free: 8}, {At: hour(6), Free: 4, Held: 4}, {At: hour(23), Held: 7, Unavailable: 1}},
		"one":               {{At: hour(23), Free: 1}},
		"older than it all": {{At: hour(-5), Free: 3, Held: 1}, {At: hour(30), Free: 3}},
	} {
		trend := Trend{Points: points, Since: hour(0), Until: webtest.Now}
		areas := trend.areas()
		if len(areas) != 3 {
			t.Fatalf("%s: %d areas, want 3", name, len(areas))
		}
		for _, a := range areas {
			for i, text := range number.FindAllString(a.D, -1) {
				v, err := strconv.ParseFloat(text, 64)
				if limit := []float64{chartWidth, chartHeight}[i%2]; err != nil || v < 0 || v > limit {
					t.Errorf("%s: %s of %s lies outside the frame: %v", name, text, a.Kind, err)
				}
			}
		}
	}
	if areas := (Trend{Points: []Point{{At: webtest.Now}}}).areas(); areas != nil {
		t.Errorf("nothing at all is drawn as %v", areas)
	}
}

func TestTheTrendIsSaidInWords(t *testing.T) {
	trend := Trend{Points: []Point{{Free: 7.6, Held: 1}, {Free: 2, Held: 6.4}}, Since: webtest.Now.Add(-time.Hour), Until: webtest.Now}
	doc := webtest.Both(t, Chart(trend))
	label := doc.Find("svg.trend").AttrOr("aria-label", "")
	for _, want := range []string{"1", "6", "8", "2"} {
		if !strings.Contains(label, want) {
			t.Errorf("%q does not say %s", label, want)
		}
	}
	if none := webtest.Render(t, Chart(Trend{}), i18n.French); none.Find("svg").Length() > 0 {
		t.Error("there is a drawing of nothing")
	}
}
