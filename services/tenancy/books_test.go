package tenancy_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services"
	"berth/services/tenancy"
)

var operator = services.Actor{Email: "olga@example.test", RequestID: "req-1", Address: "192.0.2.7"}

func (w *world) open(name, owner string) services.AccountID {
	w.Helper()
	id, err := w.OpenAccount(w.Context(), operator, name, owner)
	w.must(err)
	return id
}

func TestAnAccountIsOpenedOnceUnderAName(t *testing.T) {
	w := newWorld(t)
	w.user(alice, false)
	id := w.open("  Harbour ", alice)
	d, err := w.Account(t.Context(), id)
	w.must(err)
	if d.Account.Name != "Harbour" || len(d.Members) != 1 || d.Members[0].Role != services.RoleOwner || len(d.Events) == 0 {
		t.Errorf("it is %+v", d)
	}
	if e := d.Events[len(d.Events)-1]; e.Kind != "account.opened" || e.Actor != operator.Email || e.Address != operator.Address || e.RequestID != operator.RequestID {
		t.Errorf("the log says %+v", e)
	}
	for name, tt := range map[string]struct {
		name, email string
		want        services.Code
	}{
		"no name": {" ", "", services.CodeRequired}, "a long one": {strings.Repeat("é", 101), "", services.CodeTooLong}, "taken": {"HARBOUR", "", services.CodeTaken},
		"two lines": {"a\nb", "", services.CodeInvalidValue}, "nobody's owner": {"Delta", "nobody@example.test", services.CodeInvalidValue},
	} {
		if _, err := w.OpenAccount(t.Context(), operator, tt.name, tt.email); code(err) != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	page, err := w.ListAccounts(t.Context(), tenancy.AccountFilter{Limit: 10})
	w.must(err)
	if len(page.Accounts) != 1 {
		t.Errorf("%d accounts, want 1: a refusal leaves none behind", len(page.Accounts))
	}
}

func TestOneNameGivenTwiceAtOnceOpensOneAccount(t *testing.T) {
	w := newWorld(t)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = w.OpenAccount(t.Context(), operator, "Harbour", "") })
	}
	wg.Wait()
	opened := 0
	for _, err := range errs {
		if err == nil {
			opened++
		} else if code(err) != services.CodeTaken {
			t.Errorf("refused by %v, want taken", err)
		}
	}
	if opened != 1 {
		t.Errorf("%d accounts were opened, want 1", opened)
	}
}

func TestASuspendedAccountIsKnownToItsMembersSessions(t *testing.T) {
	w := newWorld(t)
	user := w.user(alice, false)
	id := w.open("Harbour", alice)
	if err := w.Suspend(t.Context(), operator, id, " "); code(err) != services.CodeRequired {
		t.Errorf("without a reason: %v", err)
	}
	w.must(w.Suspend(t.Context(), operator, id, "unpaid"))
	w.must(w.Suspend(t.Context(), operator, id, "again")) // changes nothing
	accounts, err := w.Accounts(t.Context(), user)
	w.must(err)
	if len(accounts) != 1 || !accounts[0].Suspended || accounts[0].Reason != "unpaid" {
		t.Errorf("the member sees %+v", accounts)
	}
	w.must(w.Unsuspend(t.Context(), operator, id))
	w.must(w.Unsuspend(t.Context(), operator, id))
	d, err := w.Account(t.Context(), id)
	w.must(err)
	var kinds []string
	for _, e := range d.Events {
		kinds = append(kinds, e.Kind)
	}
	if diff := cmp.Diff([]string{"account.resumed", "account.suspended", "account.opened"}, kinds); diff != "" {
		t.Errorf("what is asked again is logged again: %s", diff)
	}
	if err := w.Suspend(t.Context(), operator, "acc-00000000", "x"); services.KindOf(err) != services.KindNotFound {
		t.Errorf("an account that is not: %v", err)
	}
}

