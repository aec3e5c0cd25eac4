// Package console puts the parts of a console together and runs them: the
// database, the services, the pages, the agents' listener, and the lab.
package console

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/db"
	"berth/handlers"
	"berth/services/activity"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/services/fleet"
	"berth/services/tenancy"
)

// Config says how a console runs.
type Config struct {
	DatabaseURL string   // empty: an embedded Postgres in DataDir
	DataDir     string   // of the embedded Postgres and the lab
	Listen      string   // of the pages, e.g. "127.0.0.1:8080"
	AgentListen string   // of the agents
	AgentNames  []string // names and addresses that agents reach the console by
	Secure      bool     // browsers come by HTTPS, through a proxy
	Version     string
	Log         *slog.Logger
	Waits       compute.Waits   // zero: compute.DefaultWaits
	Prepare     time.Duration   // zero: as fleet.Options
	Tenancy     tenancy.Options // zero: as in production
}

// Console is a console whose parts are made and whose ports are open.
type Console struct {
	Compute  *compute.Service
	Fleet    *fleet.Service
	Tenancy  *tenancy.Service
	Activity *activity.Service

	log      *slog.Logger
	db       *db.DB
	embedded *db.Embedded // nil: the database is somebody else's
	pages    server
	agents   server
}

type server struct {
	http     *http.Server
	listener net.Listener
}

// urlFile is where a console notes the URL of its embedded database, for the
// commands that work beside it.
const urlFile = "database.url"

// Open starts the database where it is embedded, brings the schema up to date,
// and opens the ports. The context bounds the start alone. Close what it gives.
func Open(ctx context.Context, c Config) (*Console, error) {
	k := &Console{log: c.Log}
	if err := k.open(ctx, c); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func (k *Console) open(ctx context.Context, c Config) error {
	url, err := k.database(ctx, c)
	if err != nil {
		return err
	}
	if k.db, err = db.Open(ctx, url); err != nil {
		return err
	}
	if err := k.db.Migrate(ctx); err != nil {
		return err
	}
	if err := k.firstCatalogue(ctx); err != nil {
		return err
	}
	if err := k.services(ctx, c); err != nil {
		return err
	}
	return k.listen(ctx, c)
}

func (k *Console) database(ctx context.Context, c Config) (string, error) {
	if c.DatabaseURL != "" {
		return c.DatabaseURL, nil
	}
	var err error
	k.embedded, err = db.StartEmbedded(ctx, db.EmbeddedOptions{DataDir: c.DataDir, Durable: true})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(c.DataDir, urlFile), []byte(k.embedded.URL()), 0o600); err != nil {
		return "", fmt.Errorf("note the database's URL: %w", err)
	}
	return k.embedded.URL(), nil
}

// RunningDatabase gives the URL of the embedded database of a console that runs
// on a data folder.
func RunningDatabase(dataDir string) (string, error) {
	url, err := os.ReadFile(filepath.Join(dataDir, urlFile)) //nolint:gosec // the operator names the folder
	if err != nil {
		return "", fmt.Errorf("find the database of the console in %s (does it run? else give --database-url): %w", dataDir, err)
	}
	return string(url), nil
}

// firstCatalogue fills an empty catalogue with the published one.
func (k *Console) firstCatalogue(ctx context.Context) error {
	return k.db.Tx(ctx, func(tx *db.Tx) error {
		models, err := tx.Models(ctx)
		if err != nil || len(models) > 0 {
			return err
		}
		return tx.AddReference(ctx, catalog.Published())
	})
}

func (k *Console) services(ctx context.Context, c Config) error {
	k.Compute = compute.New(k.db, compute.Options{Log: c.Log, Waits: c.Waits})
	k.Activity = activity.New(k.db, c.Log)
	var err error
	if k.Tenancy, err = tenancy.New(k.db, c.Tenancy); err != nil {
		return err
	}
	k.Fleet, err = fleet.New(ctx, k.db, k.Compute, fleet.Options{Log: c.Log, Prepare: c.Prepare})
	return err
}

// The longest that a client may take over a request's head, and over all of it.
const (
	headTimeout = 10 * time.Second
	readTimeout = time.Minute
	idleTimeout = 2 * time.Minute
)

