package tenancy

import (
	"context"
	"strings"
	"unicode/utf8"

	"berth/db"
	"berth/services"
)

// What operators read, as the database has it.
type (
	// AccountRow is an account of a list.
	AccountRow = db.AccountRow
	// AccountFilter narrows a list of accounts.
	AccountFilter = db.AccountFilter
	// AccountTotals counts accounts.
	AccountTotals = db.AccountTotals
	// Member is somebody who belongs to an account.
	Member = db.Member
	// Quota is a limit of an account in a region, with what is used of it.
	Quota = db.Quota
	// QuotaFilter narrows a list of quotas.
	QuotaFilter = db.QuotaFilter
)

// AccountPage is one page of accounts with the counts of all that match but for their state.
type AccountPage struct {
	Accounts []AccountRow
	Totals   AccountTotals
	Next     services.AccountID // the next page's After; empty: the last page
}

// ListAccounts gives a page of all accounts.
func (s *Service) ListAccounts(ctx context.Context, f AccountFilter) (AccountPage, error) {
	totals, err := s.db.CountAccounts(ctx, f)
	if err != nil {
		return AccountPage{}, err
	}
	limit := f.Limit
	f.Limit++
	rows, err := s.db.ListAccounts(ctx, f)
	p := AccountPage{Accounts: rows, Totals: totals}
	if limit > 0 && len(rows) > limit {
		p.Accounts, p.Next = rows[:limit], rows[limit-1].ID
	}
	return p, err
}

// AccountDetail is everything about one account.
type AccountDetail struct {
	Account AccountRow
	Members []Member
	Quotas  []Quota
	Events  []db.AuditRow // newest first
}

const (
	detailEvents = 30
	detailQuotas = 500
)

// Account gives everything about an account.
func (s *Service) Account(ctx context.Context, id services.AccountID) (AccountDetail, error) {
	var d AccountDetail
	var err error
	if d.Account, err = s.db.AccountRow(ctx, id); err != nil {
		return d, err
	}
	if d.Members, err = s.db.Members(ctx, id); err != nil {
		return d, err
	}
	if d.Quotas, err = s.db.ListQuotas(ctx, QuotaFilter{Account: id, Limit: detailQuotas}); err != nil {
		return d, err
	}
	d.Events, err = s.db.ListAudit(ctx, db.AuditFilter{Account: id, Limit: detailEvents})
	return d, err
}

const (
	maxName   = 100
	maxReason = 500
)

// line checks a text of one line: trimmed, not empty, at most max characters.
func line(field, text string, most int) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", services.Invalid(field, services.CodeRequired, nil)
	case utf8.RuneCountInString(text) > most:
		return "", services.Invalid(field, services.CodeTooLong, map[string]any{"Max": most})
	case !utf8.ValidString(text) || !printable(text):
		return "", services.Invalid(field, services.CodeInvalidValue, map[string]any{"Value": ""})
	}
	return text, nil
}

// OpenAccount adds an account for an operator, with an owner where an address
// of a user is given. Refusals (invalid): required, too-long and invalid-value,
// taken where an account has that name.
func (s *Service) OpenAccount(ctx context.Context, a services.Actor, name, ownerEmail string) (services.AccountID, error) {
	name, err := line("name", name, maxName)
	if err != nil {
		return "", err
	}
	var owner db.User
	if ownerEmail = strings.TrimSpace(ownerEmail); ownerEmail != "" {
		if owner, err = s.knownUser(ctx, ownerEmail); err != nil {
			return "", err
		}
	}
	id, err := services.NewID[services.AccountID](s.random)
	if err != nil {
		return "", err
	}
	return id, s.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.InsertAccount(ctx, id, name, s.now()); err != nil {
			return err
		}
		if owner.ID != "" {
			if err := tx.AddMember(ctx, id, owner.ID, services.RoleOwner); err != nil {
				return err
			}
		}
		return tx.InsertEvent(ctx, s.event(a, "account.opened", map[string]any{"Name": name}), db.Subject{Account: id})
	})
}

