package hostagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/services/agentapi"
)

// Blocked is an error with what the console shows of it. Since and Final of its
// Problem are the agent's to fill in.
type Blocked struct {
	Problem agentapi.Problem
	Cause   error // nil: the problem says it all
}

// Block makes a Blocked about a card; card is empty where it is about none.
func Block(code, card, format string, args ...any) *Blocked {
	return &Blocked{Problem: agentapi.Problem{Code: code, Card: card, Message: fmt.Sprintf(format, args...)}}
}

// Error gives code, message and cause.
func (b *Blocked) Error() string {
	s := b.Problem.Code + ": " + b.Problem.Message
	if b.Cause != nil {
		s += ": " + b.Cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (b *Blocked) Unwrap() error { return b.Cause }

// problemOf turns any error of a step into what the console shows.
func problemOf(err error, act action, timeout time.Duration) agentapi.Problem {
	if b, ok := errors.AsType[*Blocked](err); ok {
		return b.Problem
	}
	p := agentapi.Problem{Code: act.failure(), Message: err.Error()}
	if errors.Is(err, context.DeadlineExceeded) {
		p.Message = fmt.Sprintf("not done after %s: %s", timeout, err)
	}
	return p
}

// foreseen tells the problems that are found before anything is touched, so
// that trying again after each change of the host costs nothing.
func foreseen(code string) bool {
	return code == agentapi.ProblemInUse || code == agentapi.ProblemIdentity || code == agentapi.ProblemGroup
}
