// Package signin is the page where one signs in.
package signin

import (
	"berth/services"
	"berth/web/layout"
)

// Page is the sign-in form. It is posted to urls.Login as email, password and
// next.
type Page struct {
	layout.Frame
	Email     string // as typed before, when it was refused
	Next      string // the path to go on to; empty: the overview
	SignedOut bool   // the session has just ended
	Broken    []services.Violation
}
