package tenancy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/services/tenancy"
)

// Sessions that are open follow a suspension and its end, in that account alone.
func TestASuspensionHoldsForOpenSessionsInThatAccountAlone(t *testing.T) {
	w := newWorld(t)
	w.user(alice, false)
	anchor, berth := w.open("Anchor", alice), w.open("Berth", alice)
	x := w.signIn(alice)
	write := func(account services.AccountID) services.Code {
		t.Helper()
		w.must(w.LookAt(t.Context(), x, account))
		now, err := w.Session(t.Context(), x.Token)
		w.must(err)
		if now.Account != account {
			t.Fatalf("the session looks at %s, want %s", now.Account, account)
		}
		return code(now.Actor("req", "192.0.2.7").MayWrite())
	}
	for _, step := range []struct {
		what   string
		do     func() error
		anchor services.Code
	}{
		{"at first", func() error { return nil }, ""},
		{"suspended", func() error { return w.Suspend(t.Context(), operator, anchor, "unpaid") }, services.CodeSuspended},
		{"resumed", func() error { return w.Unsuspend(t.Context(), operator, anchor) }, ""},
		{"suspended again", func() error { return w.Suspend(t.Context(), operator, anchor, "abuse") }, services.CodeSuspended},
	} {
		w.must(step.do())
		if got := write(anchor); got != step.anchor {
			t.Errorf("%s: a write in it is refused by %q, want %q", step.what, got, step.anchor)
		}
		if got := write(berth); got != "" {
			t.Errorf("%s: a write in another account is refused by %q", step.what, got)
		}
	}
	d, err := w.Account(t.Context(), anchor)
	w.must(err)
	if d.Account.SuspendedAt == nil || d.Account.SuspendedReason != "abuse" {
		t.Errorf("the second suspension is kept as %v for %q", d.Account.SuspendedAt, d.Account.SuspendedReason)
	}
}

func TestWhatIsResumedForgetsWhyItWasSuspended(t *testing.T) {
	w := newWorld(t)
	id := w.open("Harbour", "")
	w.must(w.Suspend(t.Context(), operator, id, "  unpaid\t"))
	if d, err := w.Account(t.Context(), id); err != nil || d.Account.SuspendedReason != "unpaid" {
		t.Errorf("suspended for %q, %v; want the reason without blanks", d.Account.SuspendedReason, err)
	}
	w.must(w.Unsuspend(t.Context(), operator, id))
	d, err := w.Account(t.Context(), id)
	w.must(err)
	if d.Account.SuspendedAt != nil || d.Account.SuspendedReason != "" {
		t.Errorf("resumed, it says %v and %q", d.Account.SuspendedAt, d.Account.SuspendedReason)
	}
	if err := w.Unsuspend(t.Context(), operator, "acc-ffffffff"); services.KindOf(err) != services.KindNotFound {
		t.Errorf("an account that is not: %v", err)
	}
}

func TestAReasonToSuspendIsALineOfText(t *testing.T) {
	w := newWorld(t)
	id := w.open("Harbour", "")
	for reason, want := range map[string]services.Code{
		"": services.CodeRequired, "\n": services.CodeRequired, strings.Repeat("é", 501): services.CodeTooLong, "a\nb": services.CodeInvalidValue,
		"a\x00b": services.CodeInvalidValue,
	} {
		if err := w.Suspend(t.Context(), operator, id, reason); code(err) != want || services.KindOf(err) != services.KindInvalid {
			t.Errorf("for %.10q: %v, want %s", reason, err, want)
		}
	}
	d, err := w.Account(t.Context(), id)
	w.must(err)
	if d.Account.SuspendedAt != nil || len(d.Events) != 1 {
		t.Errorf("what was refused left %+v", d)
	}
	w.must(w.Suspend(t.Context(), operator, id, strings.Repeat("é", 500)))
}

func TestAccountsAreListedAndCountedByTheirState(t *testing.T) {
	w := newWorld(t)
	w.open("Anchor", "")
	w.must(w.Suspend(t.Context(), operator, w.open("Berth", ""), "unpaid"))
	w.must(w.Suspend(t.Context(), operator, w.open("Capstan", ""), "unpaid"))
	for state, want := range map[string][]string{"": {"Anchor", "Berth", "Capstan"}, "active": {"Anchor"}, "suspended": {"Berth", "Capstan"}} {
		page, err := w.ListAccounts(t.Context(), tenancy.AccountFilter{State: state, Limit: 10})
		w.must(err)
		var names []string
		for _, a := range page.Accounts {
			names = append(names, a.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("state %q: %s", state, diff)
		}
		if page.Totals != (tenancy.AccountTotals{All: 3, Suspended: 2}) || page.Next != "" {
			t.Errorf("state %q: totals are %+v and next is %q", state, page.Totals, page.Next)
		}
	}
	page, err := w.ListAccounts(t.Context(), tenancy.AccountFilter{Limit: 2})
	w.must(err)
	if len(page.Accounts) != 2 || page.Next != page.Accounts[1].ID {
		t.Fatalf("of three the first page has %d, next is %q", len(page.Accounts), page.Next)
	}
	page, err = w.ListAccounts(t.Context(), tenancy.AccountFilter{Limit: 2, After: page.Next})
	w.must(err)
	if len(page.Accounts) != 1 || page.Accounts[0].Name != "Capstan" || page.Next != "" {
		t.Errorf("the second page is %+v", page)
	}
}
