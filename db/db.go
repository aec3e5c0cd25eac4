// Package db is the only package with SQL: one file for each aggregate, goose
// migrations, an embedded Postgres, and LISTEN. The schema's constraints carry
// the invariants; this package translates the ones that users can meet.
package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/types"
	"github.com/lib/pq"

	"berth/services"
)

// Store holds every query; it runs them on a pool or within a transaction.
type Store struct {
	q conn
}

type conn interface {
	sqlx.ExtContext
	GetContext(ctx context.Context, dest any, query string, args ...any) error
	SelectContext(ctx context.Context, dest any, query string, args ...any) error
}

// DB is a pool of connections to one database.
type DB struct {
	Store
	pool *sqlx.DB
	url  string
}

// Tx is a transaction. It holds every query of Store, those that lock as well.
type Tx struct {
	Store
}

// Open connects to a Postgres URL and waits, until ctx ends, for an answer.
func Open(ctx context.Context, url string) (*DB, error) {
	c, err := pq.NewConnector(url)
	if err != nil {
		return nil, fmt.Errorf("read the database's URL: %w", err)
	}
	pool := sqlx.NewDb(sql.OpenDB(connector{c}), "postgres")
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to Postgres: %w", joinContext(ctx, err)), pool.Close())
	}
	pool.SetMaxOpenConns(24)
	pool.SetMaxIdleConns(12)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return &DB{Store: Store{q: pool}, pool: pool, url: url}, nil
}

// connector opens connections for which a page costs the same wherever it lies,
// as on flash. Postgres's default is that of spinning disks, and has it read
// large tables whole where an index finds the few rows that are wanted.
type connector struct{ driver.Connector }

// Connect opens a connection.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err = conn.(driver.ExecerContext).ExecContext(ctx, `set random_page_cost = 1.1`, nil); err != nil { //nolint:forcetypeassert // lib/pq's are
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Close gives the connections back.
func (d *DB) Close() error { return d.pool.Close() }

// Ping reports whether the database answers.
func (d *DB) Ping(ctx context.Context) error {
	return joinContext(ctx, d.pool.PingContext(ctx))
}

// Migrate brings the database to the newest schema.
func (d *DB) Migrate(ctx context.Context) error { return Migrate(ctx, d.pool.DB) }

const txAttempts = 4

// Tx runs f in a transaction and commits it when f returns nil. Deadlocks are
// resolved by running f again, so f must have no effect outside the database.
func (d *DB) Tx(ctx context.Context, f func(*Tx) error) error {
	var err error
	for range txAttempts {
		if err = d.once(ctx, f); !deadlocked(err) {
			return err
		}
	}
	return err
}

func (d *DB) once(ctx context.Context, f func(*Tx) error) error {
	tx, err := d.pool.BeginTxx(ctx, nil)
	if err != nil {
		return translate(ctx, "begin transaction", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing left to roll back
	if err := f(&Tx{Store{q: tx}}); err != nil {
		return err
	}
	return translate(ctx, "commit", tx.Commit())
}

// Try runs f within the transaction. Where f gives false or fails, nothing of
// what it wrote stays, and the transaction goes on.
func (t *Tx) Try(ctx context.Context, f func() (bool, error)) (bool, error) {
	if _, err := t.exec(ctx, "begin attempt", `savepoint attempt`); err != nil {
		return false, err
	}
	ok, err := f()
	end := `release savepoint attempt`
	if !ok || err != nil {
		end = `rollback to savepoint attempt; release savepoint attempt`
	}
	_, ended := t.exec(ctx, "end attempt", end)
	return ok, errors.Join(err, ended)
}

func deadlocked(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && e.Code == "40P01"
}

// referredTo tells a row that is not deleted because others point at it.
func referredTo(err error) bool {
	e, ok := errors.AsType[*pq.Error](err)
	return ok && e.Code == "23503"
}

// one runs a query that must find a row; sql.ErrNoRows stays recognisable.
func (s Store) one(ctx context.Context, dest any, doing, query string, args ...any) error {
	return translate(ctx, doing, s.q.GetContext(ctx, dest, query, args...))
}

// found is one for a row that may be missing.
func (s Store) found(ctx context.Context, dest any, doing, query string, args ...any) (bool, error) {
	err := s.one(ctx, dest, doing, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (s Store) all(ctx context.Context, dest any, doing, query string, args ...any) error {
	return translate(ctx, doing, s.q.SelectContext(ctx, dest, query, args...))
}

// exec runs a statement and gives the number of rows it changed.
func (s Store) exec(ctx context.Context, doing, query string, args ...any) (int64, error) {
	res, err := s.q.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, translate(ctx, doing, err)
	}
	n, err := res.RowsAffected()
	return n, translate(ctx, doing, err)
}

// hold locks a row, if it is there, before anything reads it. A query that
// joins and locks at once would, having waited, still join what the row
// pointed at before, and lose the row where it now points elsewhere.
func (t *Tx) hold(ctx context.Context, doing, query, id string) error {
	_, err := t.exec(ctx, doing, query, id)
	return err
}

// constraints maps the constraints that a user's request can break, in spite
// of earlier checks, to what they mean.
var constraints = map[string]struct {
	kind services.Kind
	code services.Code
}{
	"gpus_one_card":       {services.KindCapacity, services.CodeNoCapacity},
	"gpus_one_model":      {services.KindInvalid, services.CodeModelMismatch},
	"operations_one_open": {services.KindConflict, services.CodeBusy},
	"vms_image_id_fkey":   {services.KindInvalid, services.CodeInvalidValue},
}

func translate(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", doing, joinContext(ctx, err))
	if e, ok := errors.AsType[*pq.Error](err); ok {
		if known, ok := constraints[e.Constraint]; ok {
			return services.Fail(known.kind, known.code, nil).Because(err)
		}
	}
	if unreachable(err) {
		return fmt.Errorf("%w: %w", services.ErrUnavailable, err)
	}
	return err
}

// unreachable tells errors of a database that is away, starting, going down or
// full, from those of a statement.
func unreachable(err error) bool {
	if e, ok := errors.AsType[*pq.Error](err); ok {
		class := e.Code.Class()
		return class == "08" || class == "53" || e.Code == "57P01" || e.Code == "57P02" || e.Code == "57P03"
	}
	return errors.As(err, new(*net.OpError)) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF)
}

// joinContext makes a query that was cancelled (SQLSTATE 57014) recognisable
// as what cancelled it.
func joinContext(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return errors.Join(err, ctx.Err())
}

// JSON is a jsonb column as text; a pointer to it is one that may be null.
type JSON = types.JSONText
