package db_test

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"berth/db"
	"berth/db/dbtest"
)

var statement = regexp.MustCompile(`^\s*(?i:select|insert|update|delete|with|set constraints)\s`)

// source is the package's, with the values of its constants.
type source struct {
	set   *token.FileSet
	files []*ast.File
	info  *types.Info
}

func read(t *testing.T) source {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	s := source{set: token.NewFileSet(), info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(s.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, f)
	}
	// Imports are not needed to know constants, so what lacks them is no error.
	conf := types.Config{Importer: nothing{}, Error: func(error) {}}
	_, _ = conf.Check("berth/db", s.set, s.files, s.info)
	return s
}

// text is the value of a constant string.
func (s source) text(e ast.Expr) (string, bool) {
	v := s.info.Types[e].Value
	if v == nil || v.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(v), true
}

// queries finds every SQL statement that is constant, by position.
func (s source) queries() map[string]string {
	found := map[string]string{}
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			q, whole := s.text(e)
			if _, joined := e.(*ast.BinaryExpr); joined && !whole {
				return false
			}
			if !whole || !raw(e) || !statement.MatchString(q) {
				return true
			}
			found[s.set.Position(e.Pos()).String()] = q
			return false // its parts are no statements of their own
		})
	}
	return found
}

// composers names the functions that run a statement which is joined from parts
// that are no constants.
func (s source) composers() []string {
	place := map[string]int{"one": 3, "found": 3, "all": 3, "exec": 2} // of the statement among the arguments
	found := map[string]bool{}
	for _, f := range s.files {
		for _, d := range f.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				method, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || place[method.Sel.Name] == 0 || len(call.Args) <= place[method.Sel.Name] {
					return true
				}
				q := call.Args[place[method.Sel.Name]]
				_, joined := q.(*ast.BinaryExpr)
				if _, whole := s.text(q); joined && !whole {
					found[d.(*ast.FuncDecl).Name.Name] = true
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// raw tells SQL, which stands in back quotes, from words.
func raw(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return raw(e.X)
	case *ast.BasicLit:
		return strings.HasPrefix(e.Value, "`")
	}
	return false
}

type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

func TestEveryQueryFitsTheSchema(t *testing.T) {
	pool, err := sqlx.ConnectContext(t.Context(), "postgres", dbtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	all := read(t).queries()
	if len(all) < 120 {
		t.Fatalf("only %d queries were found", len(all))
	}
	for at, q := range all {
		stmt, err := pool.PrepareContext(t.Context(), q)
		if err != nil {
			t.Errorf("%s: %v\n%s", at, err, q)
			continue
		}
		_ = stmt.Close()
	}
}

// Nothing can be prepared of a statement that is joined as it runs, so each is
// run: the lists' in TestEveryFilterKeepsWhatMatches, the others here.
func TestEveryQueryThatIsJoinedAsItRunsIsRun(t *testing.T) {
	want := []string{
		"Capacity", "Count", "CountAccounts", "CountAgents", "CountAudit", "CountCards", "CountGPUs", "CountHosts", "CountOperations", "CountQuotas", "CountVMs",
		"Fragments", "ListAccounts", "ListAgents", "ListAudit", "ListCards", "ListEvents", "ListGPUs", "ListHosts", "ListOperations", "ListQuotas", "ListVMs", "TakeCard", "Trend",
	}
	if diff := cmp.Diff(want, read(t).composers()); diff != "" {
		t.Errorf("what joins statements: %s", diff)
	}
	b := newBerthed(t)
	for table, want := range map[string]int{"gpus": 1, "vms": 1, "events": 0, "operations": 0} {
		if n, err := b.Count(t.Context(), table); err != nil || n != want {
			t.Errorf("%s: counted %d, %v; want %d", table, n, err, want)
		}
	}
	if _, err := b.Count(t.Context(), "users"); err == nil {
		t.Error("a table that is not for counting was counted")
	}
	b.change(t, func(tx *db.Tx) error {
		for generation, want := range map[string]bool{"": true, "v7": true, "v6": false} {
			card, ok, err := tx.TakeCard(t.Context(), "eu-west-2a", "nvidia-l40", generation)
			if err != nil || ok != want || (ok && card != b.cards[1]) {
				t.Errorf("a card in a host of generation %q: %s, %v, %v; want the free one: %v", generation, card, ok, err, want)
			}
		}
		return nil
	})
}
