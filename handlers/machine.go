package handlers

import (
	"errors"
	"net/http"
)

// machinePages are for those who run the console: is it there, can it work,
// how is it doing.
type machinePages struct {
	database Database
	metrics  http.Handler
	files    http.Handler
}

func (s *site) machine() machinePages {
	return machinePages{database: s.Database, metrics: s.metrics.handler, files: s.Static}
}

func (h machinePages) alive(r *request) error { return r.String(http.StatusOK, "ok\n") }

// ready is no while the database does not answer; why stands in the log.
func (h machinePages) ready(r *request) error {
	if err := h.database.Ping(r.ctx()); err != nil {
		return errors.Join(err, r.String(http.StatusServiceUnavailable, "the database does not answer\n"))
	}
	return r.String(http.StatusOK, "ready\n")
}

func (h machinePages) figures(r *request) error {
	h.metrics.ServeHTTP(r.Response(), r.Request())
	return nil
}

// static serves the built files. Its own rules for caching replace those of pages.
func (h machinePages) static(r *request) error {
	r.Response().Header().Del("Cache-Control")
	h.files.ServeHTTP(r.Response(), r.Request())
	return nil
}
