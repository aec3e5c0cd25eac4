package handlers

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"berth/services"
	"berth/web/problem"
	"berth/web/urls"
)

// statuses has one HTTP status for each kind of error.
var statuses = map[services.Kind]int{
	services.KindInternal:     http.StatusInternalServerError,
	services.KindInvalid:      http.StatusUnprocessableEntity,
	services.KindConflict:     http.StatusConflict,
	services.KindCapacity:     http.StatusConflict,
	services.KindNotFound:     http.StatusNotFound,
	services.KindForbidden:    http.StatusForbidden,
	services.KindUnauthorized: http.StatusUnauthorized,
	services.KindThrottled:    http.StatusTooManyRequests,
	services.KindUnavailable:  http.StatusServiceUnavailable,
}

func statusOf(k services.Kind) int { return statuses[k] }

// status gives the status that an error is answered with. What ran out of time
// is unavailable, whatever it was doing.
func status(err error) int {
	var asked *echo.HTTPError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	case errors.As(err, &asked):
		return asked.Code
	}
	return statusOf(services.KindOf(err))
}

// refuse is the one place where errors are answered. Their cause is in the log
// alone; nothing is added to an answer that has begun.
func (s *site) refuse(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	r, ok := c.Get(requestKey).(*request)
	if !ok { // it got no further than the middleware
		r = &request{Context: c, site: s}
	}
	if !r.signedIn() {
		_ = s.findSession(r, true) // without one the page is that of the signed out
		r.speak()
	}
	// The answer to what ran out of time needs time of its own.
	r.SetRequest(r.Request().WithContext(context.WithoutCancel(r.ctx())))
	if services.HasCode(err, services.CodeSignedOut) {
		err = r.toSignIn()
	} else {
		err = r.problem(status(err), err)
	}
	if err != nil {
		s.Log.ErrorContext(r.ctx(), "error page not written", "error", err, "request_id", requestID(c))
	}
}

// toSignIn leads to the sign-in, and from there back. The stream says so by its
// status, which its script waits for.
func (r *request) toSignIn() error {
	to := urls.LoginThen(r.here())
	switch {
	case r.Path() == urls.Events:
		r.Response().Header().Set("HX-Redirect", urls.Login)
		return r.NoContent(http.StatusUnauthorized)
	case r.swapped():
		r.Response().Header().Set("HX-Redirect", to)
		return r.NoContent(http.StatusNoContent)
	}
	return r.seeOther(to)
}

// problem shows what is wrong in a page of its own.
func (r *request) problem(status int, err error) error {
	if r.Request().Method == http.MethodHead {
		return r.NoContent(status)
	}
	p := problem.Page{Frame: r.frame(), Status: status, RequestID: requestID(r)}
	if e, ok := services.AsError(err); ok {
		p.Broken = e.Violations
	}
	if r.signedIn() {
		if shell, err := r.shell(); err == nil { // without the counts the page still says what it has to
			p.Shell = &shell
		}
	}
	return r.render(status, problem.View(p))
}
