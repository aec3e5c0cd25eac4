package db

import (
	"context"
	"time"

	"berth/services"
)

// User is a person who signs in.
type User struct {
	ID           services.UserID `db:"id"`
	Email        string          `db:"email"`
	PasswordHash string          `db:"password_hash"`
	Admin        bool            `db:"admin"`
	Locale       string          `db:"locale"`
}

// UserByEmail finds a user; capitals in the address do not matter.
func (s Store) UserByEmail(ctx context.Context, email string) (u User, ok bool, err error) {
	ok, err = s.found(ctx, &u, "find user", `
		select id, email, password_hash, admin, locale from users where lower(email) = lower($1)`, email)
	return u, ok, err
}

// InsertUser adds a user.
func (t *Tx) InsertUser(ctx context.Context, u User, now time.Time) error {
	_, err := t.exec(ctx, "insert user", `
		insert into users (id, email, password_hash, admin, created_at) values ($1, $2, $3, $4, $5)`,
		u.ID, u.Email, u.PasswordHash, u.Admin, now)
	return err
}

// SetPassword changes a user's password and ends every session of theirs.
func (s Store) SetPassword(ctx context.Context, id services.UserID, hash string) error {
	_, err := s.exec(ctx, "set password", `
		with changed as (update users set password_hash = $2 where id = $1 returning id),
		     gone as (delete from sessions using changed where user_id = changed.id returning token_hash)
		select pg_notify('berth_sessions', encode(token_hash, 'hex')) from gone`, id, hash)
	return err
}

// SetAdmin makes a user an operator of the platform.
func (s Store) SetAdmin(ctx context.Context, id services.UserID) error {
	_, err := s.exec(ctx, "make user an operator", `update users set admin = true where id = $1`, id)
	return err
}

// SetLocale remembers a user's language; empty: by browser.
func (s Store) SetLocale(ctx context.Context, id services.UserID, locale string) error {
	_, err := s.exec(ctx, "set language", `update users set locale = $2 where id = $1`, id, locale)
	return err
}

// InsertAccount adds an account. A name that another has, whatever the capitals,
// is taken (invalid).
func (t *Tx) InsertAccount(ctx context.Context, id services.AccountID, name string, now time.Time) error {
	n, err := t.exec(ctx, "insert account", `
		insert into accounts (id, name, created_at) values ($1, $2, $3) on conflict ((lower(name))) do nothing`, id, name, now)
	if err == nil && n == 0 {
		err = services.Invalid("name", services.CodeTaken, map[string]any{"Value": name})
	}
	return err
}

// AddMember gives a user a role in an account.
func (t *Tx) AddMember(ctx context.Context, account services.AccountID, user services.UserID, role services.Role) error {
	_, err := t.exec(ctx, "add member", `
		insert into members (account_id, user_id, role) values ($1, $2, $3)
		on conflict (account_id, user_id) do update set role = excluded.role`, account, user, role)
	return err
}

// SetQuota sets how many GPUs of a model an account may have in a region; nil: unlimited.
func (t *Tx) SetQuota(ctx context.Context, account services.AccountID, region, model string, limit *int) error {
	_, err := t.exec(ctx, "set quota", `
		insert into quotas (account_id, region_id, model_id, max) values ($1, $2, $3, $4)
		on conflict (account_id, region_id, model_id) do update set max = excluded.max`, account, region, model, limit)
	return err
}

// Membership is an account that a user belongs to.
type Membership struct {
	Account   services.AccountID `db:"account_id"`
	Name      string             `db:"name"`
	Role      services.Role      `db:"role"`
	Suspended bool               `db:"suspended"` // the account: its members read, and change nothing
	Reason    string             `db:"reason"`    // of the suspension
}

// Memberships lists a user's accounts by name.
func (s Store) Memberships(ctx context.Context, user services.UserID) ([]Membership, error) {
	var m []Membership
	err := s.all(ctx, &m, "list memberships", `
		select m.account_id, a.name, m.role, a.suspended_at is not null as suspended, a.suspended_reason as reason from members m join accounts a on a.id = m.account_id
		where m.user_id = $1 order by a.name, a.id`, user)
	return m, err
}

