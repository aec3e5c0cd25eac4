package db_test

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"berth/db/dbtest"
)

var statement = regexp.MustCompile(`^\s*(?i:select|insert|update|delete|with|set constraints)\s`)

// queries finds every SQL statement that is constant in the package's source,
// by position. Those that are put together as they run are lists and counts,
// which tests of their own run.
func queries(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		p, err := parser.ParseFile(set, f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, p)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	// Imports are not needed to know constants, so what lacks them is no error.
	conf := types.Config{Importer: nothing{}, Error: func(error) {}}
	_, _ = conf.Check("berth/db", set, parsed, info)
	text := func(e ast.Expr) (string, bool) {
		v := info.Types[e].Value
		if v == nil || v.Kind() != constant.String {
			return "", false
		}
		return constant.StringVal(v), true
	}
	found := map[string]string{}
	for _, p := range parsed {
		ast.Inspect(p, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			q, whole := text(e)
			if _, joined := e.(*ast.BinaryExpr); joined && !whole {
				return false
			}
			if !whole || !raw(e) || !statement.MatchString(q) {
				return true
			}
			found[set.Position(e.Pos()).String()] = q
			return false // its parts are no statements of their own
		})
	}
	return found
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
	all := queries(t)
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