func TestAnAccountKeepsAnOwner(t *testing.T) {
	w := newWorld(t)
	const bob = "bob@example.test"
	w.user(alice, false)
	w.user(bob, false)
	id := w.open("Harbour", alice)
	set := func(email string, role services.Role) error {
		return w.SetMember(t.Context(), operator, id, email, role)
	}
	for _, role := range []services.Role{"", services.RoleMember, services.RoleViewer} {
		if err := set(alice, role); code(err) != services.CodeLastOwner {
			t.Errorf("the last owner becomes %q: %v", role, err)
		}
	}
	w.must(set(bob, services.RoleOwner))
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, email := range []string{alice, bob} { // each could go alone, not both
		wg.Go(func() { errs[i] = set(email, "") })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("both owners leave at once: %v, %v", errs[0], errs[1])
	}
	if err := set("nobody@example.test", services.RoleOwner); code(err) != services.CodeInvalidValue {
		t.Errorf("somebody unknown: %v", err)
	}
	if err := set(bob, "king"); code(err) != services.CodeInvalidValue {
		t.Errorf("an unknown role: %v", err)
	}
}

// F4: what is set is what is read, and what is refused changes nothing.
func TestALimitIsReadAsItWasSet(t *testing.T) {
	w := newWorld(t)
	id := w.open("Harbour", "")
	set := func(item, limit string) error {
		return w.ChangeQuota(t.Context(), operator, tenancy.NewQuota{Account: string(id), Region: "eu-west-2", Item: item, Limit: limit})
	}
	for _, item := range append([]string{"nvidia-l40"}, services.Resources...) {
		for text, want := range map[string]string{"0": "0", "5": "5", "unlimited": "unlimited", "Unlimited": "unlimited"} {
			w.must(set(item, text))
			for range 2 { // the second time changes nothing
				w.must(set(item, text))
			}
			all, err := w.Limits(t.Context(), id, "")
			w.must(err)
			if got := limitOf(all, item); got != want {
				t.Errorf("%s set to %q reads %q", item, text, got)
			}
		}
		w.must(set(item, "3"))
		for _, text := range []string{"", "-1", "1.5", "many", "99999999999999999999", "1e3", "0x5", "٣"} {
			if err := set(item, text); services.KindOf(err) != services.KindInvalid {
				t.Errorf("%s set to %q: %v", item, text, err)
			}
		}
		all, err := w.Limits(t.Context(), id, "eu-west-2")
		w.must(err)
		if got := limitOf(all, item); got != "3" {
			t.Errorf("after refusals %s reads %q, want 3", item, got)
		}
	}
	err := w.ChangeQuota(t.Context(), operator, tenancy.NewQuota{Account: "acc-00000000", Region: "mars", Item: "voodoo", Limit: "some"})
	if e, ok := services.AsError(err); !ok || len(e.Violations) != 4 {
		t.Errorf("four wrong fields are refused by %v, want all of them together", err)
	}
}

func limitOf(all []tenancy.Quota, item string) string {
	for _, q := range all {
		switch {
		case q.Item != item:
		case q.Max == nil:
			return "unlimited"
		default:
			return fmt.Sprint(*q.Max)
		}
	}
	return "nothing"
}

func TestQuotasOfManyAccountsPageWithoutGapsOrRepeats(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		id := w.open(fmt.Sprintf("Account %d", i), "")
		for _, item := range []string{"nvidia-l40", "vms", "vcores"} {
			w.must(w.ChangeQuota(t.Context(), operator, tenancy.NewQuota{Account: string(id), Region: "eu-west-2", Item: item, Limit: fmt.Sprint(i)}))
		}
	}
	seen := map[string]bool{}
	after := ""
	for range 10 {
		page, err := w.Quotas(t.Context(), tenancy.QuotaFilter{After: after, Limit: 4})
		w.must(err)
		if page.Total != 21 {
			t.Fatalf("%d in all, want 21", page.Total)
		}
		for _, q := range page.Quotas {
			key := string(q.Account) + q.Region + q.Item
			if seen[key] {
				t.Errorf("%s is listed twice", key)
			}
			seen[key] = true
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(seen) != 21 || after != "" {
		t.Errorf("%d quotas are listed, and then comes %q; want 21 and the end", len(seen), after)
	}
	page, err := w.Quotas(t.Context(), tenancy.QuotaFilter{Text: "account 3", Item: "vms", Limit: 4})
	w.must(err)
	if page.Total != 1 || len(page.Quotas) != 1 || *page.Quotas[0].Max != 3 {
		t.Errorf("narrowed to one account's machines: %+v", page)
	}
}
