package tenancy

import (
	"context"
	"fmt"

	"github.com/alexedwards/argon2id"

	"berth/db"
	"berth/services"
)

// EnsureUser adds a user. A known one gets the password, which ends their
// sessions where it is another than before, and becomes an operator where admin
// is set.
func (s *Service) EnsureUser(ctx context.Context, email, password string, admin bool) (services.UserID, error) {
	u, known, err := s.db.UserByEmail(ctx, email)
	if err != nil {
		return "", err
	}
	if known {
		return u.ID, s.update(ctx, u, password, admin)
	}
	hash, err := argon2id.CreateHash(password, s.params)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	id, err := services.NewID[services.UserID](s.random)
	if err != nil {
		return "", err
	}
	return id, s.db.Tx(ctx, func(tx *db.Tx) error {
		return tx.InsertUser(ctx, db.User{ID: id, Email: email, PasswordHash: hash, Admin: admin}, s.now())
	})
}

func (s *Service) update(ctx context.Context, u db.User, password string, admin bool) error {
	if admin && !u.Admin {
		if err := s.db.SetAdmin(ctx, u.ID); err != nil {
			return err
		}
	}
	same, err := argon2id.ComparePasswordAndHash(password, u.PasswordHash)
	if err != nil || same {
		return services.Wrap("compare password", err)
	}
	hash, err := argon2id.CreateHash(password, s.params)
	if err != nil {
		return fmt.Errorf("hash password: %w", err)
	}
	return s.db.SetPassword(ctx, u.ID, hash)
}

// CreateAccount adds an account that a user owns.
func (s *Service) CreateAccount(ctx context.Context, name string, owner services.UserID) (services.AccountID, error) {
	id, err := services.NewID[services.AccountID](s.random)
	if err != nil {
		return "", err
	}
	return id, s.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.InsertAccount(ctx, id, name, s.now()); err != nil {
			return err
		}
		return tx.AddMember(ctx, id, owner, services.RoleOwner)
	})
}

// AddMember gives a user a role in an account.
func (s *Service) AddMember(ctx context.Context, account services.AccountID, user services.UserID, role services.Role) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error { return tx.AddMember(ctx, account, user, role) })
}

// SetQuota sets how many GPUs of a model an account may have in a region; nil: unlimited.
func (s *Service) SetQuota(ctx context.Context, account services.AccountID, region, model string, limit *int) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error { return tx.SetQuota(ctx, account, region, model, limit) })
}

// Accounts lists a user's accounts by name.
func (s *Service) Accounts(ctx context.Context, user services.UserID) ([]db.Membership, error) {
	return s.db.Memberships(ctx, user)
}
