package hostagent_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"berth/services/agentapi"
)

const secret = "secret-of-sixteen-or-more"

// console is the console's end of the protocol as docs/agent-protocol.md
// describes it, for one agent.
type console struct {
	*httptest.Server
	t     *testing.T
	ca    *x509.Certificate
	caKey *ecdsa.PrivateKey

	mu          sync.Mutex
	altered     chan struct{} // closed and replaced with each change
	enrolled    bool          // the token was used
	dropEnrols  int           // answers that are lost on their way
	age, life   time.Duration // of the certificates handed out: since when, until when
	issued      int
	serials     []string // of the certificates that reports came with, without repetition
	desired     agentapi.Desired
	replay      *agentapi.Desired // handed out once more, though it is older
	forgot      bool              // the console was restored and knows no revision that high
	revoked     bool
	lastEpoch   int64
	lastSeq     int64
	reports     []agentapi.Report
	polls       int
	rawDesired  string // sent in place of the desired state
	staleAnswer int
}

func newConsole(t *testing.T) *console {
	t.Helper()
	c := &console{t: t, altered: make(chan struct{}), age: time.Hour, life: time.Hour}
	c.ca, c.caKey = newAuthority(t)
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+agentapi.PathEnrol, c.enrol)
	mux.HandleFunc("POST "+agentapi.PathRenew, c.known(c.renew))
	mux.HandleFunc("POST "+agentapi.PathReport, c.known(c.report))
	mux.HandleFunc("GET "+agentapi.PathDesired, c.known(c.serveDesired))
	c.Server = httptest.NewUnstartedServer(mux)
	c.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.TLS = c.tlsFor(net.IPv4(127, 0, 0, 1))
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

func newAuthority(t *testing.T) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(10 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return cert, key
}

// tlsFor serves a certificate for ip, with the CA behind it.
func (c *console) tlsFor(ip net.IP) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(c.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{ip}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.ca, key.Public(), c.caKey)
	must(c.t, err)
	pool := x509.NewCertPool()
	pool.AddCert(c.ca)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der, c.ca.Raw}, PrivateKey: key}},
		ClientAuth:   tls.VerifyClientCertIfGiven, ClientCAs: pool,
	}
}

func (c *console) token() string { return tokenFor(c.ca) }

func tokenFor(ca *x509.Certificate) string {
	sum := sha256.Sum256(ca.Raw)
	return "berth-enrol-v1." + secret + "." + hex.EncodeToString(sum[:])
}

func (c *console) enrol(w http.ResponseWriter, r *http.Request) {
	var req agentapi.EnrolRequest
	if json.NewDecoder(r.Body).Decode(&req) != nil || req.Token != c.token() {
		refuse(w, http.StatusUnauthorized, agentapi.RefusalUnauthorized)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.enrolled && len(c.reports) > 0 {
		refuse(w, http.StatusUnauthorized, agentapi.RefusalTokenUsed)
		return
	}
	c.enrolled = true
	if c.dropEnrols > 0 {
		c.dropEnrols--
		panic(http.ErrAbortHandler)
	}
	answer(w, c.certify(requestKey(c.t, req.CSR)))
}

func requestKey(t *testing.T, text string) any {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		t.Error("the CSR is no PEM")
		return nil
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		t.Errorf("CSR: %v", err)
		return nil
	}
	return csr.PublicKey
}

// certify makes a client certificate; c.mu is held.
func (c *console) certify(public any) agentapi.Certificate {
	c.issued++
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(100 + int64(c.issued)), Subject: pkix.Name{CommonName: "agent-00000001"},
		NotBefore: now.Add(-c.age), NotAfter: now.Add(c.life), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.ca, public, c.caKey)
	must(c.t, err)
	encode := func(der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return agentapi.Certificate{AgentID: "agent-00000001", Certificate: encode(der), CA: encode(c.ca.Raw), ExpiresAt: template.NotAfter}
}

func (c *console) known(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		revoked := c.revoked
		c.mu.Unlock()
		switch {
		case len(r.TLS.PeerCertificates) == 0:
			refuse(w, http.StatusUnauthorized, agentapi.RefusalUnauthorized)
		case revoked:
			refuse(w, http.StatusUnauthorized, agentapi.RefusalRevoked)
		default:
			next(w, r)
		}
	}
}