// Session is somebody signed in.
type Session struct {
	User      services.UserID    `db:"user_id"`
	Email     string             `db:"email"`
	Admin     bool               `db:"admin"`
	Locale    string             `db:"locale"`
	Account   services.AccountID `db:"account_id"` // empty: member of none
	Region    string             `db:"region_id"`  // empty: all
	ExpiresAt time.Time          `db:"expires_at"`
}

// InsertSession signs a user in, looking at an account (empty: none).
func (s Store) InsertSession(ctx context.Context, hash []byte, user services.UserID, account services.AccountID, now, expires time.Time) error {
	_, err := s.exec(ctx, "insert session", `
		insert into sessions (token_hash, user_id, account_id, created_at, expires_at) values ($1, $2, nullif($3, ''), $4, $5)`,
		hash, user, string(account), now, expires)
	return err
}

// Session finds a session that has not expired.
func (s Store) Session(ctx context.Context, hash []byte, now time.Time) (x Session, ok bool, err error) {
	ok, err = s.found(ctx, &x, "find session", `
		select s.user_id, u.email, u.admin, u.locale, coalesce(s.account_id, '') as account_id, coalesce(s.region_id, '') as region_id, s.expires_at
		from sessions s join users u on u.id = s.user_id where s.token_hash = $1 and s.expires_at > $2`, hash, now)
	return x, ok, err
}

// ExtendSession moves a session's end.
func (s Store) ExtendSession(ctx context.Context, hash []byte, expires time.Time) error {
	_, err := s.exec(ctx, "extend session", `update sessions set expires_at = $2 where token_hash = $1`, hash, expires)
	return err
}

// SetSessionView changes what a session looks at: its account, and its region (empty: all).
func (s Store) SetSessionView(ctx context.Context, hash []byte, account services.AccountID, region string) error {
	_, err := s.exec(ctx, "set view of session", `
		update sessions set account_id = nullif($2, ''), region_id = nullif($3, '') where token_hash = $1`, hash, string(account), region)
	return err
}

// DeleteSession signs out and tells every open page of that session.
func (s Store) DeleteSession(ctx context.Context, hash []byte) error {
	_, err := s.exec(ctx, "delete session", `
		with gone as (delete from sessions where token_hash = $1 returning token_hash)
		select pg_notify('berth_sessions', encode(token_hash, 'hex')) from gone`, hash)
	return err
}

// DeleteStale removes what only age makes useless: expired sessions, old
// failures, and keys that no client repeats any more.
func (s Store) DeleteStale(ctx context.Context, now time.Time) error {
	for _, q := range []string{
		`delete from sessions where expires_at <= $1`,
		`delete from sign_in_failures where at < cast($1 as timestamptz) - interval '1 hour'`,
		`delete from idempotency_keys where created_at < cast($1 as timestamptz) - interval '7 days'`,
	} {
		if _, err := s.exec(ctx, "delete stale rows", q, now); err != nil {
			return err
		}
	}
	return nil
}

// AddSignInFailure notes a failed sign-in.
func (s Store) AddSignInFailure(ctx context.Context, email string, now time.Time) error {
	_, err := s.exec(ctx, "note failed sign-in", `insert into sign_in_failures (email, at) values (lower($1), $2)`, email, now)
	return err
}

// SignInFailures counts failures since a time.
func (s Store) SignInFailures(ctx context.Context, email string, since time.Time) (int, error) {
	var n int
	err := s.one(ctx, &n, "count failed sign-ins", `select count(*) from sign_in_failures where email = lower($1) and at > $2`, email, since)
	return n, err
}

// ClearSignInFailures forgets failures after a successful sign-in.
func (s Store) ClearSignInFailures(ctx context.Context, email string) error {
	_, err := s.exec(ctx, "forget failed sign-ins", `delete from sign_in_failures where email = lower($1)`, email)
	return err
}
