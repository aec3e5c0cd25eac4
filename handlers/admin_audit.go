package handlers

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"berth/services"
	"berth/services/activity"
	"berth/web/admin/audit"
	"berth/web/urls"
)

// auditReader answers what happened in all accounts.
type auditReader interface {
	Audit(ctx context.Context, f activity.AuditFilter) (activity.AuditPage, error)
	Export(ctx context.Context, f activity.AuditFilter, each func(activity.AuditEvent) error) error
}

// auditPages show the log to operators.
type auditPages struct {
	site   *site
	events auditReader
}

func (s *site) audit() auditPages { return auditPages{site: s, events: s.Activity} }

func (h auditPages) page(r *request) error { return h.show(r, audit.View) }

func (h auditPages) fragment(r *request) error { return h.show(r, audit.Fragment) }

func (h auditPages) show(r *request, view func(audit.Page) templ.Component) error {
	p, err := h.build(r, auditQuery(fleetQuery(r.QueryParams())))
	if err != nil {
		return err
	}
	return r.render(http.StatusOK, view(p))
}

// auditQuery reads a text that is searched for as the object or the person that it names.
func auditQuery(q urls.ListQuery) urls.ListQuery {
	q = urls.ListQuery{
		Text: q.Text, State: q.State, Account: q.Account, Actor: q.Actor, Object: q.Object, From: q.From, Until: q.Until, After: q.After,
	}
	if !slices.Contains(audit.Families, q.State) {
		q.State = ""
	}
	switch {
	case q.Text == "":
	case strings.Contains(q.Text, "@"):
		q.Actor, q.Text = q.Text, ""
	default:
		q.Object, q.Text = q.Text, ""
	}
	return q
}

// nobody is an object that no event is about.
const nobody = services.GPUID("none")

// auditFilter turns a query into a filter; what can't be read of it is named.
func auditFilter(q urls.ListQuery) (activity.AuditFilter, []services.Violation) {
	f := activity.AuditFilter{Account: services.AccountID(q.Account), Actor: q.Actor, Family: q.State}
	if before, err := strconv.ParseInt(q.After, 10, 64); err == nil && before > 0 {
		f.Before = before
	}
	about(&f, q.Object)
	var broken []services.Violation
	f.From, broken = day("from", q.From, 0, broken)
	f.Until, broken = day("until", q.Until, 1, broken)
	return f, broken
}

// about narrows to the object that an identifier names.
func about(f *activity.AuditFilter, object string) {
	kind, _, _ := strings.Cut(object, "-")
	switch kind {
	case "":
	case "fgpu":
		f.GPU = services.GPUID(object)
	case "i":
		f.VM = services.VMID(object)
	case "card":
		f.Card = services.CardID(object)
	case "host":
		f.Host = services.HostID(object)
	case "acc":
		f.Account = services.AccountID(object)
	default:
		f.GPU = nobody
	}
}

// day reads a date; plus is how many days after its beginning.
func day(field, text string, plus int, broken []services.Violation) (time.Time, []services.Violation) {
	if text == "" {
		return time.Time{}, broken
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, append(broken, services.Invalid(field, services.CodeInvalidValue, map[string]any{"Value": text, "Allowed": "2025-12-31"}).Violations...)
	}
	return t.AddDate(0, 0, plus), broken
}

func (h auditPages) build(r *request, q urls.ListQuery) (audit.Page, error) {
	var p audit.Page
	var err error
	if p.Shell, err = r.shell(); err != nil {
		return p, err
	}
	f, broken := auditFilter(q)
	f.Limit = pageRows
	found, err := h.events.Audit(r.ctx(), f)
	if err != nil {
		return p, err
	}
	if len(found.Events) == 0 && f.Before > 0 { // nothing is older
		q.After = ""
		return h.build(r, q)
	}
	next := ""
	if found.Next > 0 {
		next = strconv.FormatInt(found.Next, 10)
	}
	p.Listing, p.Broken = listing(urls.AdminActivity, q, len(found.Events), found.Total, next, ""), broken
	p.Events, err = audited(found.Events)
	return p, err
}

// exported is an event as exports write it.
type exported struct {
	ID        int64           `json:"id"`
	At        time.Time       `json:"at"`
	Kind      string          `json:"kind"`
	Actor     string          `json:"actor"`
	Address   string          `json:"address"`
	Account   string          `json:"account"`
	GPU       string          `json:"gpu"`
	VM        string          `json:"vm"`
	Card      string          `json:"card"`
	Host      string          `json:"host"`
	From      string          `json:"from"`
	To        string          `json:"to"`
	RequestID string          `json:"request_id"`
	Data      json.RawMessage `json:"data"`
}

func exportedOf(e activity.AuditEvent) exported {
	return exported{
		ID: e.ID, At: e.At.UTC(), Kind: e.Kind, Actor: e.Actor, Address: e.Address, Account: string(e.Account), GPU: string(e.GPU), VM: string(e.VM),
		Card: string(e.Card), Host: string(e.Host), From: e.From, To: e.To, RequestID: e.RequestID, Data: json.RawMessage(e.Data),
	}
}

var columns = []string{"id", "at", "kind", "actor", "address", "account", "gpu", "vm", "card", "host", "from", "to", "request_id", "data"}

func (x exported) cells() []string {
	cells := []string{
		strconv.FormatInt(x.ID, 10), x.At.Format(time.RFC3339Nano), x.Kind, x.Actor, x.Address, x.Account, x.GPU, x.VM, x.Card, x.Host,
		x.From, x.To, x.RequestID, string(x.Data),
	}
	for i, c := range cells {
		cells[i] = inert(c)
	}
	return cells
}

// inert keeps spreadsheets from taking a text for a formula.
func inert(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

func (h auditPages) exportCSV(r *request) error {
	return h.export(r, "text/csv; charset=utf-8", "csv", func(w io.Writer) (func(exported) error, func() error) {
		out := csv.NewWriter(w)
		begun := out.Write(columns)
		each := func(x exported) error {
			if begun != nil {
				return begun
			}
			return out.Write(x.cells())
		}
		return each, func() error {
			out.Flush()
			return out.Error()
		}
	})
}

func (h auditPages) exportJSON(r *request) error {
	return h.export(r, "application/x-ndjson", "jsonl", func(w io.Writer) (func(exported) error, func() error) {
		out := json.NewEncoder(w)
		return func(x exported) error { return out.Encode(x) }, func() error { return nil }
	})
}

// export writes every event that the query shows, as it is read. It goes on
// for longer than a page may take.
func (h auditPages) export(r *request, kind, ending string, begin func(io.Writer) (each func(exported) error, end func() error)) error {
	f, broken := auditFilter(auditQuery(fleetQuery(r.QueryParams())))
	if len(broken) > 0 {
		return &services.Error{Kind: services.KindInvalid, Violations: broken}
	}
	f.Before = 0
	head := r.Response().Header()
	head.Set("Content-Type", kind)
	head.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="berth-activity-%s.%s"`, h.site.Now().UTC().Format("20060102-150405"), ending))
	r.Response().WriteHeader(http.StatusOK)
	if r.Request().Method == http.MethodHead {
		return nil
	}
	w := bufio.NewWriter(r.Response())
	each, end := begin(w)
	err := h.events.Export(r.ctx(), f, func(e activity.AuditEvent) error { return each(exportedOf(e)) })
	if err == nil {
		err = end()
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil { // the client sees a cut-off file, not one that looks whole
		h.site.Log.ErrorContext(r.ctx(), "export cut off", "error", err, "request_id", requestID(r))
		panic(http.ErrAbortHandler)
	}
	return nil
}
