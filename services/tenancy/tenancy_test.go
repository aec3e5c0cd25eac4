package tenancy_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/google/go-cmp/cmp"

	"berth/db"
	"berth/db/dbtest"
	"berth/services"
	"berth/services/catalog"
	"berth/services/tenancy"
)

const (
	alice    = "alice@example.test"
	password = "correct horse"
)

// world is the service on a real Postgres, with a clock that the test moves.
type world struct {
	*testing.T
	*tenancy.Service
	db   *db.DB
	time time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, db: dbtest.Open(t), time: time.Now()}
	w.must(w.db.Tx(t.Context(), func(tx *db.Tx) error { return tx.AddReference(t.Context(), catalog.Published()) }))
	var err error
	w.Service, err = tenancy.New(w.db, tenancy.Options{
		Now:    func() time.Time { return w.time },
		Params: &argon2id.Params{Memory: 8, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 16},
	})
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) user(email string, admin bool) services.UserID {
	w.Helper()
	id, err := w.EnsureUser(w.Context(), email, password, admin)
	w.must(err)
	return id
}

func (w *world) signIn(email string) tenancy.Session {
	w.Helper()
	x, err := w.SignIn(w.Context(), email, password)
	w.must(err)
	return x
}

// code is that of a refusal.
func code(err error) services.Code {
	if e, ok := services.AsError(err); ok && len(e.Violations) > 0 {
		return e.Violations[0].Code
	}
	return ""
}

func TestSignInKnowsAnAddressInAnySpelling(t *testing.T) {
	w := newWorld(t)
	id := w.user(alice, false)
	for _, email := range []string{alice, " " + alice + " ", strings.ToUpper(alice)} {
		if x := w.signIn(email); x.User != id || x.Email != alice {
			t.Errorf("%q signs in as %s (%s)", email, x.Email, x.User)
		}
	}
}

func TestARefusalDoesNotTellWhetherTheAddressIsKnown(t *testing.T) {
	w := newWorld(t)
	w.user(alice, false)
	var refusals []string
	for _, try := range [][2]string{{alice, "wrong"}, {alice, ""}, {"nobody@example.test", password}, {"", password}, {"a\x00b", password}, {strings.Repeat("x", 300), password}} {
		_, err := w.SignIn(t.Context(), try[0], try[1])
		if code(err) != services.CodeBadCredentials {
			t.Errorf("%.20q, %q: got %v", try[0], try[1], err)
		}
		refusals = append(refusals, err.Error())
	}
	for _, r := range refusals {
		if r != refusals[0] {
			t.Errorf("refusals differ: %q and %q", refusals[0], r)
		}
	}
}

func TestTenFailuresLockAnAddressForAWhileAndNoOther(t *testing.T) {
	w := newWorld(t)
	w.user(alice, false)
	w.user("bob@example.test", false)
	for range 10 {
		if _, err := w.SignIn(t.Context(), alice, "wrong"); code(err) != services.CodeBadCredentials {
			t.Fatal(err)
		}
	}
	if _, err := w.SignIn(t.Context(), strings.ToUpper(alice), password); code(err) != services.CodeTooManyTries {
		t.Errorf("after ten failures: got %v", err)
	}
	w.signIn("bob@example.test")
	w.time = w.time.Add(5*time.Minute + time.Second)
	w.signIn(alice)
	if _, err := w.SignIn(t.Context(), alice, "wrong"); code(err) != services.CodeBadCredentials {
		t.Errorf("a success does not forget former failures: %v", err)
	}
}

func TestASessionLastsWhileItIsUsed(t *testing.T) {
	w := newWorld(t)
	w.user(alice, false)
	x := w.signIn(alice)
	for range 3 {
		w.time = w.time.Add(11 * time.Hour)
		if _, err := w.Session(t.Context(), x.Token); err != nil {
			t.Fatalf("a session in use ended: %v", err)
		}
	}
	w.time = w.time.Add(11 * time.Hour)
	if _, err := w.Peek(t.Context(), x.Token); err != nil {
		t.Fatal(err)
	}
	w.time = w.time.Add(2 * time.Hour) // a page left open looks, but does not use
	if _, err := w.Session(t.Context(), x.Token); code(err) != services.CodeSignedOut {
		t.Errorf("a session that was not used for 13 hours: got %v", err)
	}
}

func TestASessionThatWasSignedOutIsOver(t *testing.T) {
	w := newWorld(t)
	w.user(alice, false)
	x, other := w.signIn(alice), w.signIn(alice)
	w.must(w.SignOut(t.Context(), x.Token))
	for _, token := range []string{x.Token, "", "made up", strings.Repeat("x", 10_000)} {
		if _, err := w.Session(t.Context(), token); code(err) != services.CodeSignedOut {
			t.Errorf("%.20q: got %v", token, err)
		}
	}
	if _, err := w.Session(t.Context(), other.Token); err != nil {
		t.Errorf("another session of the user ended: %v", err)
	}
}

