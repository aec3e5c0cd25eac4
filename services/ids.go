package services

import (
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
)

// Identifiers are a prefix and eight hexadecimal digits, e.g. "fgpu-1f8a33b2".
type (
	// AccountID names a tenant: "acc-" + 8 hex digits.
	AccountID string
	// UserID names a person: "usr-" + 8 hex digits.
	UserID string
	// GPUID names a GPU that an account holds: "fgpu-" + 8 hex digits.
	GPUID string
	// VMID names a virtual machine: "i-" + 8 hex digits.
	VMID string
	// CardID names a physical GPU: "card-" + 8 hex digits.
	CardID string
	// HostID names a machine with cards: "host-" + 8 hex digits.
	HostID string
	// AgentID names the program that serves one or more hosts: "agent-" + 8 hex digits.
	AgentID string
	// OperationID names a running change of a VM: "op-" + 8 hex digits.
	OperationID string
)

// ID is any identifier of this package.
type ID interface {
	AccountID | UserID | GPUID | VMID | CardID | HostID | AgentID | OperationID
}

var suffix = regexp.MustCompile(`^[0-9a-f]{8}$`)

func prefixOf[T ID]() string {
	var zero T
	switch any(zero).(type) {
	case AccountID:
		return "acc-"
	case UserID:
		return "usr-"
	case GPUID:
		return "fgpu-"
	case VMID:
		return "i-"
	case CardID:
		return "card-"
	case HostID:
		return "host-"
	case AgentID:
		return "agent-"
	default:
		return "op-"
	}
}

// NewID draws an identifier from random, which is crypto/rand.Reader outside tests.
func NewID[T ID](random io.Reader) (T, error) {
	var b [4]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("draw identifier: %w", err)
	}
	return T(prefixOf[T]() + hex.EncodeToString(b[:])), nil
}

// ParseID reads an identifier as a user typed it. A text of another form is
// reported as not found, since nothing can stand under it.
func ParseID[T ID](s string) (T, error) {
	p := prefixOf[T]()
	if len(s) <= len(p) || s[:len(p)] != p || !suffix.MatchString(s[len(p):]) {
		return "", NotFound("object", s)
	}
	return T(s), nil
}
