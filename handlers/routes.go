package handlers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"berth/web/urls"
)

// permission says who may call a route.
type permission int

// The permissions. The zero value is none, so that a route cannot be forgotten.
const (
	unlisted permission = iota
	anybody             // anybody, without a look at sessions
	public              // anybody; a session is known where there is one
	signedIn            // whoever has a session
	reader              // a member of the account looked at; whoever is member of none sees it empty
	writer              // a member of the account looked at who may change GPUs and VMs
	operator            // an admin of the platform
	agent               // a program on a host, by its certificate
)

// route is one line of the table.
type route struct {
	method string
	path   string
	may    permission
	do     func(*request) error
}

// fragment reports whether pages fetch the route by themselves.
func (r route) fragment() bool { return strings.HasPrefix(r.path, "/fragments/") }

func get(path string, may permission, do func(*request) error) route {
	return route{http.MethodGet, path, may, do}
}

func post(path string, may permission, do func(*request) error) route {
	return route{http.MethodPost, path, may, do}
}

// register adds the table's routes. GET answers HEAD as well, but for streams,
// which have no end.
func register(e *echo.Echo, table []route, handle func(route) echo.HandlerFunc) error {
	for _, r := range table {
		if r.may == unlisted || r.do == nil {
			return fmt.Errorf("route %s %s says not who may call it, or does nothing", r.method, r.path)
		}
		e.Add(r.method, r.path, handle(r))
		if r.method == http.MethodGet && r.path != urls.Events {
			e.Add(http.MethodHead, r.path, handle(r))
		}
	}
	return verify(e, table)
}

// verify refuses routes that were added beside the table.
func verify(e *echo.Echo, table []route) error {
	for _, added := range e.Routes() {
		listed := slices.ContainsFunc(table, func(r route) bool {
			head := r.method == http.MethodGet && added.Method == http.MethodHead
			return r.path == added.Path && (r.method == added.Method || head)
		})
		if !listed {
			return fmt.Errorf("route %s %s is not in the table", added.Method, added.Path)
		}
	}
	return nil
}

// table lists every route for browsers, with who may call it.
func (s *site) table() []route {
	return slices.Concat(s.common(), s.views(), s.fragments(), s.actions(), s.operators())
}

// common are the routes of machines and sessions.
func (s *site) common() []route {
	machine, session := s.machine(), s.sessions()
	return []route{
		get("/healthz", anybody, machine.alive),
		get("/readyz", anybody, machine.ready),
		get("/metrics", anybody, machine.figures),
		get("/static/*", anybody, machine.static),
		get("/events", signedIn, s.live().follow),

		get("/login", public, session.form),
		post("/login", public, session.signIn),
		post("/logout", public, session.signOut),
		post("/session/account", signedIn, session.account),
		post("/session/region", signedIn, session.region),
		post("/session/locale", public, session.locale),
		post("/session/theme", public, session.theme),
	}
}

// views are whole pages.
func (s *site) views() []route {
	gpu, vm, vmForms := s.gpus(), s.vms(), s.vmForms()
	return []route{
		get("/", reader, s.overview().page),
		get("/gpus", reader, gpu.list),
		get("/gpus/new", writer, gpu.form),
		get("/gpus/:id", reader, gpu.page),
		get("/vms", reader, vm.list),
		get("/vms/new", writer, vmForms.create),
		get("/vms/:id", reader, vm.page),
		get("/vms/:id/resize", writer, vmForms.resize),
		get("/catalog", reader, s.catalog().list),
		get("/catalog/:model", reader, s.catalog().page),
		get("/quotas", reader, s.limits().page),
		get("/activity", reader, s.activity().page),
		get("/search", reader, s.search().page),
		get("/admin", operator, s.admin().page),
	}
}

// fragments are the parts of pages that change by themselves, and the answers
// of forms while they are filled in.
func (s *site) fragments() []route {
	gpu, vm, vmForms := s.gpus(), s.vms(), s.vmForms()
	return []route{
		get("/fragments/nav", signedIn, s.nav),
		get("/fragments/palette", reader, s.search().palette),
		get("/fragments/overview", reader, s.overview().fragment),
		get("/fragments/gpus", reader, gpu.listFragment),
		get("/fragments/gpus/new", writer, gpu.formFragment),
		get("/fragments/gpus/:id", reader, gpu.fragment),
		get("/fragments/vms", reader, vm.listFragment),
		get("/fragments/vms/new", writer, vmForms.createFragment),
		get("/fragments/vms/:id", reader, vm.fragment),
		get("/fragments/vms/:id/resize", writer, vmForms.resizeFragment),
		get("/fragments/catalog", reader, s.catalog().listFragment),
		get("/fragments/catalog/:model", reader, s.catalog().fragment),
		get("/fragments/quotas", reader, s.limits().fragment),
		get("/fragments/activity", reader, s.activity().fragment),
		get("/fragments/admin", operator, s.admin().fragment),
	}
}

