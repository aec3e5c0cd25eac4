package e2e

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"berth/cmd/berth/console"
	"berth/cmd/berth/lab"
	"berth/db/dbtest"
	"berth/services/compute"
	"berth/services/hostagent/sim"
	"berth/services/tenancy"
)

// installation is a console with a lab, for one test alone.
type installation struct {
	*console.Console
	lab *lab.Lab
}

// password is that of all sign-ins of a test's lab.
const password = "a lab's password"

// brisk is how long simulated things take in tests: long enough for a page to
// show what passes, short enough not to be waited for.
var brisk = sim.Latency{
	Bind: 20 * time.Millisecond, Boot: 60 * time.Millisecond, Shutdown: 60 * time.Millisecond,
	Reboot: 60 * time.Millisecond, Clean: 20 * time.Millisecond,
}

// setting is what a test changes of an installation.
type setting struct {
	waits        compute.Waits
	prepare      time.Duration
	hosts, cards int // of a made-up fleet; 0: the usual lab
}

// newConsole starts a console on a database of its own, with agents at work.
func newConsole(t *testing.T) *installation { return newConsoleWith(t, setting{}) }

func newConsoleWith(t *testing.T, s setting) *installation {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	k, err := console.Open(ctx, console.Config{
		DatabaseURL: dbtest.New(t), Listen: "127.0.0.1:0", AgentListen: "127.0.0.1:0", AgentNames: []string{"127.0.0.1"},
		Version: "test", Log: log, Waits: s.waits, Prepare: s.prepare,
		Tenancy: tenancy.Options{Params: &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}},
	})
	must(t, err, "open the console")
	l, err := lab.New(ctx, lab.Config{
		DataDir: t.TempDir(), Password: password, Console: k.AgentURL(), Latency: &brisk, Log: log, Hosts: s.hosts, Cards: s.cards,
		Compute: k.Compute, Fleet: k.Fleet, Tenancy: k.Tenancy,
	})
	must(t, err, "make the lab")
	ended := make(chan error, 2)
	go func() { ended <- k.Serve(ctx) }()
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Errorf("the console ended with: %v", err)
			}
		}
		if err := l.Close(); err != nil {
			t.Errorf("close the lab: %v", err)
		}
		if err := k.Close(); err != nil {
			t.Errorf("close the console: %v", err)
		}
	})
	must(t, l.Seed(ctx), "seed the lab")
	return &installation{Console: k, lab: l}
}
