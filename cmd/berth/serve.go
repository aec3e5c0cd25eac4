package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/cmd/berth/console"
	"berth/cmd/berth/lab"
	"berth/db"
)

type serveCommand struct {
	Listen       string   `default:"127.0.0.1:8080" env:"BERTH_LISTEN" help:"Address of the pages."`
	AgentListen  string   `env:"BERTH_AGENT_LISTEN" help:"Address of the agents' listener; 127.0.0.1:8443, and any free port in the lab."`
	AgentNames   []string `default:"localhost,127.0.0.1,::1" env:"BERTH_AGENT_NAMES" help:"Names and addresses by which agents reach it."`
	DatabaseURL  string   `env:"BERTH_DATABASE_URL" help:"Postgres to use; without it the console starts its own in the data folder."`
	DataDir      string   `default:".berth" env:"BERTH_DATA_DIR" help:"Data folder of the console's own Postgres and of the lab."`
	Secure       bool     `env:"BERTH_SECURE" help:"Browsers come by HTTPS, through a proxy: cookies are marked so."`
	Lab          bool     `help:"Add simulated hosts, two tenants and an operator."`
	LabPassword  string   `env:"BERTH_LAB_PASSWORD" help:"Password of the lab's sign-ins; without it one is made and kept."`
	hosts, cards int      // of a lab that is not the usual one

	LogLevel string `enum:"debug,info,warn,error," default:"" env:"BERTH_LOG_LEVEL" help:"debug, info, warn or error; info, and warn in the lab."`
}

// labCommand is serve --lab with a fleet of any size.
type labCommand struct {
	serveCommand
	Hosts int `default:"0" help:"How many simulated hosts, spread over the zones; 0 is the usual lab."`
	Cards int `default:"8" help:"How many cards each of them has."`
}

// The largest fleet that a lab plays.
const (
	maxLabHosts = 20_000
	maxLabCards = 32
)

// Run serves a lab until the process is told to stop.
func (c labCommand) Run(ctx context.Context) error {
	if c.Hosts < 0 || c.Hosts > maxLabHosts || c.Cards < 0 || c.Cards > maxLabCards {
		return fmt.Errorf("--hosts must be 0 to %d, and --cards 0 to %d", maxLabHosts, maxLabCards)
	}
	c.Lab, c.hosts, c.cards = true, c.Hosts, c.Cards
	return c.serveCommand.Run(ctx)
}

// startWait bounds everything that happens before the console answers.
const startWait = 3 * time.Minute

// Run serves until the process is told to stop.
func (c serveCommand) Run(ctx context.Context) (err error) {
	log := newLog(c.level())
	if c.DatabaseURL == "" {
		if c.DataDir, err = db.DropPrivileges(c.DataDir); err != nil {
			return err
		}
	}
	starting, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	k, err := console.Open(starting, console.Config{
		DatabaseURL: c.DatabaseURL, DataDir: c.DataDir, Listen: c.Listen, AgentListen: c.agentListen(), AgentNames: c.AgentNames,
		Secure: c.Secure, Version: version(), Log: log,
	})
	if err != nil {
		return stopped(ctx, err)
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return k.Serve(ctx) })
	if c.Lab {
		g.Go(func() error { return c.runLab(ctx, k, log) })
	} else {
		fmt.Fprintf(os.Stdout, "\n  Berth is at %s\n\n", k.URL())
	}
	return g.Wait()
}

// level is what the log keeps. A lab's log is quiet, so that its greeting stays
// in sight.
func (c serveCommand) level() slog.Level {
	level := slog.LevelInfo
	if c.Lab {
		level = slog.LevelWarn
	}
	if c.LogLevel != "" {
		_ = level.UnmarshalText([]byte(c.LogLevel)) // one of the flag's values
	}
	return level
}

// agentListen is the address for agents. The lab's own agents find it wherever
// it is, so that several labs can run on one machine.
func (c serveCommand) agentListen() string {
	switch {
	case c.AgentListen != "":
		return c.AgentListen
	case c.Lab:
		return "127.0.0.1:0"
	default:
		return "127.0.0.1:8443"
	}
}

// stopped is nil where an error only says that the process was told to stop.
func stopped(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}

func (c serveCommand) runLab(ctx context.Context, k *console.Console, log *slog.Logger) (err error) {
	l, err := lab.New(ctx, lab.Config{
		DataDir: c.DataDir, Password: c.LabPassword, Console: k.AgentURL(), Log: log, Hosts: c.hosts, Cards: c.cards,
		Compute: k.Compute, Fleet: k.Fleet, Tenancy: k.Tenancy,
	})
	if err != nil {
		return stopped(ctx, err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.Run(ctx) })
	g.Go(func() error {
		if err := l.Seed(ctx); err != nil {
			return stopped(ctx, err)
		}
		greet(k.URL(), l.Password)
		return nil
	})
	return g.Wait()
}

func greet(url, password string) {
	fmt.Fprintf(os.Stdout, `
  Berth is at %s

    operator   %s
    tenant A   %s
    tenant B   %s
    password   %s

`, url, lab.Admin, lab.TenantA, lab.TenantB, password)
}
