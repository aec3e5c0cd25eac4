package handlers

import (
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// statusGone is what the log says where the client went away before its
// answer. It is never sent.
const statusGone = 499

// numbered gives every request an id, which errors show and the log keeps.
func numbered(random io.Reader) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			id, err := draw(random)
			if err != nil {
				return err
			}
			c.Response().Header().Set(echo.HeaderXRequestID, id)
			return next(c)
		}
	}
}

func requestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// logged answers errors, and writes one line for each request.
func logged(log *slog.Logger, now func() time.Time, m *requestMetrics) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := now()
			gone := c.Request().Context()
			err := next(c)
			if err != nil {
				c.Error(err)
			}
			status := c.Response().Status
			if err != nil && gone.Err() != nil {
				status = statusGone
			}
			took := now().Sub(start)
			m.count(c, status, took)
			log.LogAttrs(c.Request().Context(), level(status), "request answered", record(c, status, took, err)...)
			return nil
		}
	}
}

func level(status int) slog.Level {
	if status >= http.StatusInternalServerError {
		return slog.LevelError
	}
	return slog.LevelInfo
}

// record is one request's line. Queries are left out: people search for what
// is none of the log's business.
func record(c echo.Context, status int, took time.Duration, err error) []slog.Attr {
	q := c.Request()
	attrs := []slog.Attr{
		slog.String("method", q.Method), slog.String("path", q.URL.Path), slog.String("route", c.Path()), slog.Int("status", status),
		slog.Int64("bytes", c.Response().Size), slog.Duration("took", took), slog.String("remote_ip", c.RealIP()),
		slog.String("request_id", requestID(c)),
	}
	if r, ok := c.Get(requestKey).(*request); ok {
		attrs = append(attrs, r.logAttrs()...)
	}
	if a, ok := c.Get(agentKey).(string); ok {
		attrs = append(attrs, slog.String("agent", a))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	return attrs
}
