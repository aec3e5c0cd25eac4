package handlers

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what the console tells a monitoring system of itself.
type metrics struct {
	handler http.Handler
	pages   *requestMetrics
	agents  *requestMetrics
	streams prometheus.Gauge // open live streams
	polls   prometheus.Gauge // agents that wait for their desired state to change
}

// requestMetrics are those of one listener.
type requestMetrics struct {
	seconds *prometheus.HistogramVec
	server  string
}

func newMetrics(version string) *metrics {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "berth_request_duration_seconds", Help: "How long requests took, by listener, route, method and status.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"server", "route", "method", "status"})
	streams := prometheus.NewGauge(prometheus.GaugeOpts{Name: "berth_live_streams", Help: "Open live streams of browsers."})
	polls := prometheus.NewGauge(prometheus.GaugeOpts{Name: "berth_agent_polls", Help: "Agents that wait for work."})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "berth_build_info", Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(seconds, streams, polls, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &metrics{
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true}), streams: streams, polls: polls,
		pages: &requestMetrics{seconds, "pages"}, agents: &requestMetrics{seconds, "agents"},
	}
}

// methods are those that get a label of their own; clients may send any word.
var methods = map[string]bool{http.MethodGet: true, http.MethodHead: true, http.MethodPost: true}

// count notes an answered request. The route is the pattern, so that clients
// can't make up labels.
func (m *requestMetrics) count(c echo.Context, status int, took time.Duration) {
	method := "other"
	if methods[c.Request().Method] {
		method = c.Request().Method
	}
	route := c.Path()
	if route == "" {
		route = "none"
	}
	m.seconds.WithLabelValues(m.server, route, method, strconv.Itoa(status)).Observe(took.Seconds())
}