// actions are the writes.
func (s *site) actions() []route {
	gpu, vm, vmForms := s.gpuActions(), s.vmActions(), s.vmForms()
	return []route{
		post("/gpus", writer, gpu.allocate),
		post("/gpus/bulk", writer, gpu.bulk),
		post("/gpus/:id/attach", writer, gpu.attach),
		post("/gpus/:id/detach", writer, gpu.detach),
		post("/gpus/:id/release", writer, gpu.release),
		post("/gpus/:id/rename", writer, gpu.rename),
		post("/gpus/:id/on-deletion", writer, gpu.onDeletion),
		post("/vms", writer, vmForms.make),
		post("/vms/:id/power", writer, vm.power),
		post("/vms/:id/gpus", writer, vm.attach),
		post("/vms/:id/resize", writer, vmForms.convert),
		post("/vms/:id/delete", writer, vm.remove),
		post("/operations/:id/retry", writer, vm.retry),
		post("/operations/:id/cancel", writer, vm.cancel),
	}
}

// operators are the pages and writes of those who run the platform.
func (s *site) operators() []route {
	host, card, account := s.hosts(), s.cards(), s.accountPages()
	operation, agent, log := s.operationPages(), s.agentPages(), s.audit()
	return []route{
		get("/admin/hosts", operator, host.list),
		get("/fragments/admin/hosts", operator, host.listFragment),
		post("/admin/hosts/bulk", operator, host.bulk),
		get("/admin/hosts/:id", operator, host.page),
		get("/fragments/admin/hosts/:id", operator, host.fragment),
		post("/admin/hosts/:id/mode", operator, host.setMode),
		get("/admin/cards", operator, card.list),
		get("/fragments/admin/cards", operator, card.listFragment),
		post("/admin/cards/bulk", operator, card.bulk),
		get("/admin/cards/:id", operator, card.page),
		get("/fragments/admin/cards/:id", operator, card.fragment),
		post("/admin/cards/:id/condition", operator, card.setCondition),
		get("/admin/catalog", operator, s.models().index),
		get("/admin/catalog/models/new", operator, s.models().newModel),
		post("/admin/catalog/models", operator, s.models().addModel),
		get("/admin/catalog/models/:model", operator, s.models().model),
		post("/admin/catalog/models/:model", operator, s.models().changeModel),
		post("/admin/catalog/models/:model/offers", operator, s.models().saveOffer),
		post("/admin/catalog/models/:model/delete", operator, s.models().deleteModel),
		get("/admin/catalog/types/new", operator, s.models().newType),
		post("/admin/catalog/types", operator, s.models().addType),
		get("/admin/catalog/types/:name", operator, s.models().vmType),
		post("/admin/catalog/types/:name", operator, s.models().changeType),
		post("/admin/catalog/types/:name/delete", operator, s.models().deleteType),

		get("/admin/capacity", operator, s.capacity().page),
		get("/fragments/admin/capacity", operator, s.capacity().fragment),

		get("/admin/accounts", operator, account.list),
		get("/fragments/admin/accounts", operator, account.listFragment),
		post("/admin/accounts", operator, account.open),
		get("/admin/accounts/:id", operator, account.page),
		get("/fragments/admin/accounts/:id", operator, account.fragment),
		post("/admin/accounts/:id/state", operator, account.setState),
		post("/admin/accounts/:id/members", operator, account.setMember),
		get("/admin/quotas", operator, account.quotaList),
		get("/fragments/admin/quotas", operator, account.quotaFragment),
		post("/admin/quotas", operator, account.setQuota),

		get("/admin/operations", operator, operation.list),
		get("/fragments/admin/operations", operator, operation.fragment),
		post("/admin/operations/:id/retry", operator, operation.retry),
		post("/admin/operations/:id/cancel", operator, operation.cancel),

		get("/admin/agents", operator, agent.list),
		get("/fragments/admin/agents", operator, agent.fragment),
		post("/admin/agents/tokens", operator, agent.makeToken),
		post("/admin/agents/tokens/:id/revoke", operator, agent.revokeToken),
		post("/admin/agents/:id/revoke", operator, agent.revoke),

		get("/admin/activity", operator, log.page),
		get("/fragments/admin/activity", operator, log.fragment),
		get("/admin/activity/export.csv", operator, log.exportCSV),
		get("/admin/activity/export.jsonl", operator, log.exportJSON),
	}
}
