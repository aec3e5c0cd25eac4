package db

import (
	"fmt"
	"slices"
	"strings"
)

// conditions collects a where clause; each ? becomes the next $n.
type conditions struct {
	parts []string
	args  []any
}

func (w *conditions) add(cond string, args ...any) {
	for _, a := range args {
		w.args = append(w.args, a)
		cond = strings.Replace(cond, "?", fmt.Sprintf("$%d", len(w.args)), 1)
	}
	w.parts = append(w.parts, cond)
}

func (w *conditions) addRaw(cond string) { w.parts = append(w.parts, cond) }

func (w *conditions) addIf(on bool, cond string, args ...any) {
	if on {
		w.add(cond, args...)
	}
}

func (w *conditions) sql() string {
	if len(w.parts) == 0 {
		return ""
	}
	return " where " + strings.Join(w.parts, " and ")
}

// sorting is an order of a list: expressions over the columns of one table.
type sorting struct {
	by         []string
	descending bool
	joined     bool // by[0] is another table's: the index of that one is to be used too
}

// page narrows to what comes after a row and gives the order. Rows are found
// by an index on the sorted columns, so a late page costs what the first does.
// Expressions name tables by their aliases in from; the first is the rows'.
func (w *conditions) page(alias, from string, s sorting, after string) string {
	compare, direction := ">", ""
	if s.descending {
		compare, direction = "<", " desc"
	}
	columns := append(slices.Clone(s.by), alias+".id")
	if after != "" {
		list := strings.Join(columns, ", ")
		w.add(fmt.Sprintf("(%s) %s (select %s from %s where %s.id = ?)", list, compare, list, from, alias), after)
	}
	if after != "" && s.joined {
		w.add(fmt.Sprintf("%s %s= (select %s from %s where %s.id = ?)", s.by[0], compare, s.by[0], from, alias), after)
	}
	return " order by " + strings.Join(columns, direction+", ") + direction
}

// sorts are the orders of a list by the name that a query gives them. A minus
// before a name turns the order round; an unknown one is the order of "".
type sorts map[string]sorting

func (s sorts) find(name string) sorting {
	if known, ok := s[name]; ok {
		return known
	}
	if known, ok := s[strings.TrimPrefix(name, "-")]; ok && name != "" {
		known.descending = !known.descending
		return known
	}
	return s[""]
}

// last names the argument that was added last.
func (w *conditions) last() string { return fmt.Sprintf("cast($%d as float8)", len(w.args)) }

func (w *conditions) limit(n int) string {
	if n <= 0 {
		return ""
	}
	w.args = append(w.args, n)
	return fmt.Sprintf(" limit $%d", len(w.args))
}

// contains makes a LIKE pattern for a text anywhere in another. Compare lower()
// of both: what the database takes for a small letter depends on its locale.
func contains(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}
