package handlers

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/prometheus/client_golang/prometheus"

	"berth/services"
	"berth/services/activity"
	"berth/services/agentapi"
	"berth/services/fleet"
)

// agentGate lets agents in.
type agentGate interface {
	// Authenticate finds the agent of a certificate that TLS has verified; it
	// refuses with a *fleet.Refusal.
	Authenticate(ctx context.Context, cert *x509.Certificate) (fleet.Agent, error)
	Enrol(ctx context.Context, r agentapi.EnrolRequest) (agentapi.Certificate, error)
	Renew(ctx context.Context, a fleet.Agent, r agentapi.RenewRequest) (agentapi.Certificate, error)
}

// agentBooks take what agents see, and say what they are to bring about.
type agentBooks interface {
	Report(ctx context.Context, a fleet.Agent, r agentapi.Report) (agentapi.ReportAnswer, error)
	// Unreadable flags an agent whose report is no JSON.
	Unreadable(ctx context.Context, a fleet.Agent, detail string)
	Desired(ctx context.Context, id services.AgentID) (agentapi.Desired, error)
	Revision(ctx context.Context, id services.AgentID) (int64, error)
}

// changeFeed wakes waiting agents.
type changeFeed interface {
	Subscribe(want func(activity.Change) bool) (changes <-chan activity.Change, stop func())
}

// agentServer speaks the protocol of agentapi.
type agentServer struct {
	gate    agentGate
	books   agentBooks
	changes changeFeed
	polls   prometheus.Gauge
}

const (
	// maxReport bounds what an agent sends, in bytes.
	maxReport = 4 << 20
	// maxWait bounds a long poll.
	maxWait = 60 * time.Second
)

// agentKey is where the log finds the id of the agent that a request came from.
const agentKey = "agent"

func newAgents(o Options, m *metrics) (*echo.Echo, error) {
	a := &agentServer{gate: o.Fleet, books: o.Fleet, changes: o.Activity, polls: m.polls}
	e := newEcho()
	e.IPExtractor = echo.ExtractIPDirect()
	e.HTTPErrorHandler = refuseAgent
	e.Use(
		numbered(o.Random), logged(o.Log, o.Now, m.agents), recovered, sane, bounded(maxReport),
		middleware.ContextTimeoutWithConfig(middleware.ContextTimeoutConfig{
			Skipper: func(c echo.Context) bool { return c.Path() == agentapi.PathDesired }, Timeout: o.Timeout,
		}),
	)
	return e, register(e, a.table(), a.handle)
}

// table lists every route for agents. Enrolment is public: its token is what
// lets an agent in.
func (a *agentServer) table() []route {
	return []route{
		post(agentapi.PathEnrol, public, a.enrol),
		post(agentapi.PathRenew, agent, a.renew),
		post(agentapi.PathReport, agent, a.report),
		get(agentapi.PathDesired, agent, a.desired),
	}
}

// handle makes a route's Echo handler, which finds the agent of the certificate.
func (a *agentServer) handle(rt route) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := &request{Context: c}
		if rt.may != agent {
			return rt.do(r)
		}
		state := c.Request().TLS
		if state == nil || len(state.PeerCertificates) == 0 {
			return &fleet.Refusal{Code: agentapi.RefusalUnauthorized, Message: "show the client certificate that enrolment gave"}
		}
		who, err := a.gate.Authenticate(r.ctx(), state.PeerCertificates[0])
		if err != nil {
			return err
		}
		r.agent = who
		c.Set(agentKey, string(who.ID))
		return rt.do(r)
	}
}

func (a *agentServer) enrol(r *request) error {
	var in agentapi.EnrolRequest
	if err := r.decode(&in); err != nil {
		return err
	}
	cert, err := a.gate.Enrol(r.ctx(), in)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, cert)
}

func (a *agentServer) renew(r *request) error {
	var in agentapi.RenewRequest
	if err := r.decode(&in); err != nil {
		return err
	}
	cert, err := a.gate.Renew(r.ctx(), r.agent, in)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, cert)
}

// report takes what an agent sees. A body that can't be read is flagged, and
// changes nothing else.
func (a *agentServer) report(r *request) error {
	var in agentapi.Report
	if err := r.decode(&in); err != nil {
		a.books.Unreadable(r.ctx(), r.agent, err.Error())
		return err
	}
	answer, err := a.books.Report(r.ctx(), r.agent, in)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, answer)
}

