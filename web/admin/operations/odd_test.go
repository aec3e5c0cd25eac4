package operations_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/web/admin/operations"
	"berth/web/i18n"
	"berth/web/urls"
	"berth/web/webtest"
)

// odd is a name that a URL, a selector and HTML each read differently.
const odd = `<b>a & "one" ?x#y`

var (
	kinds = []services.OperationKind{
		services.OpCreate, services.OpStart, services.OpStop, services.OpReboot, services.OpStopStart, services.OpResize, services.OpDelete,
	}
	states = []services.OperationState{services.OpRunning, services.OpStuck, services.OpDone, services.OpFailed, services.OpCancelled}
	steps  = []string{"halt", "settle", "convert", "boot", "reboot", "remove"}
)

func TestEveryKindInEveryStateIsSaidInWords(t *testing.T) {
	var rows []operations.Row
	for i, kind := range kinds {
		for j, state := range states {
			rows = append(rows, row(services.OperationID(fmt.Sprintf("op-%04d%04d", i, j)), kind, state))
		}
	}
	for _, l := range i18n.Locales {
		doc := webtest.Render(t, operations.View(list(urls.ListQuery{}, rows...)), l)
		for _, r := range rows {
			tr := doc.Find(fmt.Sprintf("tr[data-id=%q][data-state=%q]", r.ID, r.State))
			what, state := webtest.Text(tr.Find("td:first-child .row-name")), webtest.Text(tr.Find(fmt.Sprintf(".chip[data-state=%q]", r.State)))
			if !strings.Contains(what, "<b>render") || len(what) <= len("<b>render") || state == "" {
				t.Errorf("%s: %s that is %s reads %q, %q", l, r.Kind, r.State, what, state)
			}
		}
	}
}

