package handlers

import (
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"berth/web/urls"
)

func nothing(*request) error { return nil }

func handleNothing(route) echo.HandlerFunc { return func(echo.Context) error { return nil } }

func TestARouteWithoutAPermissionKeepsTheConsoleFromStarting(t *testing.T) {
	for name, r := range map[string]route{
		"no permission": {http.MethodGet, "/x", unlisted, nothing},
		"no handler":    {http.MethodGet, "/x", public, nil},
	} {
		if err := register(newEcho(), []route{r}, handleNothing); err == nil || !strings.Contains(err.Error(), "GET /x") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestARouteBesideTheTableKeepsTheConsoleFromStarting(t *testing.T) {
	e := newEcho()
	e.POST("/backdoor", func(echo.Context) error { return nil })
	if err := register(e, []route{get("/x", public, nothing)}, handleNothing); err == nil || !strings.Contains(err.Error(), "POST /backdoor") {
		t.Errorf("got %v", err)
	}
}

// site without services: enough to list its routes.
func emptySite() *site { return &site{metrics: newMetrics("")} }

func TestNothingIsPublicButWhatMustBe(t *testing.T) {
	for _, r := range emptySite().table() {
		write := r.method == http.MethodPost
		session := strings.HasPrefix(r.path, "/session/") || r.path == urls.Login || r.path == urls.Logout
		machine := r.path == "/healthz" || r.path == "/readyz" || r.path == "/metrics" || r.path == "/static/*"
		switch {
		case (r.may == public && !session) || (r.may == anybody && !machine):
			t.Errorf("%s %s is public", r.method, r.path)
		case write && !session && r.may != writer && r.may != operator:
			t.Errorf("%s %s writes, and may be called by more than writers", r.method, r.path)
		case strings.Contains(r.path, "/admin") && r.may != operator:
			t.Errorf("%s %s may be called by others than operators", r.method, r.path)
		}
	}
}

func TestEveryAddressThatPagesNameHasARoute(t *testing.T) {
	e := newEcho()
	if err := register(e, emptySite().table(), handleNothing); err != nil {
		t.Fatal(err)
	}
	const gpu, vm, op = "fgpu-00000000", "i-00000000", "op-00000000"
	const host, card, acc, agent = "host-00000000", "card-00000000", "acc-00000000", "agent-00000000"
	addresses := map[string][]string{
		http.MethodGet: {
			urls.Home, urls.Login, urls.Events, urls.OverviewFragment, urls.Nav("gpus"), urls.GPUs(urls.GPUQuery{}), urls.GPUsFragment(urls.GPUQuery{}),
			urls.NewGPU(urls.Allocation{}), urls.NewGPUFragment, urls.GPU(gpu), urls.GPUFragment(gpu), urls.VMs(urls.VMQuery{}),
			urls.VMsFragment(urls.VMQuery{}), urls.NewVM, urls.NewVMFragment, urls.VM(vm), urls.VMFragment(vm), urls.VMResize(vm),
			urls.VMResizeTo(vm, "u1.large"), urls.VMResizeFragment(vm),
			urls.Admin, urls.AdminFragment, urls.AdminHosts, urls.Host(host), urls.AdminCards, urls.Card(card), urls.AdminAccounts, urls.AdminAccount(acc),
			urls.AdminQuotas, urls.AdminOperations, urls.AdminAgents, urls.AdminActivity, urls.AdminExport("csv"), urls.AdminExport("jsonl"),
			urls.AdminCapacity, urls.AdminCatalog,
			urls.Fragment(urls.AdminHosts), urls.Fragment(urls.Host(host)), urls.Fragment(urls.AdminCards), urls.Fragment(urls.Card(card)),
			urls.Fragment(urls.AdminAccounts), urls.Fragment(urls.AdminAccount(acc)), urls.Fragment(urls.AdminQuotas), urls.Fragment(urls.AdminOperations),
			urls.Fragment(urls.AdminAgents), urls.Fragment(urls.AdminActivity), urls.Fragment(urls.AdminCapacity),
		},
		http.MethodPost: {
			urls.Login, urls.Logout, urls.Account, urls.Region, urls.Language, urls.Theme, urls.GPUsBulk, urls.GPUs(urls.GPUQuery{}), urls.GPUAttach(gpu),
			urls.GPUDetach(gpu), urls.GPURelease(gpu), urls.GPURename(gpu), urls.GPUOnDeletion(gpu), urls.VMs(urls.VMQuery{}), urls.VMPower(vm),
			urls.VMGPUs(vm), urls.VMResize(vm), urls.VMDelete(vm), urls.OperationRetry(op), urls.OperationCancel(op),
			urls.HostsBulk, urls.HostMode(host), urls.CardsBulk, urls.CardCondition(card), urls.AdminAccounts, urls.AccountState(acc),
			urls.AccountMembers(acc), urls.AdminQuotas, urls.AdminTokens, urls.TokenRevoke("1"), urls.AgentRevoke(agent),
			urls.AdminOperationRetry(op), urls.AdminOperationCancel(op),
		},
	}
	for method, all := range addresses {
		for _, address := range all {
			path, _, _ := strings.Cut(address, "?")
			c := e.NewContext(nil, nil)
			e.Router().Find(method, path, c)
			if c.Path() == "" || c.Handler() == nil {
				t.Errorf("%s %s has no route", method, path)
			}
		}
	}
}
