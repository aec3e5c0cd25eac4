package services

import (
	"errors"
	"fmt"
	"strings"
)

// Kind decides how an error is answered: one HTTP status for each.
type Kind int

// The kinds of error. Internal is the zero value: an error nobody classified.
const (
	KindInternal     Kind = iota
	KindInvalid           // the input breaks a rule: 422
	KindConflict          // the object is no longer in a state that allows it: 409
	KindCapacity          // somebody else holds what was asked for: 409
	KindNotFound          // it does not exist, or is not yours: 404
	KindForbidden         // your role does not allow it: 403
	KindUnauthorized      // nobody is signed in: 401
	KindThrottled         // too many attempts: 429
	KindUnavailable       // something we depend on does not answer: 503
)

// Code is the stable word for a broken rule, the same on pages, in the API and
// in scripts (data-error).
type Code string

// The codes that users and scripts meet.
const (
	CodeVMSpecsMismatch Code = "vm-specs-mismatch"
	CodeVMDedicated     Code = "vm-dedicated"
	CodeModelMismatch   Code = "model-mismatch"
	CodeInferenceType   Code = "inference-type"
	CodeZoneMismatch    Code = "zone-mismatch"
	CodeNoCardOnHost    Code = "no-card-on-host"
	CodeNoCapacity      Code = "no-capacity"
	CodeQuotaExceeded   Code = "quota-exceeded"
	CodeWrongState      Code = "wrong-state"
	CodeVMRunning       Code = "vm-running"
	CodeInvalidType     Code = "invalid-type"

	CodeRequired       Code = "required"         // a field was left empty
	CodeInvalidValue   Code = "invalid-value"    // a field holds none of its possible values
	CodeTooLong        Code = "too-long"         // a text is longer than its field takes
	CodeInvalidKey     Code = "invalid-ssh-key"  // a text is no SSH public key
	CodeNotOffered     Code = "not-offered"      // the model is not offered in that zone's region
	CodeBadCredentials Code = "bad-credentials"  // e-mail or password is wrong
	CodeTooManyTries   Code = "too-many-tries"   // sign-in is locked for a while
	CodeKeyReused      Code = "key-reused"       // an idempotency key came with another request
	CodeBusy           Code = "busy"             // another operation on the VM is still running
	CodeSuspended      Code = "suspended"        // the account is suspended
	CodeMaintenance    Code = "host-maintenance" // the VM's host is in maintenance, and it fits nowhere else
	CodeConfirm        Code = "confirm"          // the action needs a confirmation
	CodeHeld           Code = "held"             // a card is held by a GPU
	CodeTaken          Code = "taken"            // a name or address is in use
	CodeStale          Code = "stale"            // a form was made from something that has changed since
	CodeInUse          Code = "in-use"           // something refers to what is to be deleted
	CodeMisfits        Code = "misfits"          // attachments break a limit that is to be set
	CodeLastOwner      Code = "last-owner"       // an account must keep an owner
	CodeNotFound       Code = "not-found"
	CodeForbidden      Code = "forbidden"
	CodeSignedOut      Code = "signed-out"
)

// Limit names the limit of a VM's specification that broke (data-limit).
type Limit string

// The limits of a model in a region.
const (
	LimitPerformance Limit = "performance"
	LimitVCores      Limit = "vcores"
	LimitMemory      Limit = "memory"
	LimitGeneration  Limit = "generation"

	LimitVMs Limit = "vms" // of an account; vCores and memory have one as well
)

// Violation is one broken rule. The sentence shown is the message
// "error.<code>" ("error.<code>.<limit>" where there is a limit) with Args.
type Violation struct {
	Code  Code
	Limit Limit          // which limit, of codes that have several
	Field string         // the form field it is about; empty for the whole form
	Args  map[string]any // what the sentence names: model, region, have, max, vm, ...
}

// Error is every error that a user may see. Its text is for logs; users see
// its violations, translated.
type Error struct {
	Kind       Kind
	Violations []Violation
	cause      error
}

// Error lists the codes, then the cause.
func (e *Error) Error() string {
	codes := make([]string, 0, len(e.Violations))
	for _, v := range e.Violations {
		s := string(v.Code)
		if v.Limit != "" {
			s += "(" + string(v.Limit) + ")"
		}
		if v.Field != "" {
			s += " in " + v.Field
		}
		codes = append(codes, s)
	}
	s := strings.Join(codes, ", ")
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap gives the private cause.
func (e *Error) Unwrap() error { return e.cause }

// Has reports whether a rule with that code broke.
func (e *Error) Has(code Code) bool {
	for _, v := range e.Violations {
		if v.Code == code {
			return true
		}
	}
	return false
}

// Fail makes an error of one violation.
func Fail(kind Kind, code Code, args map[string]any) *Error {
	return &Error{Kind: kind, Violations: []Violation{{Code: code, Args: args}}}
}

// Invalid reports that a form field breaks a rule.
func Invalid(field string, code Code, args map[string]any) *Error {
	return &Error{Kind: KindInvalid, Violations: []Violation{{Code: code, Field: field, Args: args}}}
}

// NoneOf reports that a form field holds none of its possible values, and names them.
func NoneOf(field, value string, possible ...string) *Error {
	return Invalid(field, CodeInvalidValue, map[string]any{"Value": value, "Allowed": strings.Join(possible, ", ")})
}

// NotFound reports that there is no such object, or that it is somebody else's.
func NotFound(what, id string) *Error {
	return Fail(KindNotFound, CodeNotFound, map[string]any{"What": what, "ID": id})
}

// Because adds a private cause.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

// ErrUnavailable is in every error of something we depend on that does not
// answer. It is no Error: no rule broke, and no form can help.
var ErrUnavailable = errors.New("unavailable")

// Wrap adds the doing to an error and keeps what it is.
func Wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// AsError finds the Error within err.
func AsError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// HasCode reports whether err carries a violation with that code.
func HasCode(err error, code Code) bool {
	e, ok := AsError(err)
	return ok && e.Has(code)
}

// KindOf gives the kind of err; KindInternal where nobody classified it.
func KindOf(err error) Kind {
	if e, ok := AsError(err); ok {
		return e.Kind
	}
	if errors.Is(err, ErrUnavailable) {
		return KindUnavailable
	}
	return KindInternal
}
