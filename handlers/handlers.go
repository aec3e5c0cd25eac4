// Package handlers answers requests, and is the only package that knows Echo.
// Each handler reads a typed form, calls one service, makes a view model of
// the answer and renders it. Every route stands in one table with who may call
// it; see routes.go.
package handlers

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"berth/services/activity"
	"berth/services/compute"
	"berth/services/fleet"
	"berth/services/tenancy"
	"berth/static"
)

// Database is what readiness depends on.
type Database interface {
	// Ping reports why the database does not answer.
	Ping(ctx context.Context) error
}

// Options are what requests are answered with. The services and the database
// must be there; the rest has defaults.
type Options struct {
	Compute  *compute.Service
	Fleet    *fleet.Service
	Tenancy  *tenancy.Service
	Activity *activity.Service
	Database Database

	Log      *slog.Logger     // slog.Default()
	Version  string           // of the console, for its metrics; empty: unknown
	AgentURL string           // what agents dial, as pages tell it; empty: not known
	Secure   bool             // browsers come by HTTPS through a proxy: cookies are marked so, and the proxy's word on addresses counts
	Now      func() time.Time // time.Now
	Random   io.Reader        // crypto/rand.Reader
	Static   http.Handler     // static.Handler()

	// Heartbeat is how often an open stream says that the console is there,
	// and looks whether its session still is. 15 s.
	Heartbeat time.Duration
	// Timeout bounds the work on a request; streams and long polls go on
	// longer. 20 s.
	Timeout time.Duration
}

func (o Options) orDefault() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Static == nil {
		o.Static = static.Handler()
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	return o
}

// Server answers browsers and agents.
type Server struct {
	pages  *echo.Echo
	agents *echo.Echo
}

// New makes a server. It fails where a route lacks a permission.
func New(o Options) (*Server, error) {
	o = o.orDefault()
	m := newMetrics(o.Version)
	s := &Server{}
	var err error
	if s.pages, err = newPages(o, m); err != nil {
		return nil, err
	}
	s.agents, err = newAgents(o, m)
	return s, err
}

// Pages answers browsers.
func (s *Server) Pages() http.Handler { return s.pages }

// Agents answers the programs on hosts, under fleet.Service.TLS.
func (s *Server) Agents() http.Handler { return s.agents }

func newEcho() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	return e
}
