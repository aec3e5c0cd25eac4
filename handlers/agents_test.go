package handlers_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"berth/services"
	"berth/services/agentapi"
)

// refused checks a refusal of the agents' listener.
func refused(t *testing.T, status int, body []byte, wantStatus int, wantCode string) {
	t.Helper()
	var r agentapi.Refusal
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if status != wantStatus || r.Code != wantCode || r.Message == "" {
		t.Errorf("got %d %+v, want %d %s", status, r, wantStatus, wantCode)
	}
}

func TestAgentsAreLetInByTokenAndCertificateOnly(t *testing.T) {
	w := newWorld(t)
	h := w.enrol("eu-west-2a")
	h.work()
	nobody := &host{w: w, client: stranger(), key: h.key}
	for _, path := range []string{agentapi.PathRenew, agentapi.PathReport} {
		status, body := nobody.call(http.MethodPost, path, map[string]any{})
		refused(t, status, body, http.StatusUnauthorized, agentapi.RefusalUnauthorized)
	}
	status, body := nobody.send(http.MethodGet, agentapi.PathDesired, nil)
	refused(t, status, body, http.StatusUnauthorized, agentapi.RefusalUnauthorized)
	status, body = nobody.call(http.MethodPost, agentapi.PathEnrol, agentapi.EnrolRequest{Token: "berth-enrol-v1.abc.def", CSR: h.request()})
	refused(t, status, body, http.StatusUnauthorized, agentapi.RefusalUnauthorized)
	status, body = nobody.call(http.MethodPost, agentapi.PathEnrol, agentapi.EnrolRequest{Token: "nonsense", CSR: h.request()})
	refused(t, status, body, http.StatusBadRequest, agentapi.RefusalBadRequest)
	status, body = h.send(http.MethodGet, "/gpus", nil)
	refused(t, status, body, http.StatusNotFound, agentapi.RefusalBadRequest)
}

func TestAnAgentRenewsItsCertificate(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	status, body := h.call(http.MethodPost, agentapi.PathRenew, agentapi.RenewRequest{CSR: h.request()})
	if status != http.StatusOK {
		t.Fatalf("renew: %d %s", status, body)
	}
	var c agentapi.Certificate
	w.must(json.Unmarshal(body, &c))
	if c.Certificate == h.cert.Certificate || c.AgentID != h.cert.AgentID {
		t.Errorf("got %+v", c)
	}
	h.work() // the old one is good until the new one is used
	h.use(c)
	h.work()
	status, body = h.call(http.MethodPost, agentapi.PathRenew, agentapi.RenewRequest{CSR: "nonsense"})
	refused(t, status, body, http.StatusBadRequest, agentapi.RefusalBadRequest)
}

func TestGarbageChangesNothingAndIsFlagged(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	gpu := w.signIn(alice).post("/gpus", "model", "nvidia-l40", "zone", "eu-west-2a").leads("/gpus/")
	for name, body := range map[string]string{
		"empty": "", "no JSON": "\x00\xff", "an array": "[]", "cut short": `{"epoch":1,`, "trailing": `{"epoch":1} {"epoch":2}`,
		"wrong types": `{"epoch":"one"}`, "too deep": strings.Repeat("[", 20000), "NUL": `{"epoch":9,"sequence":1,"hosts":[{"name":"a\u0000","generation":"v7"}]}`,
		"huge numbers": `{"epoch":1e400}`, "nothing in it": `{}`, "null": `null`,
	} {
		status, answer := h.send(http.MethodPost, agentapi.PathReport, []byte(body))
		if status != http.StatusBadRequest {
			t.Errorf("%s: got %d %s, want 400", name, status, answer)
		}
	}
	status, body := h.send(http.MethodPost, agentapi.PathReport, []byte(`{"hosts":"`+strings.Repeat("x", 5<<20)+`"}`))
	refused(t, status, body, http.StatusRequestEntityTooLarge, agentapi.RefusalTooLarge)

	o, err := w.fleet.Overview(t.Context())
	w.must(err)
	if len(o.Drifts) != 1 || o.Drifts[0].Kind != "broken-report" {
		t.Errorf("got drifts %+v, want one broken report", o.Drifts)
	}
	if o.Inventory[0].Held != 1 {
		t.Errorf("got %+v, want the GPU held", o.Inventory)
	}
	w.signIn(alice).get(gpu).has(`[data-state="allocated"]`)
	h.work()
}

func TestABackslashBeforeTheDigitsIsNoNUL(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	_, d := h.desired(0, "0s")
	r := h.report(d)
	r.Hosts[0].Kernel = `\u0000 is how JSON writes NUL`
	if status, body := h.call(http.MethodPost, agentapi.PathReport, r); status != http.StatusOK {
		t.Errorf("got %d %s", status, body)
	}
}

func TestTheDesiredStateComesAsSoonAsItChanges(t *testing.T) {
	w := newWorldReading(t, 400*time.Millisecond) // of requests, not of waiting
	h := w.addHost("eu-west-2a", l40)
	_, now := h.desired(0, "0s")
	if status, _ := h.desired(now.Revision, "0s"); status != http.StatusNoContent {
		t.Errorf("nothing new without waiting: got %d, want 204", status)
	}
	if status, _ := h.desired(now.Revision, "800ms"); status != http.StatusNoContent {
		t.Errorf("nothing new within the wait: got %d, want 204", status)
	}
	type came struct {
		status int
		d      agentapi.Desired
		at     time.Time
	}
	got := make(chan came, 1)
	go func() {
		status, d := h.desired(now.Revision, "30s")
		got <- came{status, d, time.Now()}
	}()
	w.eventually("the agent waits", func() bool { return strings.Contains(w.visitor().get("/metrics").body, "berth_agent_polls 1") })
	start := time.Now()
	_, err := w.compute.CreateVM(t.Context(), w.actor(alice, "Alpha", services.RoleOwner), newVM("trainer"))
	w.must(err)
	c := <-got
	if c.status != http.StatusOK || len(c.d.Hosts[0].VMs) != 1 || c.d.Revision <= now.Revision {
		t.Errorf("got %d %+v", c.status, c.d)
	}
	if took := c.at.Sub(start); took > time.Second {
		t.Errorf("the change took %s", took)
	}
}

func TestLongPollsThatMakeNoSenseAreRefused(t *testing.T) {
	w := newWorld(t)
	h := w.addHost("eu-west-2a", l40)
	status, body := h.send(http.MethodGet, agentapi.PathDesired+"?since=9999", nil)
	refused(t, status, body, http.StatusConflict, agentapi.RefusalRevisionUnknown)
	for _, query := range []string{"?since=x", "?since=-1", "?wait=soon", "?wait=-1s", "?since=99999999999999999999", "?wait=%zz"} {
		status, body := h.send(http.MethodGet, agentapi.PathDesired+query, nil)
		refused(t, status, body, http.StatusBadRequest, agentapi.RefusalBadRequest)
	}
}
