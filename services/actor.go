package services

// Actor is who asks for something: a member looking at one account.
type Actor struct {
	User      UserID
	Email     string
	Account   AccountID
	Role      Role
	RequestID string // of the HTTP request, kept with the event
}

// MayWrite refuses a viewer.
func (a Actor) MayWrite() error {
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
