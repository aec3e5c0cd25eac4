package services

// Actor is who asks for something: a member looking at one account.
type Actor struct {
	User      UserID
	Email     string
	Account   AccountID
	Role      Role
	RequestID string // of the HTTP request, kept with the event
	Address   string // of the client, likewise
	Suspended bool   // the account: its members read, and change nothing
}

// MayWrite refuses a viewer, and everybody in a suspended account.
func (a Actor) MayWrite() error {
	if a.Suspended {
		return Fail(KindForbidden, CodeSuspended, nil)
	}
	if a.Role.CanWrite() {
		return nil
	}
	return Fail(KindForbidden, CodeForbidden, map[string]any{"Role": string(a.Role)})
}

// ActorConsole and ActorHost stand for the console and the hosts' agents in
// events that no person caused.
const (
	ActorConsole = "console"
	ActorHost    = "host"
)

// ActorOperator stands for whoever operates the platform in what a tenant
// reads; the operator's own log has the name.
const ActorOperator = "operator"

// Resources are what an account has quotas for beside GPUs. Memory is in GiB.
var Resources = []string{"vcores", "memory", "vms", "clusters"}
