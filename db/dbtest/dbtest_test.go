package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/db"
)

func version(t *testing.T, url string) (steps int) {
	t.Helper()
	d, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const query = `select count(*) from goose_db_version where version_id > 0 and is_applied`
	if err := d.QueryRowContext(t.Context(), query).Scan(&steps); err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestEachTestGetsItsOwnMigratedDatabase(t *testing.T) {
	first, second := New(t), New(t)
	if first == second {
		t.Errorf("two calls gave one database: %s", first)
	}
	files, err := fs.Glob(db.Migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if got := version(t, second); got != len(files) {
		t.Errorf("%d migrations applied, want %d", got, len(files))
	}
	if err := Open(t).Ping(t.Context()); err != nil {
		t.Errorf("the opened pool does not answer: %v", err)
	}
}

func TestSharedServerIsFoundAgainAndEndsAfterItsLastUser(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := sharedServer(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sharedServer(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.url != again.url {
		t.Errorf("a second server was started: %s, %s", first.url, again.url)
	}
	for _, l := range []lease{first, again} {
		if err := l.file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for answers(ctx, first.url) {
		time.Sleep(50 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Error("the server still runs without users")
	}
}

func TestMeetingPlaceOfAnotherUserIsRefused(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := ownFolder(open); err == nil {
		t.Error("a folder that all can write to was accepted")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := ownFolder(link); err == nil {
		t.Error("a link was accepted")
	}
	own := filepath.Join(t.TempDir(), "own")
	if err := ownFolder(own); err != nil {
		t.Errorf("a new folder was refused: %v", err)
	}
	if _, err := os.Stat(own); errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder was not made")
	}
}
