// Package dbtest gives each test a database of its own: freshly migrated, on a
// throwaway Postgres that all test processes of a run share.
package dbtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/peterldowns/pgtestdb"

	"berth/db"
)

// URLEnv names the environment variable with the URL of a superuser on a
// Postgres that may be filled with test databases. Where it is missing, a
// server is started and shared with the other test processes of this user.
const URLEnv = "BERTH_TEST_DATABASE_URL"

const serverDeadline = 2 * time.Minute

// New makes a migrated database and gives its URL. The database goes when the
// test has passed; after a failure it stays for as long as its server.
func New(t testing.TB) string {
	t.Helper()
	conf, err := parse(serverURL(t))
	if err != nil {
		t.Fatalf("read the test server's URL: %v", err)
	}
	conf.ForceTerminateConnections = true // a console under test may have been killed
	return pgtestdb.Custom(t, conf, schema{}).URL()
}

// Open is New and a connection pool on it, closed when the test ends.
func Open(t testing.TB) *db.DB {
	t.Helper()
	d, err := db.Open(context.Background(), New(t))
	if err != nil {
		t.Fatalf("open the test's database: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close the test's database: %v", err)
		}
	})
	return d
}

// shared is asked once in a process, however many tests it runs. The lease that
// it holds is given back by the kernel when the process ends.
var shared = sync.OnceValues(func() (lease, error) {
	ctx, cancel := context.WithTimeout(context.Background(), serverDeadline)
	defer cancel()
	return sharedServer(ctx, filepath.Join(os.TempDir(), "berth-dbtest-"+strconv.Itoa(os.Getuid())))
})

func serverURL(t testing.TB) string {
	t.Helper()
	if u := os.Getenv(URLEnv); u != "" {
		return u
	}
	l, err := shared()
	if err != nil {
		t.Fatalf("there is no test database; run make test, which sets one up (%v)", err)
	}
	return l.url
}

func parse(server string) (pgtestdb.Config, error) {
	u, err := url.Parse(server)
	if err != nil {
		return pgtestdb.Config{}, fmt.Errorf("parse %s: %w", URLEnv, err)
	}
	password, _ := u.User.Password()
	return pgtestdb.Config{
		DriverName: "postgres",
		Host:       u.Hostname(),
		Port:       u.Port(),
		User:       u.User.Username(),
		Password:   password,
		Database:   strings.TrimPrefix(u.Path, "/"),
		Options:    u.RawQuery,
	}, nil
}

// schema fills the template database that every test's database is a copy of.
type schema struct{}

// Hash changes with any change of a migration.
func (schema) Hash() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(db.Migrations, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(db.Migrations, path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read migrations: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Migrate fills the template.
func (schema) Migrate(ctx context.Context, d *sql.DB, _ pgtestdb.Config) error {
	return db.Migrate(ctx, d)
}