func (c *console) renew(w http.ResponseWriter, r *http.Request) {
	var req agentapi.RenewRequest
	if json.NewDecoder(r.Body).Decode(&req) != nil {
		refuse(w, http.StatusBadRequest, agentapi.RefusalBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.age, c.life = time.Hour, time.Hour
	answer(w, c.certify(requestKey(c.t, req.CSR)))
}

func (c *console) report(w http.ResponseWriter, r *http.Request) {
	var report agentapi.Report
	if json.NewDecoder(r.Body).Decode(&report) != nil {
		refuse(w, http.StatusBadRequest, agentapi.RefusalBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := agentapi.ReportAnswer{Revision: c.desired.Revision, Epoch: c.lastEpoch}
	if report.Epoch < c.lastEpoch || (report.Epoch == c.lastEpoch && report.Sequence <= c.lastSeq) {
		out.Reason = agentapi.ReasonStale
		c.staleAnswer++
		answer(w, out)
		return
	}
	out.Accepted = true
	c.lastEpoch, c.lastSeq = report.Epoch, report.Sequence
	c.reports = append(c.reports, report)
	serial := r.TLS.PeerCertificates[0].SerialNumber.String()
	if len(c.serials) == 0 || c.serials[len(c.serials)-1] != serial {
		c.serials = append(c.serials, serial)
	}
	c.alter()
	answer(w, out)
}

func (c *console) serveDesired(w http.ResponseWriter, r *http.Request) {
	since, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	wait, err2 := time.ParseDuration(r.URL.Query().Get("wait"))
	if err != nil || err2 != nil {
		refuse(w, http.StatusBadRequest, agentapi.RefusalBadRequest)
		return
	}
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for first := true; ; first = false {
		c.mu.Lock()
		if first {
			c.polls++
		}
		altered := c.altered
		done := c.answerDesired(w, since)
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-altered:
		case <-deadline.C:
			w.WriteHeader(http.StatusNoContent)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// answerDesired answers where there is something to say; c.mu is held.
func (c *console) answerDesired(w http.ResponseWriter, since int64) bool {
	switch {
	case c.forgot && since > c.desired.Revision:
		refuse(w, http.StatusConflict, agentapi.RefusalRevisionUnknown)
	case c.rawDesired != "":
		_, _ = io.WriteString(w, c.rawDesired)
	case c.replay != nil:
		answer(w, c.replay)
		c.replay = nil
	case c.desired.Revision > since:
		answer(w, c.desired)
	default:
		return false
	}
	return true
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(agentapi.Refusal{Code: code, Message: "as the test wants it"})
}

// alter wakes everybody who waits; c.mu is held.
func (c *console) alter() {
	close(c.altered)
	c.altered = make(chan struct{})
}

// set changes the console under its lock.
func (c *console) set(do func(*console)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c)
	c.alter()
}

// want makes a new revision for one host and returns its number.
func (c *console) want(vms []agentapi.DesiredVM, cards ...agentapi.DesiredCard) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.desired = agentapi.Desired{
		Revision: c.desired.Revision + 1,
		Hosts:    []agentapi.DesiredHost{{Name: hostName, VMs: vms, Cards: cards}},
	}
	c.alter()
	return c.desired.Revision
}

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// await waits until so holds; it is called with the lock held, after each change.
func (c *console) await(what string, so func(*console) bool) {
	c.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		c.mu.Lock()
		altered, done := c.altered, so(c)
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-altered:
		case <-deadline.C:
			c.mu.Lock()
			defer c.mu.Unlock()
			last, _ := json.MarshalIndent(c.reports[max(0, len(c.reports)-1):], "", " ")
			c.t.Fatalf("not in time: %s; the last report is %s", what, last)
		}
	}
}

// awaitReport waits for a report for which so holds and returns it.
func (c *console) awaitReport(what string, so func(agentapi.Report) bool) agentapi.Report {
	c.t.Helper()
	var found agentapi.Report
	c.await(what, func(c *console) bool {
		if n := len(c.reports); n > 0 && so(c.reports[n-1]) {
			found = c.reports[n-1]
			return true
		}
		return false
	})
	return found
}

// awaitReached waits for a report that has reached a revision.
func (c *console) awaitReached(revision int64) agentapi.Report {
	c.t.Helper()
	return c.awaitReport("revision "+strconv.FormatInt(revision, 10)+" is reached", func(r agentapi.Report) bool {
		return r.Revision >= revision && !r.Partial
	})
}

// awaitNext waits for n more reports.
func (c *console) awaitNext(n int) []agentapi.Report {
	c.t.Helper()
	c.mu.Lock()
	from := len(c.reports)
	c.mu.Unlock()
	c.await("more reports", func(c *console) bool { return len(c.reports) >= from+n })
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reports[from:]
}
