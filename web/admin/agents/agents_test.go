package agents_test

import (
	"strings"
	"testing"
	"time"

	"berth/services"
	"berth/web/admin/agents"
	"berth/web/components"
	"berth/web/urls"
	"berth/web/webtest"
)

func page(rows ...agents.Row) agents.Page {
	return agents.Page{
		Shell: webtest.Shell(), Listing: components.Listing{Path: urls.AdminAgents, Shown: len(rows), Total: len(rows)}, Rows: rows,
		Zones: []string{"eu-west-2a", "hikube-1"}, Console: "https://console.example.test:8443",
	}
}

func TestAgentsSayHowFarTheyAreTrusted(t *testing.T) {
	doc := webtest.Both(t, agents.View(page(
		agents.Row{ID: "agent-00000001", Zone: "eu-west-2a", Version: "<b>1", Driver: "sim", Hosts: 3, Seen: webtest.Now, ExpiresAt: webtest.Now.Add(30 * 24 * time.Hour)},
		agents.Row{ID: "agent-00000002", Behind: 4, Drifts: 2, ExpiresAt: webtest.Now.Add(time.Hour)},
		agents.Row{ID: "agent-00000003", ExpiresAt: webtest.Now.Add(-time.Hour)},
		agents.Row{ID: "agent-00000004", ExpiresAt: webtest.Now.Add(time.Hour), RevokedAt: webtest.Now},
	)))
	for id, want := range map[string]string{"agent-00000001": "ok", "agent-00000002": "wait", "agent-00000003": "bad", "agent-00000004": "held"} {
		if got := doc.Find(`tr[data-id="`+id+`"] .chip`).AttrOr("data-tone", ""); got != want {
			t.Errorf("the certificate of %s looks %q, want %q", id, got, want)
		}
	}
	for id, want := range map[string]string{"agent-00000003": "expired", "agent-00000004": "revoked"} {
		if doc.Find(`tr[data-id="`+id+`"][data-state="`+want+`"]`).Length() != 1 {
			t.Errorf("%s is not shown as %s", id, want)
		}
	}
	if doc.Find(`form[action="`+urls.AgentRevoke("agent-00000001")+`"]`).Length() != 1 || doc.Find(`form[action="`+urls.AgentRevoke("agent-00000004")+`"]`).Length() != 0 {
		t.Error("what is trusted can't be revoked, or what is revoked can")
	}
	if doc.Find("td b").Length() > 0 {
		t.Error("a version is taken for HTML")
	}
}

// A secret that the live part held would be swept away by its next refresh.
func TestASecretStandsBesideThePartThatRefreshes(t *testing.T) {
	p := page()
	p.Made = agents.Made{Secret: "berth-enrol-v1.abc", Zone: "hikube-1", Life: time.Hour}
	doc := webtest.Both(t, agents.View(p))
	token := doc.Find(`[data-token="berth-enrol-v1.abc"]`)
	if token.Length() != 1 || token.Closest("[data-live]").Length() > 0 {
		t.Errorf("%d tokens, inside the live part: %v", token.Length(), token.Closest("[data-live]").Length() > 0)
	}
	if text := webtest.Text(token); !strings.Contains(text, "https://console.example.test:8443") || !strings.Contains(text, "berth-enrol-v1.abc") {
		t.Errorf("the command is %q", text)
	}
}

func TestOpenTokensCanBeWithdrawnAndShowNoSecret(t *testing.T) {
	p := page()
	p.Tokens = []agents.Token{{ID: "12", Zone: "hikube-1", By: "olga@lab.test", MadeAt: webtest.Now, ExpiresAt: webtest.Now.Add(time.Hour)}}
	p.Drifts = []components.Drift{{Kind: "foreign-card", Subject: "<i>", Since: webtest.Now, Agent: "agent-00000001"}}
	p.Broken = []services.Violation{{Field: "zone", Code: services.CodeRequired}}
	doc := webtest.Both(t, agents.View(p))
	for _, want := range []string{
		`li[data-id="12"] form[action="` + urls.TokenRevoke("12") + `"]`, `li[data-id="12"] time[data-time=remaining]`, `#drifts [data-drift="foreign-card"]`,
		`#new-token[open]`, `[data-error=required][data-field=zone]`,
	} {
		if doc.Find(want).Length() != 1 {
			t.Errorf("%d match %s", doc.Find(want).Length(), want)
		}
	}
	for _, life := range agents.Lives {
		if doc.Find(`select[name=life] option[value="`+life+`"]`).Length() != 1 {
			t.Errorf("%s can't be chosen", life)
		}
	}
}
