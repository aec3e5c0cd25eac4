// Command berth-agent runs beside the machines with cards: it reports them to
// the console and carries out what the console wants.
//
// On a first start it needs the token that `berth enrol` printed; afterwards
// its certificate in the state folder is enough. With --driver libvirt it serves
// the machine that it runs on; with --driver sim it plays hosts that are
// described in a file such as
//
//	{
//	  "hosts": [{"name": "gpu-par-014", "generation": "v7", "vcores": 64,
//	             "memory_mib": 524288, "numa_nodes": 2, "models": ["l40", "l40", "h100"]}],
//	  "latency": {"bind": "300ms", "boot": "4s", "shutdown": "2s", "reboot": "3s", "clean": "5s"},
//	  "state_path": "/var/lib/berth-agent/sim.json"
//	}
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"berth/services/hostagent"
	"berth/services/hostagent/discovery"
	"berth/services/hostagent/libvirt"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/nvml"
	"berth/services/hostagent/passthrough"
	"berth/services/hostagent/sim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth-agent:", err)
		os.Exit(1)
	}
}

type flags struct {
	Run     runFlags     `cmd:"" help:"Serve this machine's cards and VMs until stopped."`
	Doctor  doctorFlags  `cmd:"" help:"Tell whether this machine is ready to hand out its cards, and what to do if not."`
	Version versionFlags `cmd:"" help:"Print the version."`
}

type runFlags struct {
	Console   string `required:"" env:"BERTH_CONSOLE" placeholder:"URL" help:"The console's agent listener, https."`
	Token     string `env:"BERTH_TOKEN" help:"Enrolment token; needed until the agent has a certificate. Prefer the variable: arguments can be read by everybody on the machine."`
	StateDir  string `required:"" env:"BERTH_STATE_DIR" type:"path" help:"Folder for the agent's key and certificate."`
	Driver    string `required:"" enum:"libvirt,sim" help:"What runs the VMs: ${enum}."`
	Config    string `type:"existingfile" placeholder:"FILE" help:"Configuration of a real host, for libvirt."`
	Name      string `help:"The host's name in the console, for libvirt; the machine's own."`
	SimConfig string `type:"existingfile" help:"Description of the simulated hosts."`
	Verbose   bool   `short:"v" help:"Log each report."`
}

type versionFlags struct{}

// process is what the commands need of the process they run in.
type process struct {
	ctx            context.Context //nolint:containedctx // ends with the process
	stdout, stderr io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f flags
	exit := -1
	parser, err := kong.New(&f, kong.Name("berth-agent"), kong.Description("The program that runs beside the machines with cards."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }))
	if err != nil {
		return fmt.Errorf("build the command line: %w", err)
	}
	command, err := parser.Parse(args)
	if exit >= 0 { // help was asked for and printed
		return nil
	}
	if err != nil {
		return err
	}
	return command.Run(process{ctx: ctx, stdout: stdout, stderr: stderr})
}

// Run serves until the process is told to stop.
func (f *runFlags) Run(p process) error {
	level := slog.LevelInfo
	if f.Verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(p.stderr, &slog.HandlerOptions{Level: level}))
	driver, err := f.driver(log)
	if err != nil {
		return err
	}
	defer func() { _ = driver.Close() }()
	agent, err := hostagent.New(hostagent.Options{
		Console: f.Console, Token: f.Token, StateDir: f.StateDir, Driver: driver, Version: version(), Logger: log,
	})
	if err != nil {
		return err
	}
	return agent.Run(p.ctx)
}

// closing is a driver with something to let go of.
type closing interface {
	hostagent.Driver
	io.Closer
}

func (f *runFlags) driver(log *slog.Logger) (closing, error) {
	if f.Driver == "libvirt" {
		return f.libvirt(log)
	}
	if f.SimConfig == "" {
		return nil, fmt.Errorf("--driver %s needs --sim-config", f.Driver)
	}
	conf, err := sim.LoadConfig(f.SimConfig)
	if err != nil {
		return nil, err
	}
	conf.Logger = log
	return sim.New(conf)
}

// libvirt serves the machine that this process runs on.
func (f *runFlags) libvirt(log *slog.Logger) (closing, error) {
	conf, err := loadConfig(f.Config)
	if err != nil {
		return nil, err
	}
	if f.Name == "" {
		if f.Name, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("ask for the host's name: %w", err)
		}
	}
	if err := os.MkdirAll(f.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	const root machine.Root = "/"
	look, err := discovery.New(discovery.Options{
		Name: f.Name, Root: root, Config: conf.Config, Identities: filepath.Join(f.StateDir, "cards.json"), Library: nvml.New(log), Logger: log,
	})
	if err != nil {
		return nil, err
	}
	binder, err := passthrough.New(root, filepath.Join(f.StateDir, "loans.json"), passthrough.Linux{Root: root})
	if err != nil {
		return nil, err
	}
	return libvirt.New(libvirt.Options{
		Host: f.Name, Look: look, Binder: binder, Orders: filepath.Join(f.StateDir, "orders.json"), Config: conf.Libvirt, Logger: log,
	})
}

// Run prints the version.
func (versionFlags) Run(p process) error {
	_, err := fmt.Fprintln(p.stdout, version())
	return err
}

// version is the module's as the Go tool knows it, else the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "dev"
}