func TestAnotherPasswordEndsEverySession(t *testing.T) {
	w := newWorld(t)
	id := w.user(alice, false)
	x := w.signIn(alice)
	w.user(alice, false) // the same again
	if _, err := w.Session(t.Context(), x.Token); err != nil {
		t.Errorf("the same password ended a session: %v", err)
	}
	again, err := w.EnsureUser(t.Context(), alice, "battery staple", false)
	if err != nil || again != id {
		t.Fatalf("got %s, %v, want %s", again, err, id)
	}
	if _, err := w.Session(t.Context(), x.Token); code(err) != services.CodeSignedOut {
		t.Errorf("a session under the former password: got %v", err)
	}
	if _, err := w.SignIn(t.Context(), alice, password); code(err) != services.CodeBadCredentials {
		t.Errorf("the former password: got %v", err)
	}
	if _, err := w.SignIn(t.Context(), alice, "battery staple"); err != nil {
		t.Errorf("the new password: got %v", err)
	}
}

func TestAUserBecomesAnOperatorAndIsNotDemotedByTheWay(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct{ asked, want bool }{{false, false}, {true, true}, {false, true}} {
		w.user(alice, step.asked)
		if x := w.signIn(alice); x.Admin != step.want {
			t.Errorf("asked for %v, the user is an operator: %v", step.asked, x.Admin)
		}
	}
}

func TestASessionLooksAtAccountsThatItsUserIsMemberOf(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	id, other := w.user(alice, false), w.user("bob@example.test", false)
	if x := w.signIn(alice); x.Account != "" || len(x.Accounts) != 0 {
		t.Errorf("a member of none looks at %q", x.Account)
	}
	beta, err := w.CreateAccount(ctx, "Beta", other)
	w.must(err)
	alpha, err := w.CreateAccount(ctx, "Alpha", id)
	w.must(err)
	x := w.signIn(alice)
	if x.Account != alpha || x.Role != services.RoleOwner {
		t.Errorf("looks at %s as %s, want %s as owner", x.Account, x.Role, alpha)
	}
	if err := w.LookAt(ctx, x, beta); services.KindOf(err) != services.KindNotFound {
		t.Errorf("another's account: got %v", err)
	}
	w.must(w.AddMember(ctx, beta, id, services.RoleViewer))
	x, err = w.Session(ctx, x.Token)
	w.must(err)
	w.must(w.LookAt(ctx, x, beta))
	x, err = w.Session(ctx, x.Token)
	w.must(err)
	if a := x.Actor("req", "192.0.2.7"); a.Account != beta || a.Role != services.RoleViewer || a.MayWrite() == nil || a.RequestID != "req" || a.Address != "192.0.2.7" {
		t.Errorf("acts as %+v", a)
	}
	var names []string
	for _, m := range x.Accounts {
		names = append(names, m.Name)
	}
	if diff := cmp.Diff([]string{"Alpha", "Beta"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestASessionLooksInRegionsThatExist(t *testing.T) {
	w := newWorld(t)
	w.user(alice, false)
	x := w.signIn(alice)
	w.must(w.LookIn(t.Context(), x, "hikube"))
	if err := w.LookIn(t.Context(), x, "atlantis"); code(err) != services.CodeInvalidValue {
		t.Errorf("a region that is not: got %v", err)
	}
	x, err := w.Session(t.Context(), x.Token)
	if err != nil || x.Region != "hikube" {
		t.Errorf("looks in %q, %v", x.Region, err)
	}
	w.must(w.LookIn(t.Context(), x, ""))
	w.must(w.SetLocale(t.Context(), x, "fr"))
	if x, err = w.Session(t.Context(), x.Token); err != nil || x.Region != "" || x.Locale != "fr" {
		t.Errorf("looks in %q in %q, %v", x.Region, x.Locale, err)
	}
}

func TestTidyRemovesWhatHasExpiredAndNothingElse(t *testing.T) {
	w := newWorld(t)
	w.user(alice, false)
	old := w.signIn(alice)
	w.time = w.time.Add(11 * time.Hour)
	young := w.signIn(alice)
	w.time = w.time.Add(2 * time.Hour)
	w.must(w.Tidy(t.Context()))
	w.time = w.time.Add(-2 * time.Hour) // were it still there, it would now be good
	if _, err := w.Peek(t.Context(), old.Token); code(err) != services.CodeSignedOut {
		t.Errorf("the expired session: got %v", err)
	}
	if _, err := w.Peek(t.Context(), young.Token); err != nil {
		t.Errorf("the other: got %v", err)
	}
}

// A session's token is in the database by its hash alone.
func TestTokensAreNotKept(t *testing.T) {
	w := newWorld(t)
	w.user(alice, false)
	x := w.signIn(alice)
	if _, ok, err := w.db.Session(t.Context(), []byte(x.Token), w.time); err != nil || ok {
		t.Errorf("found by the token itself: %v, %v", ok, err)
	}
	if len(x.Token) < 40 || tenancy.SessionHash(x.Token) == x.Token {
		t.Errorf("token %q, hash %q", x.Token, tenancy.SessionHash(x.Token))
	}
}

func TestWithoutRandomnessThereIsNoService(t *testing.T) {
	d := dbtest.Open(t)
	s, err := tenancy.New(d, tenancy.Options{Random: strings.NewReader(""), Params: &argon2id.Params{Memory: 8, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 16}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.EnsureUser(t.Context(), alice, password, false); err == nil || !strings.Contains(err.Error(), io.EOF.Error()) {
		t.Errorf("a user without a drawn id: got %v", err)
	}
}
