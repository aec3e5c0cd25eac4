package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var errPortTaken = errors.New("its port was taken meanwhile")

const pollEvery = 20 * time.Millisecond

// server is the running Postgres process.
type server struct {
	cmd     *exec.Cmd
	done    chan struct{} // closed after the process ended
	log     string        // path of its log
	logFrom int64         // where this run's lines begin
}

// settings of every server: it listens on loopback alone and has no socket
// file, so that nothing is left behind in shared folders.
func settings(port int, durable bool) []string {
	s := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port), "unix_socket_directories=",
		"max_connections=100", "log_min_messages=warning", "logging_collector=off", "log_destination=stderr",
		"wal_level=minimal", "max_wal_senders=0", "jit=off",
	}
	if !durable {
		s = append(s, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=400")
	}
	return s
}

// startServer starts the process, which ends with this one: should this one
// die without a word, the kernel asks Postgres to shut down. It has a process
// group of its own, so that Ctrl-C reaches the console only, which then stops
// Postgres in its turn.
func startServer(ctx context.Context, bin binaries, o EmbeddedOptions, port int) (*server, error) {
	dir := filepath.Join(o.DataDir, clusterDir)
	args := []string{"-D", reachableName(dir)}
	for _, setting := range settings(port, o.Durable) {
		args = append(args, "-c", setting)
	}
	log, from, err := openLog(filepath.Join(o.DataDir, logFile))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := bin.command(context.WithoutCancel(ctx), "postgres", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	s := &server{cmd: cmd, done: make(chan struct{}), log: log.Name(), logFrom: from}
	return s, s.spawn()
}

// spawn starts the process from an operating system thread that stays for as
// long as the process: the kernel's death signal follows the thread, not the
// whole of the parent.
func (s *server) spawn() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // how it ended stands in its log
			close(s.done)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("run %s: %w", s.cmd.Path, err)
	}
	return nil
}

// openLog opens the log for appending; one that has grown too long starts
// afresh.
func openLog(path string) (*os.File, int64, error) {
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	info, err := os.Stat(path)
	if err == nil && info.Size() > logLimit {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open the server's log: %w", err)
	}
	from, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open the server's log: %w", err), f.Close())
	}
	return f, from, nil
}

// ready waits until the server answers and has its database.
func (s *server) ready(ctx context.Context, maintenance string) error {
	d, err := sql.Open("postgres", maintenance)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer d.Close()
	for {
		if d.PingContext(ctx) == nil {
			return ensureDatabase(ctx, d)
		}
		select {
		case <-s.done:
			return s.failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for the server's first answer: %w", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// failure says why the server ended, from what it logged in this run.
func (s *server) failure() error {
	said, err := os.ReadFile(s.log)
	if err != nil {
		return fmt.Errorf("the server ended and its log cannot be read: %w", err)
	}
	text := strings.TrimSpace(string(said[min(s.logFrom, int64(len(said))):]))
	if strings.Contains(text, "could not bind") {
		return fmt.Errorf("the server ended: %w: %s", errPortTaken, text)
	}
	return fmt.Errorf("the server ended: %s", text)
}

// stop asks for a fast shutdown, then for an immediate one, then insists.
func (s *server) stop() error {
	if s == nil {
		return nil
	}
	for _, step := range shutdown {
		select {
		case <-s.done:
			return nil
		default:
		}
		_ = s.cmd.Process.Signal(step.signal) // it may have ended meanwhile
		select {
		case <-s.done:
			return nil
		case <-time.After(step.patience):
		}
	}
	return errors.New("stop embedded Postgres: it does not end")
}

// shutdown is how a server is ended: each signal gets its time.
var shutdown = []struct {
	signal   syscall.Signal
	patience time.Duration
}{
	{syscall.SIGINT, 20 * time.Second},
	{syscall.SIGQUIT, 5 * time.Second},
	{syscall.SIGKILL, 5 * time.Second},
}

// stopOrphans ends a server that still runs on the folder though no console
// holds it, and removes its claim. A process with the same number that has
// nothing to do with the folder is left alone.
func stopOrphans(ctx context.Context, cluster string) error {
	claim := filepath.Join(cluster, "postmaster.pid")
	if _, err := os.Stat(claim); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, step := range shutdown {
		if err := signalClaimant(claim, cluster, step.signal); err != nil {
			return err
		}
		gone, err := awaitNone(ctx, cluster, step.patience)
		if err != nil {
			return err
		}
		if gone {
			return removeClaim(claim)
		}
	}
	return fmt.Errorf("a Postgres that runs on %s does not end", cluster)
}

func removeClaim(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a stale claim: %w", err)
	}
	return nil
}

// signalClaimant sends a signal to the server that wrote the claim, if that is
// what runs under its process number now. Its children follow by themselves.
func signalClaimant(claim, cluster string, sig syscall.Signal) error {
	text, err := os.ReadFile(claim)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it has just ended
	}
	if err != nil {
		return fmt.Errorf("read who holds the server's files: %w", err)
	}
	pid := claimant(string(text))
	if pid <= 1 || !worksIn(pid, cluster) {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop a Postgres that was left behind: %w", err)
	}
	return nil
}

// claimant is the process number in a claim, 0 when the claim was cut off
// before it was written whole.
func claimant(claim string) int {
	first, _, _ := strings.Cut(claim, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0
	}
	return pid
}

func awaitNone(ctx context.Context, cluster string, patience time.Duration) (bool, error) {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		busy, err := anyWorksIn(cluster)
		if err != nil || !busy {
			return !busy, err
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("wait for a Postgres that was left behind: %w", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
	return false, nil
}

func anyWorksIn(dir string) (bool, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && worksIn(pid, dir) {
			return true, nil
		}
	}
	return false, nil
}

// worksIn reports whether a process is a Postgres with dir as its working
// folder, as every process of a server has.
func worksIn(pid int, dir string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	if err != nil || !strings.HasPrefix(filepath.Base(exe), "postgres") {
		return false
	}
	theirs, err := os.Stat(filepath.Join(proc, "cwd"))
	if err != nil {
		return false
	}
	ours, err := os.Stat(dir)
	return err == nil && os.SameFile(theirs, ours)
}
