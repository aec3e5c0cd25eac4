package handlers

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"berth/services"
	"berth/services/fleet"
	"berth/services/tenancy"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// request is one request, with who sent it.
type request struct {
	echo.Context
	agent fleet.Agent // of an agent's request; all else is of a browser's

	site     *site
	session  tenancy.Session // zero: nobody is signed in
	position string          // of the live stream, before anything was read
}

// requestKey is where the error handler and the log find the request.
const requestKey = "request"

func (r *request) ctx() context.Context { return r.Request().Context() }

func (r *request) signedIn() bool { return r.session.Token != "" }

func (r *request) actor() services.Actor { return r.session.Actor(requestID(r), r.RealIP()) }

func (r *request) account() services.AccountID { return r.session.Account }

// speak puts the language into the request's context: the user's own setting,
// else the cookie's, else the browser's.
func (r *request) speak() {
	locale := i18n.Locale(r.session.Locale)
	if !locale.Valid() {
		locale = i18n.Locale(r.cookie(localeCookie))
	}
	if !locale.Valid() {
		locale = i18n.Match(r.Request().Header.Get("Accept-Language"))
	}
	r.SetRequest(r.Request().WithContext(i18n.With(r.ctx(), locale)))
}

// frame is what stands around pages for those who are not signed in.
func (r *request) frame() layout.Frame {
	theme := layout.Theme(r.cookie(themeCookie))
	if !theme.Valid() {
		theme = layout.ThemeSystem
	}
	return layout.Frame{Assets: r.site.assets, Theme: theme, Path: r.here(), Now: r.site.Now()}
}

// shell is what stands around pages for those who are. Fragments show none of
// the counts, so none are made for them.
func (r *request) shell() (layout.Shell, error) {
	s := layout.Shell{
		Frame: r.frame(), Email: r.session.Email, Admin: r.session.Admin, Region: r.session.Region,
		Events: urls.Events + "?since=" + url.QueryEscape(r.position),
	}
	for _, m := range r.session.Accounts {
		choice := layout.AccountChoice{ID: m.Account, Name: m.Name, Role: m.Role, Suspended: m.Suspended, Reason: m.Reason}
		s.Accounts = append(s.Accounts, choice)
		if m.Account == r.session.Account {
			s.Account = choice
		}
	}
	if strings.HasPrefix(r.Path(), "/fragments/") {
		return s, nil
	}
	return s, r.count(&s)
}

// count fills in what the sidebar and the region switch show.
func (r *request) count(s *layout.Shell) error {
	f, err := r.site.frames.Frame(r.ctx(), r.account(), r.session.Region)
	s.Regions = f.Regions
	s.Counts = layout.Counts{GPUs: f.GPUs, Waiting: f.Waiting, VMs: f.VMs}
	return err
}

// page is the shell, and a fresh idempotency key for the page's forms.
func (r *request) page() (layout.Shell, string, error) {
	key, err := draw(r.site.Random)
	if err != nil {
		return layout.Shell{}, "", err
	}
	s, err := r.shell()
	return s, key, err
}

// render writes a view once it is whole, so that a failing one leaves nothing
// half said.
func (r *request) render(status int, view templ.Component) error {
	var b bytes.Buffer
	if err := view.Render(r.ctx(), &b); err != nil {
		return err
	}
	return r.HTMLBlob(status, b.Bytes())
}

// seeOther answers a write that was done.
func (r *request) seeOther(path string) error { return r.Redirect(http.StatusSeeOther, path) }

// swapped reports whether htmx sent the request.
func (r *request) swapped() bool { return isSwapped(r) }

func isSwapped(c echo.Context) bool { return c.Request().Header.Get("HX-Request") == "true" }

// here is the page that the user looks at: of a write, the one that it was
// sent from.
func (r *request) here() string { return here(r) }

func here(c echo.Context) string {
	q := c.Request()
	if !isSwapped(c) && (q.Method == http.MethodGet || q.Method == http.MethodHead) {
		return local(q.URL.RequestURI())
	}
	from := q.Header.Get("HX-Current-URL")
	if from == "" {
		from = q.Referer()
	}
	u, err := url.Parse(from)
	if err != nil || u.Host != q.Host {
		return urls.Home
	}
	return local(u.RequestURI())
}

// local gives a path of this console, the overview for anything else.
func local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsRune(path, '\\') || strings.ContainsFunc(path, unicode.IsControl) {
		return urls.Home
	}
	return path
}
