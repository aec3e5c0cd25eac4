package handlers

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"

	"github.com/labstack/echo/v4"

	"berth/services"
	"berth/services/compute"
	"berth/services/tenancy"
	"berth/static"
	"berth/web/layout"
)

// site is what all pages share.
type site struct {
	Options
	metrics *metrics
	assets  layout.Assets
	frames  framer
	doors   doorkeeper
}

// framer knows what stands around every page.
type framer interface {
	Frame(ctx context.Context, account services.AccountID, region string) (compute.Frame, error)
}

// doorkeeper finds sessions; without one its error is unauthorized.
type doorkeeper interface {
	// Session moves the session's end, Peek does not.
	Session(ctx context.Context, token string) (tenancy.Session, error)
	Peek(ctx context.Context, token string) (tenancy.Session, error)
}

func newPages(o Options, m *metrics) (*echo.Echo, error) {
	s := &site{Options: o, metrics: m, assets: assets(), frames: o.Compute, doors: o.Tenancy}
	e := newEcho()
	e.IPExtractor = echo.ExtractIPDirect()
	if o.Secure {
		e.IPExtractor = echo.ExtractIPFromXFFHeader()
	}
	e.HTTPErrorHandler = s.refuse
	e.Use(s.around()...)
	return e, register(e, s.table(), s.handle)
}

func assets() layout.Assets {
	return layout.Assets{
		CSS: static.Path("css/app.css"), HTMX: static.Path("vendor/htmx.js"),
		App: static.Path("js/app.js"), Icon: static.Path("img/berth.svg"), Font: static.Prefix + "fonts/inter-latin.woff2",
	}
}

// draw makes a random word, for idempotency keys and request ids.
func draw(random io.Reader) (string, error) {
	var b [12]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("draw random word: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// handle makes a route's Echo handler: it finds the session, checks the
// permission, and notes where the live stream stands before anything is read.
func (s *site) handle(rt route) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := &request{Context: c, site: s, position: s.Activity.Position()}
		c.Set(requestKey, r)
		if err := s.enter(r, rt); err != nil {
			return err
		}
		return rt.do(r)
	}
}

// enter fills in the session and refuses whoever may not call the route.
func (s *site) enter(r *request, rt route) error {
	if rt.may == anybody {
		return nil
	}
	err := s.findSession(r, rt.fragment())
	switch {
	case services.KindOf(err) == services.KindUnauthorized && rt.may == public:
		err = nil
	case err == nil && rt.may == operator && !r.session.Admin:
		err = services.Fail(services.KindForbidden, services.CodeForbidden, map[string]any{"Role": string(r.session.Role)})
	case err == nil && rt.may == writer:
		err = r.actor().MayWrite()
	}
	r.speak()
	return err
}

func (s *site) findSession(r *request, byItself bool) error {
	find := s.doors.Session
	if byItself {
		find = s.doors.Peek
	}
	var err error
	r.session, err = find(r.ctx(), r.token())
	return err
}

// logAttrs are what the log says of who asked.
func (r *request) logAttrs() []slog.Attr {
	if !r.signedIn() {
		return nil
	}
	return []slog.Attr{slog.String("user", string(r.session.User)), slog.String("account", string(r.session.Account))}
}
