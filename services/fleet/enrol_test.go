package fleet_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
)

func TestATokenIsForAZoneThatExists(t *testing.T) {
	w := newWorld(t)
	_, err := w.fleet.NewToken(t.Context(), "atlantis", time.Hour)
	e, ok := services.AsError(err)
	if !ok || !e.Has(services.CodeInvalidValue) || !strings.Contains(e.Violations[0].Args["Allowed"].(string), zone) {
		t.Errorf("answered by %v, want the zones there are", err)
	}
}

func TestATokenIsGoodForOneAgentUntilItsEnd(t *testing.T) {
	w := newWorld(t)
	token, err := w.fleet.NewToken(t.Context(), zone, time.Hour)
	w.must(err)
	parts := strings.Split(token, ".")
	for name, bad := range map[string]struct{ token, want string }{
		"empty":           {"", agentapi.RefusalBadRequest},
		"of another form": {"secret", agentapi.RefusalBadRequest},
		"unknown":         {parts[0] + "." + strings.Repeat("0", 40) + "." + parts[2], agentapi.RefusalUnauthorized},
	} {
		if _, err := w.enrol(bad.token); refused(err) != bad.want {
			t.Errorf("%s: got %v, want %s", name, err, bad.want)
		}
	}
	first, err := w.enrol(token)
	w.must(err)
	again, err := w.enrol(token) // the first answer may have been lost
	w.must(err)
	if again.AgentID != first.AgentID {
		t.Errorf("a repeat enrolled %s beside %s", again.AgentID, first.AgentID)
	}
	a := &agent{w: w, id: services.AgentID(first.AgentID), epoch: 1}
	a.report(hostOf("gpu-1", "a"))
	if _, err := w.enrol(token); refused(err) != agentapi.RefusalTokenUsed {
		t.Errorf("after the first report: got %v, want %s", err, agentapi.RefusalTokenUsed)
	}

	late, err := w.fleet.NewToken(t.Context(), zone, time.Hour)
	w.must(err)
	w.time = w.time.Add(time.Hour + time.Second)
	if _, err := w.enrol(late); refused(err) != agentapi.RefusalTokenExpired {
		t.Errorf("after its end: got %v, want %s", err, agentapi.RefusalTokenExpired)
	}
}

func TestOnlyAKeysOwnerIsCertified(t *testing.T) {
	w := newWorld(t)
	token, err := w.fleet.NewToken(t.Context(), zone, time.Hour)
	w.must(err)
	request := w.request()
	for name, csr := range map[string]string{
		"nothing": "", "no PEM": "abc", "another kind of PEM": strings.ReplaceAll(request, "CERTIFICATE REQUEST", "CERTIFICATE"),
		"a changed request": request[:80] + string(request[80]^1) + request[81:],
	} {
		if _, err := w.fleet.Enrol(t.Context(), agentapi.EnrolRequest{Token: token, CSR: csr}); refused(err) != agentapi.RefusalBadRequest {
			t.Errorf("%s: got %v, want %s", name, err, agentapi.RefusalBadRequest)
		}
	}
}

func TestAnAgentIsLockedOutByNoLostRenewal(t *testing.T) {
	w := newWorld(t)
	token, err := w.fleet.NewToken(t.Context(), zone, time.Hour)
	w.must(err)
	first, err := w.enrol(token)
	w.must(err)
	let := func(c agentapi.Certificate) (db.Agent, string) {
		t.Helper()
		a, err := w.fleet.Authenticate(t.Context(), w.certificate(c))
		if err != nil {
			return a, refused(err)
		}
		return a, "in"
	}
	renew := func(with agentapi.Certificate) agentapi.Certificate {
		t.Helper()
		a, how := let(with)
		if how != "in" {
			t.Fatalf("not let in to renew: %s", how)
		}
		c, err := w.fleet.Renew(t.Context(), a, agentapi.RenewRequest{CSR: w.request()})
		w.must(err)
		return c
	}
	lost, again := renew(first), renew(first) // neither answer arrives
	third := renew(first)
	for name, tt := range map[string]struct {
		cert agentapi.Certificate
		want string
	}{
		"the one in use": {first, "in"}, "one that was lost": {lost, agentapi.RefusalUnauthorized}, "the other": {again, agentapi.RefusalUnauthorized},
	} {
		if _, got := let(tt.cert); got != tt.want {
			t.Errorf("%s is let %s, want %s", name, got, tt.want)
		}
	}
	if _, got := let(third); got != "in" {
		t.Errorf("the newest is let %s", got)
	}
	if _, got := let(first); got != "in" {
		t.Errorf("the former, of connections still open, is let %s", got)
	}
	renew(third)
	if _, got := let(first); got != agentapi.RefusalUnauthorized {
		t.Errorf("the one before the former is let %s", got)
	}
	other := newWorld(t)
	if _, err := other.fleet.Authenticate(t.Context(), w.certificate(third)); refused(err) != agentapi.RefusalUnauthorized {
		t.Errorf("at another console: got %v, want %s", err, agentapi.RefusalUnauthorized)
	}
}

func TestTheListenersCertificateIsRenewedLongBeforeItsEnd(t *testing.T) {
	w := newWorld(t)
	conf := w.fleet.TLS([]string{"console.example.test", "192.0.2.7"})
	get := func() *tls.Certificate {
		t.Helper()
		c, err := conf.GetCertificate(nil)
		w.must(err)
		return c
	}
	first := get()
	if leaf, err := parse(first); err != nil || leaf.VerifyHostname("console.example.test") != nil || leaf.VerifyHostname("192.0.2.7") != nil {
		t.Errorf("it does not answer to its names: %v", err)
	}
	if get() != first {
		t.Error("each handshake makes a certificate")
	}
	w.time = w.time.Add(60 * 24 * time.Hour)
	next := get()
	leaf, err := parse(next)
	w.must(err)
	if next == first || leaf.NotAfter.Before(w.time.Add(30*24*time.Hour)) {
		t.Errorf("after 60 days it is good until %s", leaf.NotAfter)
	}
}
