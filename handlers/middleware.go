package handlers

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"berth/web/urls"
)

// policy lets pages load what the console serves, and nothing else.
const policy = "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

// around is what every request of a browser passes, from the outside in.
func (s *site) around() []echo.MiddlewareFunc {
	return []echo.MiddlewareFunc{
		numbered(s.Random), logged(s.Log, s.Now, s.metrics.pages), recovered, s.guarded, sameOrigin(), sane, bounded(maxForm),
		middleware.ContextTimeoutWithConfig(middleware.ContextTimeoutConfig{Skipper: endless, Timeout: s.Timeout}),
		middleware.GzipWithConfig(middleware.GzipConfig{Skipper: incompressible, MinLength: 1024}),
	}
}

// endless are the answers that go on for as long as the client listens.
func endless(c echo.Context) bool {
	return c.Path() == urls.Events || strings.HasPrefix(c.Path(), urls.AdminExport(""))
}

// incompressible are streams, parts of files, and what is compressed already.
func incompressible(c echo.Context) bool {
	q := c.Request()
	return endless(c) || q.Header.Get("Range") != "" || strings.HasSuffix(q.URL.Path, ".woff2")
}

// recovered turns a panic into an error with its stack, for the log.
func recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if cause, ok := p.(error); ok && errors.Is(cause, http.ErrAbortHandler) {
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}()
		return next(c)
	}
}

// guarded sets the headers that tell browsers what not to do. Only files with
// a version may be kept; pages show one account's objects.
func (s *site) guarded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		if s.Secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		return next(c)
	}
}

// sameOrigin refuses writes that another site makes a browser send.
func sameOrigin() echo.MiddlewareFunc {
	protection := http.NewCrossOriginProtection()
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := protection.Check(c.Request()); err != nil {
				return echo.ErrForbidden.WithInternal(err)
			}
			return next(c)
		}
	}
}

var errBadAddress = errors.New("the address is no text")

// sane refuses addresses that can't be read, or that no database takes.
func sane(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		u := c.Request().URL
		q, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			return echo.ErrBadRequest.WithInternal(err)
		}
		if !textual(q) || !utf8.ValidString(u.Path) || strings.ContainsRune(u.Path, 0) {
			return echo.ErrBadRequest.WithInternal(errBadAddress)
		}
		return next(c)
	}
}

// bounded refuses bodies over a limit, in bytes.
func bounded(limit int64) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			q := c.Request()
			if q.ContentLength > limit {
				return echo.ErrStatusRequestEntityTooLarge
			}
			if q.Body != nil {
				q.Body = http.MaxBytesReader(c.Response(), q.Body, limit)
			}
			return next(c)
		}
	}
}
