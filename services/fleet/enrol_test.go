package fleet_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

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

func TestBothCertificatesAreGoodAfterARenewalAndNoOther(t *testing.T) {
	w := newWorld(t)
	token, err := w.fleet.NewToken(t.Context(), zone, time.Hour)
	w.must(err)
	first, err := w.enrol(token)
	w.must(err)
	row, err := w.fleet.Authenticate(t.Context(), w.certificate(first))
	w.must(err)
	second, err := w.fleet.Renew(t.Context(), row, agentapi.RenewRequest{CSR: w.request()})
	w.must(err)
	for name, c := range map[string]agentapi.Certificate{"the former": first, "the new": second} {
		if got, err := w.fleet.Authenticate(t.Context(), w.certificate(c)); err != nil || got.ID != row.ID {
			t.Errorf("%s certificate: got %s, %v", name, got.ID, err)
		}
	}
	if _, err = w.fleet.Renew(t.Context(), row, agentapi.RenewRequest{CSR: w.request()}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.fleet.Authenticate(t.Context(), w.certificate(first)); refused(err) != agentapi.RefusalUnauthorized {
		t.Errorf("the one before the former: got %v, want %s", err, agentapi.RefusalUnauthorized)
	}

	other := newWorld(t)
	if _, err := other.fleet.Authenticate(t.Context(), w.certificate(second)); refused(err) != agentapi.RefusalUnauthorized {
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
