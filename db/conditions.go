package db

import (
	"fmt"
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

// page narrows to what comes after a row and gives the order. Rows are found
// by an index on the sort column, so a late page costs what the first does.
func (w *conditions) page(alias, table, sort, after string) string {
	column, direction, compare := alias+".created_at", " desc", "<"
	switch sort {
	case "name":
		column, direction, compare = "lower("+alias+".name)", "", ">"
	case "-name":
		column = "lower(" + alias + ".name)"
	case "created":
		direction, compare = "", ">"
	}
	if after != "" {
		key := strings.ReplaceAll(column, alias+".", "")
		w.add(fmt.Sprintf("(%s, %s.id) %s (select %s, id from %s where id = ?)", column, alias, compare, key, table), after)
	}
	return " order by " + column + direction + ", " + alias + ".id" + direction
}

func (w *conditions) limit(n int) string {
	if n <= 0 {
		return ""
	}
	w.args = append(w.args, n)
	return fmt.Sprintf(" limit $%d", len(w.args))
}

// contains makes a LIKE pattern for a text anywhere in another.
func contains(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}
