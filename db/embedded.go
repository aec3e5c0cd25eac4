package db

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lib/pq"
)

// What the embedded server keeps in its data folder.
const (
	clusterDir   = "postgres"          // Postgres's own files
	passwordFile = "postgres.password" // of the one role, readable by the owner only
	logFile      = "postgres.log"
	lockFile     = "berth.lock" // held while a console uses the folder; marks it as ours
)

const (
	embeddedRole     = "berth"
	embeddedDatabase = "berth"
	startDeadline    = time.Minute // a server that recovers from a crash needs a while
	portTries        = 3
	logLimit         = 8 << 20 // bytes after which the log starts afresh
)

// ErrDataDirInUse means that another console works on the same data folder.
var ErrDataDirInUse = errors.New("another console is using this data folder")

// EmbeddedOptions say where and how the embedded Postgres runs.
type EmbeddedOptions struct {
	// DataDir is the folder for everything the server keeps. It is made when
	// missing.
	DataDir string
	// Port on the loopback interface; 0 takes a free one.
	Port int
	// Durable makes every commit survive a power cut. Without it the server
	// is faster, and good for tests only.
	Durable bool
}

// Embedded is a Postgres that this process started. It accepts connections
// from this machine alone, and it ends when this process ends, however that
// comes about.
type Embedded struct {
	server *server
	lock   *os.File
	url    string
}

// StartEmbedded starts Postgres on a data folder and waits until it answers
// and has its database. A server that an earlier console left behind is
// stopped first. It fails with ErrDataDirInUse while another console holds the
// folder, which is then left alone. The context bounds the start, not the run.
func StartEmbedded(ctx context.Context, o EmbeddedOptions) (*Embedded, error) {
	if os.Geteuid() == 0 {
		return nil, errors.New("start embedded Postgres: it refuses to run as root; drop privileges first")
	}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	lock, err := lockDataDir(o.DataDir)
	if err != nil {
		return nil, err
	}
	e := &Embedded{lock: lock}
	if err := e.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start embedded Postgres: %w", err), lock.Close())
	}
	return e, nil
}

// ServeEmbedded is the whole life of a server in one call: it leaves root's
// privileges, starts, tells ready the URL, and stops when ctx ends. It returns
// an error when the server ended by itself.
func ServeEmbedded(ctx context.Context, o EmbeddedOptions, ready func(url string) error) error {
	dir, err := DropPrivileges(o.DataDir)
	if err != nil {
		return err
	}
	o.DataDir = dir
	e, err := StartEmbedded(ctx, o)
	if err != nil {
		return err
	}
	if err := ready(e.URL()); err != nil {
		return errors.Join(err, e.Stop())
	}
	select {
	case <-ctx.Done():
		return e.Stop()
	case <-e.Done():
		return errors.Join(errors.New("embedded Postgres ended by itself; its log says why"), e.Stop())
	}
}

// URL is the server's address with the sign-in of its superuser.
func (e *Embedded) URL() string { return e.url }

// Done is closed once the server has ended, asked or not.
func (e *Embedded) Done() <-chan struct{} { return e.server.done }

// Stop ends the server, cutting connections that are still open, and gives the
// data folder back. It returns within half a minute. Stopping twice is
// harmless.
func (e *Embedded) Stop() error {
	err := e.server.stop()
	if closed := e.lock.Close(); closed != nil && !errors.Is(closed, os.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

func (e *Embedded) start(ctx context.Context, o EmbeddedOptions) error {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	cluster := filepath.Join(o.DataDir, clusterDir)
	bin, err := findBinaries(ctx, cluster)
	if err != nil {
		return err
	}
	if err := stopOrphans(ctx, cluster); err != nil {
		return err
	}
	if err := ensureCluster(ctx, bin, o); err != nil {
		return err
	}
	password, err := os.ReadFile(filepath.Join(o.DataDir, passwordFile))
	if err != nil {
		return fmt.Errorf("read the server's password: %w", err)
	}
	return e.serve(ctx, bin, o, string(password))
}

// serve starts the server. Between finding a free port and taking it somebody
// else may take it: then another one is tried.
func (e *Embedded) serve(ctx context.Context, bin binaries, o EmbeddedOptions, password string) error {
	var failed error
	for range portTries {
		port, err := choosePort(ctx, o.Port)
		if err != nil {
			return err
		}
		e.server, err = startServer(ctx, bin, o, port)
		if err != nil {
			return err
		}
		e.url = loopbackURL(port, password, embeddedDatabase)
		failed = e.server.ready(ctx, loopbackURL(port, password, "postgres"))
		if failed == nil || !errors.Is(failed, errPortTaken) {
			break
		}
	}
	if failed != nil {
		return errors.Join(failed, e.server.stop())
	}
	return nil
}

func choosePort(ctx context.Context, wanted int) (int, error) {
	if wanted != 0 {
		return wanted, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

func loopbackURL(port int, password, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(embeddedRole, password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// lockDataDir takes the folder for this process. The kernel gives it back when
// the process ends, even by force.
func lockDataDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrDataDirInUse
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), f.Close())
	}
	return f, nil
}

// ensureCluster makes the server's files on the first start. They are made
// aside and renamed when complete, so a start that was cut off leaves nothing
// half made.
func ensureCluster(ctx context.Context, bin binaries, o EmbeddedOptions) error {
	cluster := filepath.Join(o.DataDir, clusterDir)
	if _, err := os.Stat(filepath.Join(cluster, "PG_VERSION")); err == nil {
		return nil
	}
	fresh := cluster + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("clear an unfinished first start: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("make the server's folder: %w", err)
	}
	password := filepath.Join(o.DataDir, passwordFile)
	if err := os.WriteFile(password, []byte(rand.Text()), 0o600); err != nil {
		return fmt.Errorf("write the server's password: %w", err)
	}
	if err := initCluster(ctx, bin, fresh, o.Durable); err != nil {
		return err
	}
	if err := os.Rename(fresh, cluster); err != nil {
		return fmt.Errorf("keep the server's files: %w", err)
	}
	return nil
}

func initCluster(ctx context.Context, bin binaries, dir string, durable bool) error {
	args := []string{
		"--pgdata=" + reachableName(dir), "--username=" + embeddedRole,
		"--pwfile=" + filepath.Join("..", passwordFile), "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions",
	}
	if !durable {
		args = append(args, "--no-sync")
	}
	cmd := bin.command(ctx, "initdb", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the server's files: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func ensureDatabase(ctx context.Context, d *sql.DB) error {
	var exists bool
	const query = `select exists (select from pg_database where datname = $1)`
	if err := d.QueryRowContext(ctx, query, embeddedDatabase).Scan(&exists); err != nil {
		return fmt.Errorf("look for the database: %w", err)
	}
	if exists {
		return nil
	}
	if _, err := d.ExecContext(ctx, `create database `+pq.QuoteIdentifier(embeddedDatabase)); err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	return nil
}
