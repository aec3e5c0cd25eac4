package agents_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/web/admin/agents"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/urls"
	"berth/web/webtest"
)

// odd is a name that a URL, a selector and HTML each read differently.
const odd = `<b>a & "one" ?x#y`

func TestACertificateWarnsBeforeItExpires(t *testing.T) {
	tests := []struct {
		rule        string
		left        time.Duration
		tone, state string
	}{
		{"far off", 30 * 24 * time.Hour, "ok", "active"},
		{"five days are enough", 5 * 24 * time.Hour, "ok", "active"},
		{"less should have been renewed", 5*24*time.Hour - time.Second, "wait", "active"},
		{"this very second it is good", 0, "wait", "active"},
		{"past it", -time.Second, "bad", "expired"},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			doc := webtest.Both(t, agents.View(page(agents.Row{ID: "agent-00000001", ExpiresAt: webtest.Now.Add(tt.left)})))
			row := doc.Find(`tr[data-id="agent-00000001"]`)
			if diff := cmp.Diff([]string{tt.tone, tt.state}, []string{row.Find(".chip").AttrOr("data-tone", ""), row.AttrOr("data-state", "")}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARowSaysWhatAnAgentSaidLast(t *testing.T) {
	tests := []struct {
		rule string
		row  agents.Row
		want []string
	}{
		{"nothing yet", agents.Row{}, []string{"none yet", "0"}},
		{"today", agents.Row{Seen: webtest.Now}, []string{"14:02:31"}},
		{"on another day", agents.Row{Seen: webtest.Now.AddDate(0, 0, -2)}, []string{"29 Nov 2025, 14:02"}},
		{"that it is behind", agents.Row{Behind: 1234}, []string{"1,234"}},
		{"what differs", agents.Row{Drifts: 1, Hosts: 2345}, []string{"1 difference", "2,345"}},
		{"what it is", agents.Row{Version: odd, Driver: odd, Zone: odd}, []string{odd + " (" + odd + ")"}},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			tt.row.ID, tt.row.ExpiresAt = "agent-00000001", webtest.Now.Add(time.Hour)
			doc := webtest.Both(t, agents.View(page(tt.row)))
			text := webtest.Text(doc.Find("tbody tr"))
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q does not say %q", text, want)
				}
			}
			if doc.Find("#main b").Length() > 0 {
				t.Error("a text is taken for HTML")
			}
		})
	}
}

func TestARevocationSaysHowManyHostsItIsAbout(t *testing.T) {
	var rows []agents.Row
	for i := range 3 {
		rows = append(rows, agents.Row{ID: services.AgentID(fmt.Sprintf("agent-0000000%d", i)), Hosts: i, ExpiresAt: webtest.Now.Add(time.Hour)})
	}
	doc := webtest.Both(t, agents.View(page(rows...)))
	for i, want := range []string{"0 hosts are", "1 host is", "2 hosts are"} {
		panel := doc.Find("#revoke-" + string(rows[i].ID))
		if text := webtest.Text(panel); !strings.Contains(text, want) || !strings.Contains(text, string(rows[i].ID)) {
			t.Errorf("%q does not say %q, or of which agent", text, want)
		}
		if panel.Find(`form[method=post][action="`+urls.AgentRevoke(rows[i].ID)+`"] [name=confirm][value=true]`).Length() != 1 {
			t.Errorf("%s can't be revoked", rows[i].ID)
		}
	}
}

func TestTheFiltersOfAgentsStay(t *testing.T) {
	for _, state := range agents.States {
		p := page()
		p.Query = urls.ListQuery{Text: odd, Zone: odd, State: state}
		doc := webtest.Both(t, agents.View(p))
		var got []string
		for _, f := range doc.Find("form#agents select").EachIter() {
			chosen := f.Find("option[selected]")
			got = append(got, f.AttrOr("name", "")+"="+chosen.AttrOr("value", "-"))
			if strings.Contains(webtest.Text(chosen), "agents.") {
				t.Errorf("%q has no name", state)
			}
		}
		got = append(got, "q="+doc.Find("form#agents [name=q]").AttrOr("value", ""))
		if diff := cmp.Diff([]string{"zone=" + odd, "state=" + state, "q=" + odd}, got); diff != "" {
			t.Error(diff)
		}
		if doc.Find(`.empty a[href="/admin/agents"]`).Length() != 1 {
			t.Error("agents that are narrowed to none show no way back")
		}
	}
}

