package db_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/db"
)

// shape lists every column, index and constraint of the schema.
func (b *berthed) shape(t *testing.T) []string {
	t.Helper()
	var all []string
	err := b.raw.SelectContext(t.Context(), &all, `
		select 'column ' || table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable || coalesce(' ' || column_default, '')
		from information_schema.columns where table_schema = 'public' and table_name not like 'goose%'
		union all select 'index ' || indexdef from pg_indexes where schemaname = 'public' and tablename not like 'goose%'
		union all select 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) from pg_constraint
		          where connamespace = 'public'::regnamespace and conrelid::regclass::text not like 'goose%'
		union all select 'function ' || proname || ' ' || prosrc from pg_proc where pronamespace = 'public'::regnamespace and prolang <> 13 and probin is null
		order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMigrationsGoBackAndForth(t *testing.T) {
	b := newBerthed(t)
	before := b.shape(t)
	for range 2 {
		if err := db.Back(t.Context(), b.raw.DB); err != nil {
			t.Fatal(err)
		}
		if err := db.Migrate(t.Context(), b.raw.DB); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, b.shape(t)); diff != "" {
		t.Errorf("the schema is another after going back and forth: %s", diff)
	}
}