// decode reads a JSON body, the whole of it. Refusals: bad-request, too-large.
func (r *request) decode(into any) error {
	body, err := io.ReadAll(r.Request().Body)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return echo.ErrStatusRequestEntityTooLarge.WithInternal(err)
		}
		return badRequest("the body ended early: " + err.Error())
	}
	if err := json.Unmarshal(body, into); err != nil {
		return badRequest("the body is not the JSON that the protocol asks for: " + err.Error())
	}
	if holdsNUL(body) {
		return badRequest("the body holds a NUL character")
	}
	return nil
}

func badRequest(message string) *fleet.Refusal {
	return &fleet.Refusal{Code: agentapi.RefusalBadRequest, Message: message}
}

// holdsNUL reports whether a JSON text escapes a NUL, which no database column
// takes: \u0000 behind an even number of backslashes.
func holdsNUL(body []byte) bool {
	for at := 0; ; {
		i := bytes.Index(body[at:], []byte(`\u0000`))
		if i < 0 {
			return false
		}
		at += i
		before := 0
		for before < at && body[at-1-before] == '\\' {
			before++
		}
		if before%2 == 0 {
			return true
		}
		at++
	}
}

// desired answers with the desired state as soon as it is newer than what the
// agent knows, and with 204 when nothing new came within its wait.
func (a *agentServer) desired(r *request) error {
	since, wait, err := r.poll()
	if err != nil {
		return err
	}
	if err := http.NewResponseController(r.Response()).SetReadDeadline(time.Time{}); err != nil {
		return services.Wrap("lift time limit of long poll", err)
	}
	a.polls.Inc()
	defer a.polls.Dec()
	id := r.agent.ID
	changes, stop := a.changes.Subscribe(func(c activity.Change) bool { return c.Agent == id })
	defer stop()
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		newest, err := a.books.Revision(r.ctx(), id)
		switch {
		case err != nil:
			return err
		case since > newest:
			return &fleet.Refusal{Code: agentapi.RefusalRevisionUnknown, Message: "no such revision was made yet; ask again with since=0"}
		case since < newest:
			return a.answer(r, id)
		}
		select {
		case <-r.ctx().Done():
			return r.ctx().Err()
		case <-end.C:
			return r.NoContent(http.StatusNoContent)
		case <-changes:
		}
	}
}

func (a *agentServer) answer(r *request, id services.AgentID) error {
	d, err := a.books.Desired(r.ctx(), id)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, d)
}

// poll reads what a long poll asks for: since, a revision (none: 0), and wait, a
// duration (none: no waiting).
func (r *request) poll() (since int64, wait time.Duration, err error) {
	if text := r.QueryParam("since"); text != "" {
		if since, err = strconv.ParseInt(text, 10, 64); err != nil || since < 0 {
			return 0, 0, badRequest("since must be a revision, a whole number from 0")
		}
	}
	if text := r.QueryParam("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 {
			return 0, 0, badRequest("wait must be a duration such as 30s")
		}
	}
	return since, min(wait, maxWait), nil
}

// refuseAgent answers errors in the protocol's words. What went wrong within the
// console is in its log alone.
func refuseAgent(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	status, refusal := http.StatusServiceUnavailable, agentapi.Refusal{Code: agentapi.RefusalUnavailable, Message: "try again later"}
	var refused *fleet.Refusal
	var asked *echo.HTTPError
	switch {
	case errors.As(err, &refused):
		status, refusal = refusalStatus(refused), agentapi.Refusal{Code: refused.Code, Message: refused.Message}
	case errors.As(err, &asked) && asked.Code == http.StatusRequestEntityTooLarge:
		status, refusal = asked.Code, agentapi.Refusal{Code: agentapi.RefusalTooLarge, Message: "the body is over " + strconv.Itoa(maxReport) + " bytes"}
	case errors.As(err, &asked) && asked.Code < http.StatusInternalServerError:
		status, refusal = asked.Code, agentapi.Refusal{Code: agentapi.RefusalBadRequest, Message: http.StatusText(asked.Code)}
	}
	_ = c.JSON(status, refusal) // a client that went away hears nothing
}

func refusalStatus(r *fleet.Refusal) int {
	switch {
	case r.Code == agentapi.RefusalRevisionUnknown:
		return http.StatusConflict
	case r.Unauthorized():
		return http.StatusUnauthorized
	}
	return http.StatusBadRequest
}
