package db

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrations holds the numbered steps of the schema.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Migrate brings a database to the newest schema. Consoles that start at the
// same time take turns.
func Migrate(ctx context.Context, d *sql.DB) error {
	p, err := migrations(d)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func migrations(d *sql.DB) (*goose.Provider, error) {
	steps, err := fs.Sub(Migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	turn, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("prepare migration lock: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, d, steps, goose.WithSessionLocker(turn))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}
