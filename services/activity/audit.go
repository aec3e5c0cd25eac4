package activity

import (
	"context"

	"berth/db"
)

// AuditEvent is an event of any account, with where it came from.
type AuditEvent = db.AuditRow

// AuditFilter narrows and pages all events.
type AuditFilter = db.AuditFilter

// AuditPage is one page of events of all accounts, newest first.
type AuditPage struct {
	Events []AuditEvent
	Total  int   // that match; -1: too many to count
	Next   int64 // the next page's Before; 0: the last page
}

// Audit gives a page of all events.
func (s *Service) Audit(ctx context.Context, f AuditFilter) (AuditPage, error) {
	total, counted, err := s.db.CountAudit(ctx, f)
	if err != nil {
		return AuditPage{}, err
	}
	if !counted {
		total = -1
	}
	limit := f.Limit
	f.Limit++
	events, err := s.db.ListAudit(ctx, f)
	p := AuditPage{Events: events, Total: total}
	if limit > 0 && len(events) > limit {
		p.Events, p.Next = events[:limit], events[limit-1].ID
	}
	return p, err
}

// exportRows is how many events an export reads at a time.
const exportRows = 1000

// Export hands every event that matches to each, newest first, a piece at a
// time. It ends at the first error of each, and gives it.
func (s *Service) Export(ctx context.Context, f AuditFilter, each func(AuditEvent) error) error {
	f.Limit = exportRows
	for {
		events, err := s.db.ListAudit(ctx, f)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := each(e); err != nil {
				return err
			}
			f.Before = e.ID
		}
		if len(events) < exportRows {
			return nil
		}
	}
}