func (k *Console) listen(ctx context.Context, c Config) error {
	pages, err := open(ctx, c.Listen, "BERTH_LISTEN")
	if err != nil {
		return err
	}
	k.pages.listener = pages
	agents, err := open(ctx, c.AgentListen, "BERTH_AGENT_LISTEN")
	if err != nil {
		return err
	}
	k.agents.listener = tls.NewListener(agents, k.Fleet.TLS(c.AgentNames))
	h, err := handlers.New(handlers.Options{
		Compute: k.Compute, Fleet: k.Fleet, Tenancy: k.Tenancy, Activity: k.Activity, Database: k.db,
		Log: c.Log, Version: c.Version, AgentURL: publicURL(c.AgentNames, agents.Addr()), Secure: c.Secure,
	})
	if err != nil {
		return err
	}
	k.pages.http, k.agents.http = answering(h.Pages(), c.Log), answering(h.Agents(), c.Log)
	return nil
}

// open listens on an address that a setting names.
func open(ctx context.Context, address, setting string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s, set another address in %s: %w", address, setting, err)
	}
	return l, nil
}

func answering(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// publicURL is what agents of other machines dial: the first of the console's
// names, and the port that is open.
func publicURL(names []string, at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return ""
	}
	if len(names) > 0 {
		host = names[0]
	}
	return "https://" + net.JoinHostPort(host, port)
}

// URL is where the pages are.
func (k *Console) URL() string { return "http://" + k.pages.listener.Addr().String() }

// AgentURL is what agents dial.
func (k *Console) AgentURL() string { return "https://" + k.agents.listener.Addr().String() }

// How often open operations are looked after besides what announcements bring,
// and how often stale rows are removed.
const (
	reconcileEvery = time.Second
	tidyEvery      = 10 * time.Minute
	sampleEvery    = 20 * time.Second // of a minute that any replica may be the first in
	shutdownWait   = 5 * time.Second
)

// Serve answers until ctx ends, then lets requests under way finish for a
// moment. It returns an error where a part ended by itself.
func (k *Console) Serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return k.Activity.Run(ctx) })
	g.Go(func() error {
		return k.every(ctx, reconcileEvery, "reconcile operations", k.Compute.Reconcile)
	})
	g.Go(func() error {
		return k.every(ctx, reconcileEvery, "move VMs off hosts and back", k.Compute.TendHosts)
	})
	g.Go(func() error { return k.every(ctx, reconcileEvery, "note silent hosts", k.Fleet.NoteSilence) })
	g.Go(func() error { return k.every(ctx, sampleEvery, "note capacity", k.Fleet.Sample) })
	g.Go(func() error { return k.every(ctx, tidyEvery, "remove stale rows", k.Tenancy.Tidy) })
	for _, s := range []server{k.pages, k.agents} {
		s.http.BaseContext = func(net.Listener) context.Context { return ctx }
		g.Go(func() error { return serve(s) })
		g.Go(func() error { return shutDown(ctx, s) })
	}
	if k.embedded != nil {
		g.Go(func() error { return k.watchDatabase(ctx) })
	}
	return g.Wait()
}

func serve(s server) error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
	}
	return nil
}

func shutDown(ctx context.Context, s server) error {
	<-ctx.Done()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWait)
	defer cancel()
	if err := s.http.Shutdown(bounded); err != nil {
		return errors.Join(s.http.Close(), fmt.Errorf("shut down %s: %w", s.listener.Addr(), err))
	}
	return nil
}

func (k *Console) watchDatabase(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-k.embedded.Done():
		return errors.New("the embedded Postgres ended by itself; its log is in the data folder")
	}
}

func (k *Console) every(ctx context.Context, interval time.Duration, work string, do func(context.Context) error) error {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if err := do(ctx); err != nil && ctx.Err() == nil {
				k.log.ErrorContext(ctx, "background work failed", "work", work, "error", err)
			}
		}
	}
}

// Close gives back everything that Open took.
func (k *Console) Close() error {
	var errs []error
	for _, s := range []server{k.pages, k.agents} {
		if s.listener != nil {
			if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	if k.db != nil {
		errs = append(errs, k.db.Close())
	}
	if k.embedded != nil {
		errs = append(errs, k.embedded.Stop())
	}
	return errors.Join(errs...)
}
