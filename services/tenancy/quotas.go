package tenancy

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"berth/db"
	"berth/services"
)

// QuotaPage is one page of quotas.
type QuotaPage struct {
	Quotas  []Quota
	Total   int
	Next    string   // the next page's After; empty: the last page
	Regions []string // to choose from
	Models  []string // to choose from, beside services.Resources
}

// Quotas gives a page of what accounts may have and have.
func (s *Service) Quotas(ctx context.Context, f QuotaFilter) (QuotaPage, error) {
	var p QuotaPage
	var err error
	if p.Total, err = s.db.CountQuotas(ctx, f); err != nil {
		return p, err
	}
	limit := f.Limit
	f.Limit++
	if p.Quotas, err = s.db.ListQuotas(ctx, f); err != nil {
		return p, err
	}
	if limit > 0 && len(p.Quotas) > limit {
		p.Quotas = p.Quotas[:limit]
		last := p.Quotas[limit-1]
		p.Next = string(last.Account) + " " + last.Region + " " + last.Item
	}
	p.Regions, p.Models, err = s.places(ctx)
	return p, err
}

// Limits lists what an account may have and has, in a region (empty: all).
func (s *Service) Limits(ctx context.Context, account services.AccountID, region string) ([]Quota, error) {
	if account == "" {
		return nil, nil
	}
	return s.db.ListQuotas(ctx, QuotaFilter{Account: account, Region: region, Limit: detailQuotas})
}

// places lists the regions and models that a quota can be about.
func (s *Service) places(ctx context.Context) (regions, models []string, err error) {
	zones, err := s.db.Zones(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, z := range zones {
		if !slices.Contains(regions, z.Region) {
			regions = append(regions, z.Region)
		}
	}
	all, err := s.db.Models(ctx)
	for _, m := range all {
		models = append(models, m.ID)
	}
	return regions, models, err
}

// NewQuota sets how much an account may have.
type NewQuota struct {
	Account string
	Region  string
	Item    string // a model, or one of services.Resources
	Limit   string // a whole number, or "unlimited"
}

// unlimited is the word for no limit; 0 is none.
const unlimited = "unlimited"

// maxQuota is the largest number that a limit can be.
const maxQuota = 1_000_000_000

// ParseLimit reads a limit; nil is unlimited.
func ParseLimit(text string) (*int, error) {
	text = strings.TrimSpace(text)
	if strings.EqualFold(text, unlimited) {
		return nil, nil
	}
	if text == "" {
		return nil, services.Invalid("limit", services.CodeRequired, nil)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxQuota {
		return nil, services.NoneOf("limit", text, "0", "1", "2", "...", unlimited)
	}
	return &n, nil
}

// ChangeQuota sets a quota. One below what the account has takes nothing away:
// it only keeps more from being taken. Refusals (invalid): required and
// invalid-value, for all fields together.
func (s *Service) ChangeQuota(ctx context.Context, a services.Actor, in NewQuota) error {
	limit, broken, err := s.checkQuota(ctx, in)
	if err != nil {
		return err
	}
	if len(broken) > 0 {
		return &services.Error{Kind: services.KindInvalid, Violations: broken}
	}
	id := services.AccountID(in.Account)
	return s.db.Tx(ctx, func(tx *db.Tx) error {
		if err := tx.LockAccount(ctx, id); err != nil {
			return err
		}
		before, err := tx.Quota(ctx, id, in.Region, in.Item)
		if err != nil {
			return err
		}
		set := tx.SetQuota
		if slices.Contains(services.Resources, in.Item) {
			set = tx.SetLimit
		}
		if err := set(ctx, id, in.Region, in.Item, limit); err != nil || sameLimit(before.Max, limit) {
			return err
		}
		return tx.InsertEvent(ctx, s.event(a, "account.quota-changed", map[string]any{
			"Item": in.Item, "Region": in.Region, "Old": spellLimit(before.Max), "New": spellLimit(limit),
		}), db.Subject{Account: id})
	})
}

func sameLimit(a, b *int) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func spellLimit(n *int) string {
	if n == nil {
		return unlimited
	}
	return strconv.Itoa(*n)
}

// checkQuota lists everything that is wrong with a quota.
func (s *Service) checkQuota(ctx context.Context, in NewQuota) (limit *int, broken []services.Violation, err error) {
	add := func(err error) {
		if e, ok := services.AsError(err); ok {
			broken = append(broken, e.Violations...)
		}
	}
	regions, models, err := s.places(ctx)
	if err != nil {
		return nil, nil, err
	}
	if known, err := s.knownAccount(ctx, in.Account); err != nil || !known {
		if err != nil {
			return nil, nil, err
		}
		add(services.Invalid("account", services.CodeInvalidValue, map[string]any{"Value": in.Account}))
	}
	if !slices.Contains(regions, in.Region) {
		add(services.NoneOf("region", in.Region, regions...))
	}
	if items := append(slices.Clone(models), services.Resources...); !slices.Contains(items, in.Item) {
		add(services.NoneOf("model", in.Item, items...))
	}
	limit, err = ParseLimit(in.Limit)
	add(err)
	return limit, broken, nil
}

func (s *Service) knownAccount(ctx context.Context, text string) (bool, error) {
	id, err := services.ParseID[services.AccountID](text)
	if err == nil {
		_, err = s.db.AccountRow(ctx, id)
	}
	if services.KindOf(err) == services.KindNotFound {
		return false, nil
	}
	return err == nil, err
}