func TestAPlatformWithoutAgentsSaysHowTheyJoin(t *testing.T) {
	doc := webtest.Both(t, agents.View(page()))
	text := webtest.Text(doc.Find("#main"))
	for _, want := range []string{"No agents yet", "Make an enrolment token", "None is open.", "Nothing differs."} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if doc.Find("[data-token]").Length() > 0 || doc.Find("#new-token[open]").Length() > 0 {
		t.Error("there is a token that nobody asked for")
	}
}

func TestARefusedTokenKeepsWhatWasAsked(t *testing.T) {
	p := page()
	p.Asked = agents.Asked{Zone: "hikube-1", Life: "168h"}
	p.Broken = []services.Violation{{Field: "zone", Code: services.CodeRequired}, {Field: "life", Code: services.CodeRequired}}
	doc := webtest.Both(t, agents.View(p))
	form := doc.Find(`#new-token[open] form[action="` + urls.AdminTokens + `"]`)
	got := []string{form.Find("[name=zone] option[selected]").AttrOr("value", ""), form.Find("[name=life] option[selected]").AttrOr("value", "")}
	if diff := cmp.Diff([]string{"hikube-1", "168h"}, got); diff != "" {
		t.Error(diff)
	}
	links := doc.Find("#errors a")
	if links.Length() != 2 {
		t.Errorf("%d errors lead to a field, want 2", links.Length())
	}
	for _, a := range links.EachIter() {
		if target := a.AttrOr("href", ""); doc.Find(target).AttrOr("aria-invalid", "") != "true" {
			t.Errorf("%q leads to %q, where no field is wrong", webtest.Text(a), target)
		}
	}
}

func TestLivesAreNamedInBothLanguages(t *testing.T) {
	for l, want := range map[i18n.Locale][]string{i18n.English: {"1 hr", "1 day", "7 days"}, i18n.French: {"1 h", "1 jour", "7 jours"}} {
		var got []string
		for _, o := range webtest.Render(t, agents.View(page()), l).Find("select[name=life] option").EachIter() {
			got = append(got, webtest.Text(o))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", l, diff)
		}
	}
}

// The command is copied as it is: without a known address it names a place to fill in.
func TestTheCommandOfATokenIsWhole(t *testing.T) {
	for console, want := range map[string]string{
		"":                      "berth-agent run --console https://CONSOLE:8443 --token s3cret",
		"https://c.example:443": "berth-agent run --console https://c.example:443 --token s3cret",
	} {
		p := page()
		p.Console, p.Made = console, agents.Made{Secret: "s3cret", Zone: odd, Life: 168 * time.Hour}
		doc := webtest.Both(t, agents.View(p))
		if got := webtest.Text(doc.Find("[data-token] code").First()); got != want {
			t.Errorf("the command is %q, want %q", got, want)
		}
		if text := webtest.Text(doc.Find(".banner")); !strings.Contains(text, odd) || !strings.Contains(text, "7 days") || doc.Find("#main b").Length() > 0 {
			t.Errorf("it does not say for where and how long, or takes the zone for HTML: %q", text)
		}
		if strings.Contains(doc.Find("[data-live]").Text(), "s3cret") {
			t.Error("the part that changes by itself has the secret")
		}
	}
}

func TestTokensAndDifferencesStayText(t *testing.T) {
	p := page()
	p.Tokens = []agents.Token{{ID: "7", Zone: odd, By: odd, MadeAt: webtest.Now, ExpiresAt: webtest.Now.Add(-time.Hour)}}
	p.Drifts = []components.Drift{{Kind: "retired-card", Subject: odd, Detail: odd, Since: webtest.Now}, {Kind: "foreign-vm", Subject: odd, Since: webtest.Now}}
	doc := webtest.Both(t, agents.View(p))
	if text := webtest.Text(doc.Find(`li[data-id="7"]`)); strings.Count(text, odd) != 2 || !strings.Contains(text, "0 sec") {
		t.Errorf("the token says %q", text)
	}
	if label := doc.Find(`li[data-id="7"] button`).AttrOr("aria-label", ""); label != "Withdraw token 7" {
		t.Errorf("the button is called %q", label)
	}
	if doc.Find(`[data-count="2"] [data-drift]`).Length() != 2 || doc.Find("#main b").Length() > 0 {
		t.Error("a difference is missing, or a text is taken for HTML")
	}
}
