package db

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// userEnv names the user that a console started by root becomes.
const (
	userEnv     = "BERTH_USER"
	defaultUser = "nobody"
)

// sharedBinaries is where root puts a copy of Postgres's programs when they
// lie where the unprivileged user cannot read them.
const sharedBinaries = "/var/cache/berth"

// ErrNotOurs means that a folder holds something else than Berth's data, and
// that it was therefore not given away.
var ErrNotOurs = errors.New("the folder is not empty and holds no Berth data")

// DropPrivileges makes a process that root started an unprivileged one, for
// good and in all its threads, because Postgres refuses root. The data folder
// is made when missing and given to the user that BERTH_USER names, else to
// nobody. It returns the path under which the process reaches the data folder
// from then on: where the user may not pass through the folders above it, that
// is ".", and the data folder is the working folder. Programs that the user
// cannot read are copied to /var/cache/berth first. For any other user it does
// nothing. It fails with ErrNotOurs rather than give away a foreign folder.
func DropPrivileges(dataDir string) (string, error) {
	if os.Geteuid() != 0 {
		return dataDir, nil
	}
	dir, err := dropTo(dataDir)
	if err != nil {
		return "", fmt.Errorf("leave root's privileges: %w", err)
	}
	return dir, nil
}

func dropTo(dataDir string) (string, error) {
	who, err := lookUpUser()
	if err != nil {
		return "", err
	}
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return "", fmt.Errorf("locate the data folder: %w", err)
	}
	if err := giveAway(dir, who); err != nil {
		return "", err
	}
	if err := shareBinaries(filepath.Join(dir, clusterDir), who); err != nil {
		return "", err
	}
	if !who.reaches(dir) {
		if err := os.Chdir(dir); err != nil {
			return "", fmt.Errorf("enter the data folder: %w", err)
		}
		dir = "."
	}
	return dir, who.become()
}

// identity is a user that files can be given to and that a process can become.
type identity struct {
	uid, gid int
}

func lookUpUser() (identity, error) {
	name := os.Getenv(userEnv)
	if name == "" {
		name = defaultUser
	}
	u, err := user.Lookup(name)
	if err != nil {
		return identity{}, fmt.Errorf("find the user %q: %w", name, err)
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	if err := errors.Join(errUID, errGID); err != nil {
		return identity{}, fmt.Errorf("find the user %q: %w", name, err)
	}
	if uid == 0 {
		return identity{}, fmt.Errorf("%s is %q, which has root's privileges", userEnv, name)
	}
	return identity{uid: uid, gid: gid}, nil
}

func (who identity) become() error {
	if err := syscall.Setgroups([]int{who.gid}); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if err := syscall.Setgid(who.gid); err != nil {
		return fmt.Errorf("set group: %w", err)
	}
	if err := syscall.Setuid(who.uid); err != nil {
		return fmt.Errorf("set user: %w", err)
	}
	return nil
}

// reaches reports whether the user may pass through every folder above path.
func (who identity) reaches(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if !who.may(dir, 0o1) {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// may reports whether the file's mode lets the user do all that bits ask for:
// 4 read, 2 write, 1 enter or execute.
func (who identity) may(path string, bits fs.FileMode) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	mode := info.Mode().Perm()
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case int(owner.Uid) == who.uid:
			mode >>= 6
		case int(owner.Gid) == who.gid:
			mode >>= 3
		}
	}
	return mode&bits == bits
}

// giveAway makes the data folder the user's. A folder that has content and
// bears no mark of ours is refused: somebody mistyped its name.
func giveAway(dir string, who identity) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the data folder: %w", err)
	}
	mark := filepath.Join(dir, lockFile)
	if _, err := os.Lstat(mark); err != nil && len(entries) > 0 {
		return fmt.Errorf("%s: %w", dir, ErrNotOurs)
	}
	f, err := os.OpenFile(mark, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("mark the data folder: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("mark the data folder: %w", err)
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a running server removes files all the time
		}
		if err != nil {
			return err
		}
		if err := os.Lchown(path, who.uid, who.gid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// shareBinaries sees to it that the user can run Postgres, by a copy when need
// be, and names the programs to use in the environment.
func shareBinaries(cluster string, who identity) error {
	found, err := findBinaries(context.Background(), cluster)
	if err != nil {
		return err
	}
	if !who.reaches(filepath.Join(found.root, "bin", "postgres")) || !who.may(filepath.Join(found.root, "bin", "postgres"), 0o5) {
		if found.root, err = copyBinaries(found.root); err != nil {
			return err
		}
	}
	return os.Setenv(binariesEnv, found.root)
}

// copyBinaries copies an installation under a name made from what it is, and
// gives the copy's path. It stays root's, so the user can run but not change it.
func copyBinaries(root string) (string, error) {
	name, err := fingerprint(root)
	if err != nil {
		return "", err
	}
	target := filepath.Join(sharedBinaries, name)
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	if err := os.MkdirAll(sharedBinaries, 0o755); err != nil {
		return "", fmt.Errorf("copy Postgres's programs: %w", err)
	}
	// The process's umask may be stricter than what the user needs.
	if err := os.Chmod(sharedBinaries, 0o755); err != nil {
		return "", fmt.Errorf("copy Postgres's programs: %w", err)
	}
	fresh, err := os.MkdirTemp(sharedBinaries, "copy-")
	if err != nil {
		return "", fmt.Errorf("copy Postgres's programs: %w", err)
	}
	defer os.RemoveAll(fresh)
	for _, part := range []string{"bin", "lib", "share"} {
		if err := os.CopyFS(filepath.Join(fresh, part), os.DirFS(filepath.Join(root, part))); err != nil {
			return "", fmt.Errorf("copy Postgres's programs: %w", err)
		}
	}
	if err := readableByAll(fresh); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, target); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("copy Postgres's programs: %w", err)
	}
	return target, nil
}

// fingerprint changes when an installation is replaced by another.
func fingerprint(root string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"bin/postgres", "bin/initdb"} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			return "", fmt.Errorf("look at Postgres's programs: %w", err)
		}
		fmt.Fprintln(h, root, name, info.Size(), info.ModTime().UnixNano())
	}
	return "postgres-" + hex.EncodeToString(h.Sum(nil)[:6]), nil
}

func readableByAll(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}

// reachableName is the name by which a child process whose working folder is
// dir should call it: its path, or, where the way to it is closed to the user,
// the kernel's link to whatever the working folder is.
func reachableName(dir string) string {
	if strings.HasPrefix(dir, "/") {
		return dir
	}
	if path, err := filepath.Abs(dir); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "/proc/self/cwd"
}
