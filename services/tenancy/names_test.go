package tenancy_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"berth/db"
	"berth/db/dbtest"
	"berth/services"
	"berth/services/tenancy"
)

const bob = "bob@example.test"

// patience bounds every wait of a test.
const patience = 10 * time.Second

// gate holds callers back between looking for a name and taking it, until both
// are there or one of them waits for the other in the database.
type gate struct {
	raw   *sqlx.DB
	mu    sync.Mutex
	there int
	both  chan struct{}
}

func (g *gate) now(ctx context.Context) time.Time {
	g.mu.Lock()
	if g.there++; g.there == 2 {
		close(g.both)
	}
	g.mu.Unlock()
	for waiting := 0; waiting == 0 && ctx.Err() == nil; {
		select {
		case <-g.both:
			return time.Now()
		default:
		}
		if err := g.raw.GetContext(ctx, &waiting, `
			select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`); err != nil {
			break
		}
	}
	return time.Now()
}

// Between looking whether a name is taken and taking it nobody else takes it.
func TestANameIsNotTakenBetweenLookingAndOpening(t *testing.T) {
	url := dbtest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := db.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	raw, err := sqlx.ConnectContext(ctx, "postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	g := &gate{raw: raw, both: make(chan struct{})}
	s, err := tenancy.New(d, tenancy.Options{
		Now:    func() time.Time { return g.now(ctx) },
		Params: &argon2id.Params{Memory: 8, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 16},
	})
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, name := range []string{"Harbour", "HARBOUR"} {
		wg.Go(func() { _, errs[i] = s.OpenAccount(ctx, operator, name, "") })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("two opened one name at once: %v, %v; want one refused", errs[0], errs[1])
	}
	for _, err := range errs {
		if err != nil && code(err) != services.CodeTaken {
			t.Errorf("refused by %v, want taken", err)
		}
	}
}

func TestAnAccountsNameHasTheLengthItMayHave(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct {
		text, kept string
		want       services.Code
	}{
		"one letter":           {"x", "x", ""},
		"a hundred letters":    {strings.Repeat("é", 100), strings.Repeat("é", 100), ""},
		"blanks around":        {"\t Quay \n", "Quay", ""},
		"markup":               {"<b>&amp;</b>", "<b>&amp;</b>", ""},
		"one letter too many":  {strings.Repeat("a", 101), "", services.CodeTooLong},
		"nothing":              {"", "", services.CodeRequired},
		"nothing but blanks":   {" \t\n", "", services.CodeRequired},
		"a null in it":         {"a\x00b", "", services.CodeInvalidValue},
		"no text at all":       {"a\xffb", "", services.CodeInvalidValue},
		"a sign of what broke": {"a\uFFFDb", "", services.CodeInvalidValue},
		"a tab in it":          {"a\tb", "", services.CodeInvalidValue},
	} {
		id, err := w.OpenAccount(t.Context(), operator, tt.text, "")
		if code(err) != tt.want || (err != nil) != (tt.want != "") {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		if err != nil {
			if e, ok := services.AsError(err); !ok || e.Kind != services.KindInvalid || e.Violations[0].Field != "name" {
				t.Errorf("%s: %v is not told beside its field", name, err)
			}
			continue
		}
		d, err := w.Account(t.Context(), id)
		w.must(err)
		if d.Account.Name != tt.kept {
			t.Errorf("%s: kept as %q, want %q", name, d.Account.Name, tt.kept)
		}
	}
}

func TestASuspendedAccountKeepsItsName(t *testing.T) {
	w := newWorld(t)
	id := w.open("Harbour", "")
	w.must(w.Suspend(t.Context(), operator, id, "unpaid"))
	if _, err := w.OpenAccount(t.Context(), operator, " harbour ", ""); code(err) != services.CodeTaken {
		t.Errorf("the name of a suspended account: %v, want taken", err)
	}
}

func TestAnAccountWithoutAnOwnerGetsOneLater(t *testing.T) {
	w := newWorld(t)
	user := w.user(alice, false)
	id := w.open("Harbour", "")
	w.must(w.SetMember(t.Context(), operator, id, alice, services.RoleMember))
	w.must(w.SetMember(t.Context(), operator, id, alice, "")) // no owner is lost by it
	w.must(w.SetMember(t.Context(), operator, id, " ALICE@example.TEST ", services.RoleOwner))
	w.must(w.SetMember(t.Context(), operator, id, alice, services.RoleOwner))
	d, err := w.Account(t.Context(), id)
	w.must(err)
	want := []tenancy.Member{{User: user, Email: alice, Role: services.RoleOwner}}
	if diff := cmp.Diff(want, d.Members); diff != "" {
		t.Error(diff)
	}
	if code(w.SetMember(t.Context(), operator, id, alice, services.RoleViewer)) != services.CodeLastOwner {
		t.Error("the owner that came later is not kept")
	}
}

func TestWhoeverIsNotAMemberIsNotRemoved(t *testing.T) {
	w := newWorld(t)
	w.user(alice, false)
	w.user(bob, false)
	id := w.open("Harbour", alice)
	before, err := w.Account(t.Context(), id)
	w.must(err)
	w.must(w.SetMember(t.Context(), operator, id, bob, ""))
	after, err := w.Account(t.Context(), id)
	w.must(err)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("to remove nobody changes the account: %s", diff)
	}
	if err := w.SetMember(t.Context(), operator, "acc-ffffffff", bob, services.RoleOwner); services.KindOf(err) != services.KindNotFound {
		t.Errorf("a member of an account that is not: %v", err)
	}
	for _, email := range []string{"", " ", "a\nb", strings.Repeat("x", 255)} {
		if err := w.SetMember(t.Context(), operator, id, email, services.RoleOwner); services.KindOf(err) != services.KindInvalid {
			t.Errorf("%.10q becomes a member: %v", email, err)
		}
	}
}
