package urls

import (
	"net/url"

	"berth/services"
)

// ListQuery narrows, sorts and pages a list of the operator's. Each list uses
// the parameters that make sense for it; the zero value is its first page.
type ListQuery struct {
	Text    string // q: part of a name, an identifier, a serial or an address
	Region  string
	Zone    string
	Model   string
	State   string
	Account string
	Version string // of an agent
	Host    string
	Actor   string // of an event
	Object  string // of an event: the identifier that it is about
	From    string // of an event: the first day, "2025-12-01"
	Until   string // of an event: the last day
	Sort    string
	After   string // the last row of the page before
}

// Values are the query's parameters, without the empty ones.
func (l ListQuery) Values() url.Values {
	q := url.Values{}
	set(q, "q", l.Text)
	set(q, "region", l.Region)
	set(q, "zone", l.Zone)
	set(q, "model", l.Model)
	set(q, "state", l.State)
	set(q, "account", l.Account)
	set(q, "version", l.Version)
	set(q, "host", l.Host)
	set(q, "actor", l.Actor)
	set(q, "object", l.Object)
	set(q, "from", l.From)
	set(q, "until", l.Until)
	set(q, "sort", l.Sort)
	set(q, "after", l.After)
	return q
}

// Narrowed reports whether the query leaves anything out.
func (l ListQuery) Narrowed() bool {
	l.Sort, l.After = "", ""
	return l != ListQuery{}
}

// On is a list's page with the query.
func (l ListQuery) On(path string) string { return with(path, l.Values()) }

// The operator's lists and pages without parameters of their own.
const (
	AdminHosts      = "/admin/hosts"
	AdminCards      = "/admin/cards"
	AdminCapacity   = "/admin/capacity"
	AdminAccounts   = "/admin/accounts" // POST name, email
	AdminQuotas     = "/admin/quotas"   // POST account, region, model or resource, limit
	AdminCatalog    = "/admin/catalog"
	AdminAgents     = "/admin/agents"
	AdminTokens     = "/admin/agents/tokens" // POST zone, life
	AdminOperations = "/admin/operations"
	AdminActivity   = "/admin/activity"

	HostsBulk = "/admin/hosts/bulk" // POST host (repeated), mode, reason
	CardsBulk = "/admin/cards/bulk" // POST card (repeated), action, reason
)

// Fragment is the part of an operator's page, by its path, that changes by itself.
func Fragment(page string) string { return "/fragments" + page }

// Host is a host's page.
func Host(id services.HostID) string { return AdminHosts + "/" + string(id) }

// HostMode takes POST mode, reason, confirm.
func HostMode(id services.HostID) string { return Host(id) + "/mode" }

// Card is a card's page.
func Card(id services.CardID) string { return AdminCards + "/" + string(id) }

// CardCondition takes POST action, reason, confirm.
func CardCondition(id services.CardID) string { return Card(id) + "/condition" }

// AdminAccount is an account's page.
func AdminAccount(id services.AccountID) string { return AdminAccounts + "/" + string(id) }

// AccountState takes POST action ("suspend" or "resume"), reason.
func AccountState(id services.AccountID) string { return AdminAccount(id) + "/state" }

// AccountMembers takes POST email, role ("" removes).
func AccountMembers(id services.AccountID) string { return AdminAccount(id) + "/members" }

// AgentRevoke takes POST confirm.
func AgentRevoke(id services.AgentID) string { return AdminAgents + "/" + string(id) + "/revoke" }

// TokenRevoke takes POST.
func TokenRevoke(id string) string { return AdminTokens + "/" + url.PathEscape(id) + "/revoke" }

// AdminOperationRetry takes POST idempotency_key.
func AdminOperationRetry(id services.OperationID) string {
	return AdminOperations + "/" + string(id) + "/retry"
}

// AdminOperationCancel takes POST idempotency_key.
func AdminOperationCancel(id services.OperationID) string {
	return AdminOperations + "/" + string(id) + "/cancel"
}

// AdminExport is the operator's log as a file; the query is the page's.
func AdminExport(format string) string { return AdminActivity + "/export." + format }

// The catalogue's forms.
const (
	AdminModels   = AdminCatalog + "/models" // POST adds a model
	AdminTypes    = AdminCatalog + "/types"  // POST adds a type
	NewAdminModel = AdminModels + "/new"
	NewAdminType  = AdminTypes + "/new"
)

// AdminModel is a model's form; POST changes it, /offers how it is offered in a
// region, /delete removes it.
func AdminModel(id string) string { return AdminModels + "/" + url.PathEscape(id) }

// AdminType is a named VM type's form; POST changes it, /delete removes it.
func AdminType(name string) string { return AdminTypes + "/" + url.PathEscape(name) }