func (s *Service) knownUser(ctx context.Context, email string) (db.User, error) {
	u, known, err := s.db.UserByEmail(ctx, email)
	if err == nil && !known {
		err = services.Invalid("email", services.CodeInvalidValue, map[string]any{"Value": email})
	}
	return u, err
}

func (s *Service) event(a services.Actor, kind string, data map[string]any) db.Event {
	return db.Event{At: s.now(), Kind: kind, Actor: a.Email, RequestID: a.RequestID, Address: a.Address, Data: data}
}

// Suspend makes an account's members read only, with a reason that they see.
// What runs goes on. Asking again changes nothing.
func (s *Service) Suspend(ctx context.Context, a services.Actor, id services.AccountID, reason string) error {
	reason, err := line("reason", reason, maxReason)
	if err != nil {
		return err
	}
	at := s.now()
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		if _, err := tx.AccountRow(ctx, id); err != nil {
			return err
		}
		changed, err := tx.SetSuspended(ctx, id, &at, reason)
		if err != nil || !changed {
			return err
		}
		return tx.InsertEvent(ctx, s.event(a, "account.suspended", map[string]any{"Reason": reason}), db.Subject{Account: id})
	})
}

// Unsuspend lets an account's members write again.
func (s *Service) Unsuspend(ctx context.Context, a services.Actor, id services.AccountID) error {
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		if _, err := tx.AccountRow(ctx, id); err != nil {
			return err
		}
		changed, err := tx.SetSuspended(ctx, id, nil, "")
		if err != nil || !changed {
			return err
		}
		return tx.InsertEvent(ctx, s.event(a, "account.resumed", nil), db.Subject{Account: id})
	})
}

// SetMember gives a known user a role in an account; the empty role ends the
// membership. Refusals: invalid-value (invalid), last-owner (conflict).
func (s *Service) SetMember(ctx context.Context, a services.Actor, id services.AccountID, email string, role services.Role) error {
	email, err := line("email", email, maxEmail)
	if err != nil {
		return err
	}
	if !role.Valid() && role != "" {
		return services.NoneOf("role", string(role), "owner", "member", "viewer")
	}
	u, err := s.knownUser(ctx, email)
	if err != nil {
		return err
	}
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		if _, err := tx.AccountRow(ctx, id); err != nil {
			return err
		}
		if err := tx.LockAccount(ctx, id); err != nil {
			return err
		}
		if err := keepsOwner(ctx, tx, id, u.ID, role); err != nil {
			return err
		}
		return s.setMember(ctx, tx, a, id, u, role)
	})
}

// keepsOwner refuses a change that would leave an account that has an owner without one.
func keepsOwner(ctx context.Context, tx *db.Tx, id services.AccountID, user services.UserID, role services.Role) error {
	members, err := tx.Members(ctx, id)
	if err != nil || role == services.RoleOwner {
		return err
	}
	owners, was := 0, false
	for _, m := range members {
		if m.Role == services.RoleOwner {
			owners++
			was = was || m.User == user
		}
	}
	if was && owners == 1 {
		return services.Fail(services.KindConflict, services.CodeLastOwner, nil)
	}
	return nil
}

func (s *Service) setMember(ctx context.Context, tx *db.Tx, a services.Actor, id services.AccountID, u db.User, role services.Role) error {
	kind := "account.member-set"
	if role == "" {
		kind = "account.member-removed"
		gone, err := tx.RemoveMember(ctx, id, u.ID)
		if err != nil || !gone {
			return err
		}
	} else if err := tx.AddMember(ctx, id, u.ID, role); err != nil {
		return err
	}
	return tx.InsertEvent(ctx, s.event(a, kind, map[string]any{"Email": u.Email, "Role": string(role)}), db.Subject{Account: id})
}
