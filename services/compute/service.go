// Package compute is what tenants do with GPUs and VMs: allocation, attachment,
// power, resize, placement. Every rule is checked within the transaction that
// writes, under the lock of what it is about; the schema's constraints stand
// behind it.
//
// Locks are taken in one order: the account, the VM, its GPUs, cards, and last
// the agent's revision.
package compute

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"berth/db"
	"berth/services"
)

// Service answers tenants and follows what the agents report.
type Service struct {
	db     *db.DB
	log    *slog.Logger
	now    func() time.Time
	random io.Reader
	waits  Waits
}

// Options adjust a service; the zero value is right for production.
type Options struct {
	Log    *slog.Logger     // slog.Default()
	Now    func() time.Time // time.Now
	Random io.Reader        // crypto/rand.Reader
	Waits  Waits            // DefaultWaits for each that is zero
}

// New makes a service over a database.
func New(d *db.DB, o Options) *Service {
	s := &Service{db: d, log: o.Log, now: o.Now, random: o.Random, waits: o.Waits.orDefault()}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.random == nil {
		s.random = rand.Reader
	}
	return s
}

// once runs a write in a transaction. Under an idempotency key a repeat changes
// nothing and gets the first answer, which is the id of the object concerned.
func (s *Service) once(ctx context.Context, a services.Actor, key string, request any, write func(*db.Tx) (string, error)) (string, error) {
	if err := a.MayWrite(); err != nil {
		return "", err
	}
	var answer string
	err := s.db.Tx(ctx, func(tx *db.Tx) error {
		var repeated bool
		var err error
		if key != "" {
			if answer, repeated, err = s.claim(ctx, tx, a, key, request); err != nil || repeated {
				return err
			}
		}
		if answer, err = write(tx); err != nil || key == "" {
			return err
		}
		return tx.Answer(ctx, a.User, key, answer)
	})
	return answer, err
}

const maxKey = 200

func (s *Service) claim(ctx context.Context, tx *db.Tx, a services.Actor, key string, request any) (string, bool, error) {
	if len(key) > maxKey {
		return "", false, services.Invalid("idempotency_key", services.CodeTooLong, map[string]any{"Max": maxKey})
	}
	encoded, err := json.Marshal([]any{a.Account, fmt.Sprintf("%T", request), request})
	if err != nil {
		return "", false, fmt.Errorf("encode request: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return tx.Claim(ctx, a.User, key, sum[:], s.now())
}

func (s *Service) event(a services.Actor, kind string, data map[string]any) db.Event {
	return db.Event{At: s.now(), Kind: kind, Actor: a.Email, RequestID: a.RequestID, Address: a.Address, Data: data}
}

// console is the actor of what no person asked for.
var console = services.Actor{Email: services.ActorConsole}

// host is the actor of what an agent reported.
var host = services.Actor{Email: services.ActorHost}

const maxName = 100

// name checks an object's name: trimmed, at most 100 characters, on one line.
func name(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", services.Invalid("name", services.CodeRequired, nil)
	case utf8.RuneCountInString(text) > maxName:
		return "", services.Invalid("name", services.CodeTooLong, map[string]any{"Max": maxName})
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", services.Invalid("name", services.CodeInvalidValue, map[string]any{"Value": ""})
	}
	return text, nil
}