func TestARowSaysAtWhichStepItIs(t *testing.T) {
	tests := []struct {
		rule  string
		steps []string
		at    int
		want  string
	}{
		{"the first", steps, 0, "Stop the machine"}, {"one of them", steps, 3, "Start the machine"}, {"the last", steps, 5, "Remove it from its host"},
		{"the last, where all are done", steps, len(steps), "Remove it from its host"}, {"none, where there are none", nil, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			r := row("op-00000001", services.OpStopStart, services.OpRunning)
			r.Steps, r.At = tt.steps, tt.at
			doc := webtest.Both(t, operations.View(list(urls.ListQuery{}, r)))
			if diff := cmp.Diff(tt.want, webtest.Text(doc.Find(`tr[data-id="op-00000001"] td:nth-child(3) .block`))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryStepHasWords(t *testing.T) {
	for _, step := range steps {
		r := row("op-00000001", services.OpStopStart, services.OpRunning)
		r.Steps = []string{step}
		for _, l := range i18n.Locales {
			text := webtest.Text(webtest.Render(t, operations.View(list(urls.ListQuery{}, r)), l).Find("tbody td:nth-child(3) .block"))
			if text == "" || strings.Contains(text, "step.") {
				t.Errorf("%s: %s reads %q", l, step, text)
			}
		}
	}
}

func TestARowSaysWhyItIsStuckAndWhatTheHostSays(t *testing.T) {
	tests := []struct {
		rule, reason, problem, detail string
		want                          []string
	}{
		{"nothing is known", "", "", "", nil},
		{"a known reason", "powered-off", "", "", []string{"The machine was powered off from inside, or crashed."}},
		{"a reason of a newer console", "of-tomorrow", "", "", []string{"of-tomorrow"}},
		{"a broken rule", "error.no-capacity", "", "", []string{"No host has the cores, the memory and the cards free at the moment. Try another zone, or again later."}},
		{"a rule of a newer console", "error.of-tomorrow", "", "", []string{"This is not possible (of-tomorrow)."}},
		{"the host's problem with the reason", "host-failed", odd, "", []string{"The host gave up. " + odd}},
		{"the host's problem alone", "", odd, "", []string{odd}},
		{"its last words instead of its problem", "host-failed", "problem", odd, []string{"The host gave up.", odd}},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			r := row("op-00000001", services.OpStart, services.OpStuck)
			r.Reason, r.Problem, r.Detail = tt.reason, tt.problem, tt.detail
			doc := webtest.Both(t, operations.View(list(urls.ListQuery{}, r)))
			var got []string
			for _, s := range doc.Find(`tr[data-id="op-00000001"] .why`).EachIter() {
				got = append(got, webtest.Text(s))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if doc.Find("td b").Length() > 0 {
				t.Error("a text is taken for HTML")
			}
		})
	}
}

func TestADeadlineShowsWhileItIsAhead(t *testing.T) {
	tests := []struct {
		rule  string
		state services.OperationState
		left  time.Duration
		want  int
	}{
		{"running, ahead", services.OpRunning, time.Minute, 1}, {"running, past", services.OpRunning, -time.Minute, 0},
		{"stuck", services.OpStuck, time.Minute, 0}, {"done", services.OpDone, time.Minute, 0},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			r := row("op-00000001", services.OpStart, tt.state)
			r.Deadline = webtest.Now.Add(tt.left)
			if n := webtest.Both(t, operations.View(list(urls.ListQuery{}, r))).Find("time[data-time=remaining]").Length(); n != tt.want {
				t.Errorf("%d deadlines, want %d", n, tt.want)
			}
		})
	}
}

func TestOddNamesOfOperationsStayText(t *testing.T) {
	long := odd + strings.Repeat("w", 400)
	r := row("op-00000001", services.OpStart, services.OpStuck)
	r.VMName, r.AccountName, r.HostName, r.Zone, r.Actor = long, long, long, long, long
	l := list(urls.ListQuery{Account: "acc-00000001", Zone: long, Text: long}, r)
	l.Owner = long
	doc := webtest.Both(t, operations.View(l))
	if n := strings.Count(doc.Find("tbody").Text(), long); n != 5 {
		t.Errorf("%d names stand in full, want 5", n)
	}
	if doc.Find("#main b").Length() > 0 {
		t.Error("a name is taken for HTML")
	}
	for _, action := range []string{"Retry", "Cancel"} {
		if doc.Find("td form button").FilterFunction(func(_ int, s *goquery.Selection) bool {
			return s.AttrOr("aria-label", "") == action+" for "+long
		}).Length() != 1 {
			t.Errorf("nothing is called %s for the machine", action)
		}
	}
}

func TestTheAccountCanBeTakenOutOfTheQuery(t *testing.T) {
	q := urls.ListQuery{Account: "acc-00000001", State: "stuck", Zone: "z", Text: "render", After: "op-00000009"}
	doc := webtest.Both(t, operations.View(list(q, row("op-00000001", services.OpStart, services.OpStuck))))
	if got := doc.Find(".only a").AttrOr("href", ""); got != "/admin/operations?q=render&state=stuck&zone=z" {
		t.Errorf("it leads to %q", got)
	}
	for name, want := range map[string]string{"account": "acc-00000001", "state": "stuck"} {
		if doc.Find(`form#operations [type=hidden][name=`+name+`]`).AttrOr("value", "") != want {
			t.Errorf("searching forgets the %s", name)
		}
	}
	for _, want := range []string{
		`[data-state-filter=failed][href="/admin/operations?account=acc-00000001&q=render&state=failed&zone=z"]`,
		`a.sorter[href="/admin/operations?account=acc-00000001&q=render&sort=created&state=stuck&zone=z"]`,
	} {
		if doc.Find(want).Length() != 1 {
			t.Errorf("%d match %s", doc.Find(want).Length(), want)
		}
	}
	all := list(urls.ListQuery{})
	all.Owner = ""
	if webtest.Both(t, operations.View(all)).Find(".only").Length() > 0 {
		t.Error("all accounts are shown as one")
	}
}

func TestAListOfNoOperationsSaysSo(t *testing.T) {
	for what, c := range map[string]struct {
		query urls.ListQuery
		want  string
	}{
		"nothing happened": {urls.ListQuery{}, "Nothing is under way"}, "nothing matches": {urls.ListQuery{State: "stuck"}, "Nothing matches"},
	} {
		doc := webtest.Both(t, operations.View(list(c.query)))
		if text := webtest.Text(doc.Find(".empty")); !strings.Contains(text, c.want) || doc.Find("tbody").Length() > 0 {
			t.Errorf("%s: it says %q", what, text)
		}
	}
}
