// Command berth is the console.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"berth/services"
	"berth/web/components"
)

type commands struct {
	Serve   serveCommand   `cmd:"" help:"Run the console."`
	Lab     labCommand     `cmd:"" help:"Run a console with simulated hosts, as many as you like."`
	Migrate migrateCommand `cmd:"" help:"Bring the database to the newest schema and exit."`
	Enrol   enrolCommand   `cmd:"" help:"Make a one-time token by which an agent joins a zone."`
	User    userCommand    `cmd:"" help:"Add a user or set a user's password."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var c commands
	k := kong.Parse(&c, kong.Name("berth"), kong.Description("A self-hosted console for GPU clouds."), kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(inWords(ctx, k.Run()))
}

// inWords tells broken rules as pages do.
func inWords(ctx context.Context, err error) error {
	e, ok := services.AsError(err)
	if !ok || len(e.Violations) == 0 {
		return err
	}
	sentences := make([]string, 0, len(e.Violations))
	for _, v := range e.Violations {
		sentences = append(sentences, components.Sentence(ctx, v))
	}
	return errors.New(strings.Join(sentences, " "))
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run() error {
	_, err := fmt.Println(version())
	return err
}

// version is that of the build, or the commit's.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return info.Main.Version
}

func newLog(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
