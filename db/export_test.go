package db

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"
)

// Explaining is the store of a database whose every query is planned first; seen
// gets the query with its plan as JSON.
func Explaining(d *DB, seen func(query string, plan []byte)) Store {
	return Store{q: explaining{conn: d.pool, seen: seen}}
}

type explaining struct {
	conn
	seen func(query string, plan []byte)
}

func (e explaining) plan(ctx context.Context, query string, args []any) error {
	var plan []byte
	if err := e.conn.GetContext(ctx, &plan, `explain (format json) `+query, args...); err != nil {
		return err
	}
	e.seen(query, plan)
	return nil
}

func (e explaining) GetContext(ctx context.Context, dest any, query string, args ...any) error {
	if err := e.plan(ctx, query, args); err != nil {
		return err
	}
	return e.conn.GetContext(ctx, dest, query, args...)
}

func (e explaining) SelectContext(ctx context.Context, dest any, query string, args ...any) error {
	if err := e.plan(ctx, query, args); err != nil {
		return err
	}
	return e.conn.SelectContext(ctx, dest, query, args...)
}

func (e explaining) QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	if err := e.plan(ctx, query, args); err != nil {
		return nil, err
	}
	return e.conn.QueryxContext(ctx, query, args...)
}

func (e explaining) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := e.plan(ctx, query, args); err != nil {
		return nil, err
	}
	return e.conn.ExecContext(ctx, query, args...)
}

// Back takes every migration back.
func Back(ctx context.Context, d *sql.DB) error {
	p, err := migrations(d)
	if err != nil {
		return err
	}
	_, err = p.DownTo(ctx, 0)
	return err
}
