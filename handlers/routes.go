package handlers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// permission says who may call a route.
type permission int

// The permissions. The zero value is none, so that a route cannot be forgotten.
const (
	unlisted permission = iota
	public              // anybody
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

// register adds the table's routes. GET answers HEAD as well.
func register(e *echo.Echo, table []route, handle func(route) echo.HandlerFunc) error {
	for _, r := range table {
		if r.may == unlisted || r.do == nil {
			return fmt.Errorf("route %s %s says not who may call it, or does nothing", r.method, r.path)
		}
		e.Add(r.method, r.path, handle(r))
		if r.method == http.MethodGet {
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
	return slices.Concat(s.common(), s.views(), s.fragments(), s.actions())
}

// common are the routes of machines and sessions.
func (s *site) common() []route {
	machine, session := s.machine(), s.sessions()
	return []route{
		get("/healthz", public, machine.alive),
		get("/readyz", public, machine.ready),
		get("/metrics", public, machine.figures),
		get("/static/*", public, machine.static),
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
	gpu := s.gpus()
	return []route{
		get("/", reader, s.overview().page),
		get("/gpus", reader, gpu.list),
		get("/gpus/new", writer, gpu.form),
		get("/gpus/:id", reader, gpu.page),
	}
}

// fragments are the parts of pages that change by themselves, and the answers
// of forms while they are filled in.
func (s *site) fragments() []route {
	gpu := s.gpus()
	return []route{
		get("/fragments/nav", signedIn, s.nav),
		get("/fragments/overview", reader, s.overview().fragment),
		get("/fragments/gpus", reader, gpu.listFragment),
		get("/fragments/gpus/new", writer, gpu.formFragment),
		get("/fragments/gpus/:id", reader, gpu.fragment),
	}
}

// actions are the writes.
func (s *site) actions() []route {
	gpu := s.gpuActions()
	return []route{
		post("/gpus", writer, gpu.allocate),
		post("/gpus/bulk", writer, gpu.bulk),
		post("/gpus/:id/attach", writer, gpu.attach),
		post("/gpus/:id/detach", writer, gpu.detach),
		post("/gpus/:id/release", writer, gpu.release),
		post("/gpus/:id/rename", writer, gpu.rename),
		post("/gpus/:id/on-deletion", writer, gpu.onDeletion),
	}
}
