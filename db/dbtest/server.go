package dbtest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	_ "github.com/lib/pq" // the driver by which servers are asked whether they live

	"berth/db"
)

const (
	leaseEvery = time.Second
	leaseIdle  = 5 // rounds without a user after which a shared server ends
)

// Serve runs a throwaway server until ctx ends, and prints its URL first. With
// no data folder it makes a temporary one and removes it at the end. With a
// lease it ends as well when no process holds a shared lock on that file, or,
// where the lease is "-", when standard input is closed.
func Serve(ctx context.Context, data, lease string) (err error) {
	if data == "" {
		if data, err = os.MkdirTemp("", "berth-postgres-"); err != nil {
			return fmt.Errorf("make a data folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := follow(ctx, cancel, lease); err != nil {
		return err
	}
	return db.ServeEmbedded(ctx, db.EmbeddedOptions{DataDir: data}, func(url string) error {
		_, err := fmt.Println(url)
		return err
	})
}

// follow calls end when the lease runs out.
func follow(ctx context.Context, end func(), lease string) error {
	switch lease {
	case "":
	case "-":
		go func() {
			defer end()
			_, _ = io.Copy(io.Discard, os.Stdin) // any way it ends is the end
		}()
	default:
		f, err := os.OpenFile(lease, os.O_RDWR, 0) // while this process still may
		if err != nil {
			return fmt.Errorf("open the lease: %w", err)
		}
		go func() {
			defer end()
			awaitIdle(ctx, f)
		}()
	}
	return nil
}

// awaitIdle returns when nobody has held the lease for a while, and then holds
// it alone, so that who comes now waits for the end and starts a new server.
func awaitIdle(ctx context.Context, lease *os.File) {
	for idle := 0; idle < leaseIdle; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(leaseEvery):
		}
		if syscall.Flock(int(lease.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			idle = 0
			continue
		}
		if idle++; idle < leaseIdle {
			_ = syscall.Flock(int(lease.Fd()), syscall.LOCK_UN) // a failure only makes others wait
		}
	}
}

// RunWith runs a command with a throwaway server of its own. A signal that ends
// ctx is passed on to the command, and the server goes last.
func RunWith(ctx context.Context, command []string) (err error) {
	runtime.LockOSThread() // the death signal follows the thread
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("locate this program: %w", err)
	}
	server := exec.CommandContext(context.WithoutCancel(ctx), self, "-serve", "-lease", "-")
	server.Stderr = os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the command
	lease, err := server.StdinPipe()
	if err != nil {
		return fmt.Errorf("start a test server: %w", err)
	}
	url, err := begin(server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Close(), server.Wait()) }()

	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), URLEnv+"="+url)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd.Run()
}

// begin starts a server process and waits for the URL that it prints.
func begin(server *exec.Cmd) (string, error) {
	out, err := server.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("start a test server: %w", err)
	}
	if err := server.Start(); err != nil {
		return "", fmt.Errorf("start a test server: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("start a test server: %w", errors.Join(err, server.Wait()))
	}
	return strings.TrimSpace(line), nil
}

// lease is the right to use a shared server, for as long as the file is open.
type lease struct {
	url  string
	file *os.File
}

// sharedServer gives the server that test processes share by way of a folder,
// and starts it when there is none.
func sharedServer(ctx context.Context, dir string) (_ lease, err error) {
	if err := ownFolder(dir); err != nil {
		return lease{}, err
	}
	file, err := locked(filepath.Join(dir, "lease"), syscall.LOCK_SH)
	if err != nil {
		return lease{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	starting, err := locked(filepath.Join(dir, "starting"), syscall.LOCK_EX)
	if err != nil {
		return lease{}, err
	}
	defer starting.Close()

	known := filepath.Join(dir, "url")
	if url, err := os.ReadFile(known); err == nil && answers(ctx, string(url)) {
		return lease{url: string(url), file: file}, nil
	}
	url, err := startShared(ctx, dir)
	if err != nil {
		return lease{}, err
	}
	if err := os.WriteFile(known, []byte(url), 0o600); err != nil {
		return lease{}, fmt.Errorf("tell others of the server: %w", err)
	}
	return lease{url: url, file: file}, nil
}

// ownFolder makes a folder for this user alone, or finds that it is one.
func ownFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make a meeting place: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the meeting place: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Getuid() || info.Mode() != fs.ModeDir|0o700 {
		return fmt.Errorf("%s is not this user's alone", dir)
	}
	return nil
}

func locked(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

func answers(ctx context.Context, url string) bool {
	d, err := sql.Open("postgres", url)
	if err != nil {
		return false
	}
	defer d.Close()
	return d.PingContext(ctx) == nil
}

// startShared builds the server program and leaves it running by itself.
func startShared(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "pgrun")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "berth/db/dbtest/pgrun")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the test server: %w: %s", err, strings.TrimSpace(string(out)))
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", fmt.Errorf("start a test server: %w", err)
	}
	defer log.Close()
	server := exec.CommandContext(context.WithoutCancel(ctx), program, "-serve", "-lease", filepath.Join(dir, "lease"))
	server.Stderr = log
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	url, err := begin(server)
	if err != nil {
		said, _ := io.ReadAll(io.NewSectionReader(log, 0, 4096)) // only to add to the error
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said)))
	}
	return url, server.Process.Release()
}
