package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"berth/cmd/berth/console"
	"berth/db"
	"berth/services/compute"
	"berth/services/fleet"
	"berth/services/tenancy"
)

// database is how a command finds the database of a console.
type database struct {
	DatabaseURL string `env:"BERTH_DATABASE_URL" help:"Postgres of the console."`
	DataDir     string `default:".berth" env:"BERTH_DATA_DIR" help:"Data folder of a console that runs its own Postgres."`
}

func (d database) open(ctx context.Context) (*db.DB, error) {
	url := d.DatabaseURL
	if url == "" {
		var err error
		if url, err = console.RunningDatabase(d.DataDir); err != nil {
			return nil, err
		}
	}
	return db.Open(ctx, url)
}

type migrateCommand struct {
	database
}

// Run migrates the database.
func (c migrateCommand) Run(ctx context.Context) (err error) {
	d, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Migrate(ctx)
}

type enrolCommand struct {
	database
	Zone string        `arg:"" help:"Zone of the agent's hosts."`
	Life time.Duration `default:"1h" help:"How long the token may be used."`
}

// Run prints a token.
func (c enrolCommand) Run(ctx context.Context) (err error) {
	d, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	f, err := fleet.New(ctx, d, compute.New(d, compute.Options{}), fleet.Options{})
	if err != nil {
		return err
	}
	token, err := f.NewToken(ctx, c.Zone, c.Life)
	if err != nil {
		return err
	}
	_, err = fmt.Println(token)
	return err
}

type userCommand struct {
	database
	Email string `arg:"" help:"Address to sign in with."`
	Admin bool   `help:"The user operates the platform."`
}

// Run adds a user with the password that is read from standard input.
func (c userCommand) Run(ctx context.Context) (err error) {
	fmt.Fprint(os.Stderr, "Password: ")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the password from standard input: %w", err)
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return errors.New("the password must not be empty")
	}
	d, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	t, err := tenancy.New(d, tenancy.Options{})
	if err != nil {
		return err
	}
	_, err = t.EnsureUser(ctx, c.Email, password, c.Admin)
	return err
}
