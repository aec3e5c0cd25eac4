// Package tenancy is who may do what: users, accounts, members, quotas, sign-in
// and sessions.
package tenancy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"

	"berth/db"
	"berth/services"
)

// How long a session lasts without use, and how often its end is moved.
const (
	sessionLife   = 12 * time.Hour
	sessionExtend = time.Hour
)

// A sign-in is refused after so many failures for one address within the window.
const (
	maxFailures   = 10
	failureWindow = 5 * time.Minute
)

// Service signs people in and answers for them.
type Service struct {
	db     *db.DB
	now    func() time.Time
	random io.Reader
	params *argon2id.Params
	decoy  string // hash that a sign-in with an unknown address is checked against, so that both take as long
}

// Options adjust a service; the zero value is right for production.
type Options struct {
	Now    func() time.Time // time.Now
	Random io.Reader        // crypto/rand.Reader
	Params *argon2id.Params // argon2id.DefaultParams
}

// New makes a service over a database.
func New(d *db.DB, o Options) (*Service, error) {
	s := &Service{db: d, now: o.Now, random: o.Random, params: o.Params}
	if s.now == nil {
		s.now = time.Now
	}
	if s.random == nil {
		s.random = rand.Reader
	}
	if s.params == nil {
		s.params = argon2id.DefaultParams
	}
	var err error
	s.decoy, err = argon2id.CreateHash("decoy", s.params)
	return s, services.Wrap("hash decoy password", err)
}

// Session is somebody signed in, looking at one account.
type Session struct {
	Token     string // the cookie's value
	User      services.UserID
	Email     string
	Admin     bool               // of the platform
	Locale    string             // empty: by browser
	Account   services.AccountID // empty: member of none
	Role      services.Role
	Suspended bool   // the account looked at
	Region    string // empty: all
	Accounts  []db.Membership
}

// SignIn checks e-mail and password and opens a session. Refusals:
// bad-credentials (unauthorized), too-many-tries (throttled).
func (s *Service) SignIn(ctx context.Context, email, password string) (Session, error) {
	email = strings.TrimSpace(email)
	if email == "" || len(email) > maxEmail || !printable(email) {
		return Session{}, badCredentials()
	}
	now := s.now()
	failures, err := s.db.SignInFailures(ctx, email, now.Add(-failureWindow))
	if err != nil {
		return Session{}, err
	}
	if failures >= maxFailures {
		return Session{}, services.Fail(services.KindThrottled, services.CodeTooManyTries, map[string]any{"Minutes": int(failureWindow.Minutes())})
	}
	u, err := s.check(ctx, email, password)
	if err != nil {
		return Session{}, err
	}
	if err := s.db.ClearSignInFailures(ctx, email); err != nil {
		return Session{}, err
	}
	return s.open(ctx, u)
}

const maxEmail = 254

func (s *Service) check(ctx context.Context, email, password string) (db.User, error) {
	u, known, err := s.db.UserByEmail(ctx, email)
	if err != nil {
		return u, err
	}
	hash := s.decoy
	if known {
		hash = u.PasswordHash
	}
	match, err := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil {
		return u, fmt.Errorf("compare password of %s: %w", u.ID, err)
	}
	if known && match {
		return u, nil
	}
	if err := s.db.AddSignInFailure(ctx, email, s.now()); err != nil {
		return u, err
	}
	return u, badCredentials()
}

