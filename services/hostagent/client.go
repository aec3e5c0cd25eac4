package hostagent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"berth/services/agentapi"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 16 << 20

// RefusedError is an answer of the console outside 2xx.
type RefusedError struct {
	Status int
	agentapi.Refusal
}

// Error gives status, code and message.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the console answered %d %s: %s", e.Status, e.Code, e.Message)
}

func refusedWith(err error, code string) bool {
	var r *RefusedError
	return errors.As(err, &r) && r.Code == code
}

// refusedForGood tells a refusal of an enrolment that a repeat does not change.
func refusedForGood(err error) bool {
	var r *RefusedError
	return errors.As(err, &r) && (r.Status == http.StatusUnauthorized || r.Status == http.StatusBadRequest)
}

// client speaks the protocol. Each request is bounded in time.
type client struct {
	base  string
	opts  *Options
	agent agentapi.Agent

	mu   sync.Mutex
	http *http.Client // with the present certificate
}

func newClient(opts *Options) *client {
	return &client{
		base: strings.TrimRight(opts.Console, "/"), opts: opts,
		agent: agentapi.Agent{Version: opts.Version, Driver: opts.Driver.Name()},
	}
}

// use makes all further requests with id. Connections with the former
// certificate end with the requests that run on them.
func (c *client) use(id *identity) {
	c.replace(newHTTP(&tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: id.pool(), Certificates: []tls.Certificate{id.certificate()}, Time: c.opts.Now,
	}))
}

func (c *client) replace(next *http.Client) {
	c.mu.Lock()
	former := c.http
	c.http = next
	c.mu.Unlock()
	if former != nil {
		former.CloseIdleConnections()
	}
}

// close lets go of idle connections.
func (c *client) close() { c.replace(nil) }

func newHTTP(conf *tls.Config) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: conf, Protocols: protocols,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// enrol asks for a first certificate. The console proves itself by a chain that
// ends in the CA whose fingerprint the token carries.
func (c *client) enrol(ctx context.Context, token, csr string, pin fingerprint) (agentapi.Certificate, error) {
	u, err := url.Parse(c.base)
	if err != nil {
		return agentapi.Certificate{}, fmt.Errorf("enrol: %w", err)
	}
	pinned := newHTTP(&tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection checks the chain against the pin instead
		VerifyConnection:   verifyPinned(u.Hostname(), pin, c.opts.Now),
	})
	defer pinned.CloseIdleConnections()
	var answer agentapi.Certificate
	request := agentapi.EnrolRequest{Token: token, CSR: csr, Agent: c.agent}
	if err := c.post(ctx, pinned, agentapi.PathEnrol, request, &answer); err != nil {
		return answer, fmt.Errorf("enrol: %w", err)
	}
	return answer, nil
}

// verifyPinned accepts a served chain whose root has the fingerprint and that
// is valid for the host.
func verifyPinned(host string, pin fingerprint, now func() time.Time) func(tls.ConnectionState) error {
	return func(cs tls.ConnectionState) error {
		roots, others := x509.NewCertPool(), x509.NewCertPool()
		found := false
		for _, c := range cs.PeerCertificates {
			if c.IsCA && sha256.Sum256(c.Raw) == pin {
				roots.AddCert(c)
				found = true
			} else {
				others.AddCert(c)
			}
		}
		if !found {
			return ErrPin
		}
		_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: others, CurrentTime: now()})
		return err
	}
}

func (c *client) renew(ctx context.Context, csr string) (agentapi.Certificate, error) {
	var answer agentapi.Certificate
	err := c.post(ctx, c.current(), agentapi.PathRenew, agentapi.RenewRequest{CSR: csr}, &answer)
	if err != nil {
		return answer, fmt.Errorf("renew certificate: %w", err)
	}
	return answer, nil
}

func (c *client) report(ctx context.Context, r agentapi.Report) (agentapi.ReportAnswer, error) {
	var answer agentapi.ReportAnswer
	r.Agent = c.agent
	if err := c.post(ctx, c.current(), agentapi.PathReport, r, &answer); err != nil {
		return answer, fmt.Errorf("report: %w", err)
	}
	return answer, nil
}

// desired waits for a revision newer than since; nil: there is none yet.
func (c *client) desired(ctx context.Context, since int64) (*agentapi.Desired, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Wait+c.opts.RequestTimeout)
	defer cancel()
	query := url.Values{"since": {strconv.FormatInt(since, 10)}, "wait": {c.opts.Wait.String()}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+agentapi.PathDesired+"?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the desired state: %w", err)
	}
	var d agentapi.Desired
	status, err := roundTrip(c.current(), req, &d)
	if err != nil {
		return nil, fmt.Errorf("ask for the desired state: %w", err)
	}
	if status == http.StatusNoContent || d.Revision <= since {
		return nil, nil
	}
	return &d, nil
}

func (c *client) current() *http.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.http
}

func (c *client) post(ctx context.Context, hc *http.Client, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.RequestTimeout)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	_, err = roundTrip(hc, req, answer)
	return err
}

// roundTrip decodes a 200 into answer and turns anything outside 2xx into a *RefusedError.
func roundTrip(hc *http.Client, req *http.Request, answer any) (int, error) {
	resp, err := hc.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return resp.StatusCode, fmt.Errorf("read answer: %w", err)
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		if err := json.Unmarshal(text, answer); err != nil {
			return resp.StatusCode, fmt.Errorf("decode answer: %w", err)
		}
	case resp.StatusCode != http.StatusNoContent:
		refused := &RefusedError{Status: resp.StatusCode}
		if json.Unmarshal(text, &refused.Refusal) != nil {
			refused.Message = "no reason that can be read"
		}
		return resp.StatusCode, refused
	}
	return resp.StatusCode, nil
}