func badCredentials() error {
	return services.Fail(services.KindUnauthorized, services.CodeBadCredentials, nil)
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

func (s *Service) open(ctx context.Context, u db.User) (Session, error) {
	raw := make([]byte, 32)
	if _, err := io.ReadFull(s.random, raw); err != nil {
		return Session{}, fmt.Errorf("draw session token: %w", err)
	}
	token := base64.RawURLEncoding.EncodeToString(raw)
	accounts, err := s.db.Memberships(ctx, u.ID)
	if err != nil {
		return Session{}, err
	}
	var first services.AccountID
	if len(accounts) > 0 {
		first = accounts[0].Account
	}
	if err := s.db.InsertSession(ctx, hashToken(token), u.ID, first, s.now(), s.now().Add(sessionLife)); err != nil {
		return Session{}, err
	}
	return s.Session(ctx, token)
}

// Session finds the session of a cookie, and moves its end: somebody is at
// work. Without one the refusal is signed-out (unauthorized). An account that
// the user has left meanwhile is not looked at.
func (s *Service) Session(ctx context.Context, token string) (Session, error) {
	x, expires, err := s.find(ctx, token)
	if err != nil {
		return Session{}, err
	}
	if expires.Sub(s.now()) < sessionLife-sessionExtend {
		if err := s.db.ExtendSession(ctx, hashToken(token), s.now().Add(sessionLife)); err != nil {
			return Session{}, err
		}
	}
	return x, nil
}

// Peek is Session for what a page does by itself: it does not move the end.
func (s *Service) Peek(ctx context.Context, token string) (Session, error) {
	x, _, err := s.find(ctx, token)
	return x, err
}

func (s *Service) find(ctx context.Context, token string) (Session, time.Time, error) {
	signedOut := services.Fail(services.KindUnauthorized, services.CodeSignedOut, nil)
	if token == "" {
		return Session{}, time.Time{}, signedOut
	}
	x, ok, err := s.db.Session(ctx, hashToken(token), s.now())
	if err != nil {
		return Session{}, time.Time{}, err
	}
	if !ok {
		return Session{}, time.Time{}, signedOut
	}
	out := Session{Token: token, User: x.User, Email: x.Email, Admin: x.Admin, Locale: x.Locale, Region: x.Region}
	if out.Accounts, err = s.db.Memberships(ctx, x.User); err != nil {
		return Session{}, time.Time{}, err
	}
	out.look(x.Account)
	return out, x.ExpiresAt, nil
}

// look sets the account, or the first where the user is no member of it.
func (x *Session) look(account services.AccountID) {
	for i, m := range x.Accounts {
		if m.Account == account || i == 0 {
			x.Account, x.Role, x.Suspended = m.Account, m.Role, m.Suspended
		}
	}
}

// Actor is the session's user in the account looked at, asking from an address.
func (x Session) Actor(requestID, address string) services.Actor {
	return services.Actor{User: x.User, Email: x.Email, Account: x.Account, Role: x.Role, Suspended: x.Suspended, RequestID: requestID, Address: address}
}

// SessionHash names a session in announcements without giving its token away.
func SessionHash(token string) string { return fmt.Sprintf("%x", hashToken(token)) }

func hashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// SignOut ends a session.
func (s *Service) SignOut(ctx context.Context, token string) error {
	return s.db.DeleteSession(ctx, hashToken(token))
}

// LookAt changes the account that a session looks at; one the user is no
// member of is not found.
func (s *Service) LookAt(ctx context.Context, x Session, account services.AccountID) error {
	for _, m := range x.Accounts {
		if m.Account == account {
			return s.db.SetSessionView(ctx, hashToken(x.Token), account, x.Region)
		}
	}
	return services.NotFound("account", string(account))
}

// LookIn changes the region that a session looks at; empty: all.
func (s *Service) LookIn(ctx context.Context, x Session, region string) error {
	zones, err := s.db.Zones(ctx)
	if err != nil {
		return err
	}
	regions := []string{}
	for _, z := range zones {
		if !slices.Contains(regions, z.Region) {
			regions = append(regions, z.Region)
		}
	}
	if region != "" && !slices.Contains(regions, region) {
		return services.NoneOf("region", region, regions...)
	}
	return s.db.SetSessionView(ctx, hashToken(x.Token), x.Account, region)
}

// SetLocale remembers a user's language; empty: by browser.
func (s *Service) SetLocale(ctx context.Context, x Session, locale string) error {
	return s.db.SetLocale(ctx, x.User, locale)
}

// Tidy removes expired sessions and other rows that only age makes useless.
func (s *Service) Tidy(ctx context.Context) error { return s.db.DeleteStale(ctx, s.now()) }
