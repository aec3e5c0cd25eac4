package main_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq" // to ask the servers
)

const deadline = 30 * time.Second

// program is the path of pgrun as built for these tests.
var program string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pgrun-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a folder:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "pgrun")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// console is a running "pgrun -serve".
type console struct {
	*exec.Cmd
	url    string
	stderr bytes.Buffer
	ended  chan struct{} // closed once err is set
	err    error
}

func serve(t *testing.T, args ...string) *console {
	t.Helper()
	c := &console{Cmd: exec.Command(program, append([]string{"-serve"}, args...)...), ended: make(chan struct{})}
	c.Stderr = &c.stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // nothing, when it failed
	c.url = strings.TrimSpace(line)
	go func() {
		c.err = c.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended already
		_ = c.wait(t)
	})
	return c
}

func (c *console) end(t *testing.T, sig syscall.Signal) error {
	t.Helper()
	if err := c.Process.Signal(sig); err != nil {
		t.Fatalf("signal %v: %v", sig, err)
	}
	return c.wait(t)
}

func (c *console) wait(t *testing.T) error {
	t.Helper()
	select {
	case <-c.ended:
		return c.err
	case <-time.After(deadline):
		t.Fatal("pgrun does not end")
		return nil
	}
}

func query(t *testing.T, url, q string) string {
	t.Helper()
	d, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var got string
	if err := d.QueryRowContext(ctx, q).Scan(&got); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return got
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	d, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func postmaster(t *testing.T, data string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "postgres", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// awaitGone waits for a process to end; one that nobody has waited for yet
// counts as ended.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
	}
	t.Fatalf("process %d still runs", pid)
}

func dataDir(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }

func TestServerEndsWithItsConsole(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			data := dataDir(t)
			c := serve(t, "-data", data)
			pid := postmaster(t, data)
			err := c.end(t, sig)
			if sig != syscall.SIGKILL && err != nil {
				t.Errorf("ended with %v: %s", err, &c.stderr)
			}
			awaitGone(t, pid)
		})
	}
}

func TestDataSurvivesAKilledConsole(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	c := serve(t, "-data", data)
	execute(t, c.url, `create table kept as select 'berth' as word`)
	_ = c.end(t, syscall.SIGKILL)

	again := serve(t, "-data", data)
	if again.url == "" {
		t.Fatalf("does not start again: %s", &again.stderr)
	}
	if got := query(t, again.url, `select word from kept`); got != "berth" {
		t.Errorf("word = %q after the restart", got)
	}
}

func TestSecondConsoleIsRefusedAndHarmsNothing(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	first := serve(t, "-data", data)
	second := serve(t, "-data", data)
	if err := second.wait(t); err == nil {
		t.Error("the second console ended without an error")
	}
	if want := "another console is using this data folder"; !strings.Contains(second.stderr.String(), want) {
		t.Errorf("the second console said %q, want %q", second.stderr.String(), want)
	}
	if got := query(t, first.url, `select 'alive'`); got != "alive" {
		t.Errorf("the first server answers %q", got)
	}
}

func TestOrphanedServerIsReplaced(t *testing.T) {
	data := dataDir(t)
	c := serve(t, "-data", data)
	binary, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(postmaster(t, data)), "exe"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.end(t, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	orphan := startAlone(t, binary, data)

	again := serve(t, "-data", data)
	if again.url == "" {
		t.Fatalf("does not start beside an orphan: %s", &again.stderr)
	}
	if got := postmaster(t, data); got == orphan {
		t.Errorf("the orphan %d still holds the folder", orphan)
	}
}

// startAlone starts Postgres on the folder as its owner, and waits for its
// claim.
func startAlone(t *testing.T, binary, data string) int {
	t.Helper()
	cluster := filepath.Join(data, "postgres")
	info, err := os.Stat(cluster)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-D", "/proc/self/cwd", "-c", "unix_socket_directories=",
		"-c", "listen_addresses=127.0.0.1", "-c", "port="+freePort(t))
	cmd.Dir = cluster
	owner := info.Sys().(*syscall.Stat_t)
	leave := func() {}
	if os.Geteuid() == 0 {
		// The folder is entered before root's privileges are left.
		leave = enter(t, cluster)
		cmd.Dir = ""
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Start()
	leave()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(cluster, "postmaster.pid"))
		if err == nil && bytes.Contains(text, []byte("ready")) {
			return cmd.Process.Pid
		}
	}
	_ = cmd.Process.Kill()
	<-ended
	t.Fatalf("the orphan does not start: %s", &said)
	return 0
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// enter makes dir the working folder until the returned function is called,
// which is before the test ends.
func enter(t *testing.T, dir string) func() {
	t.Helper()
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chdir(dir); err != nil { //nolint:usetesting // undone before the test ends
		t.Fatal(err)
	}
	return func() {
		if err := os.Chdir(before); err != nil { //nolint:usetesting // as above
			t.Error(err)
		}
	}
}

func TestClaimOfAnUnrelatedProcessIsStale(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	if err := serve(t, "-data", data).end(t, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	bystander := exec.Command("sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	})
	claim := filepath.Join(data, "postgres", "postmaster.pid")
	text := strconv.Itoa(bystander.Process.Pid) + "\n" + filepath.Join(data, "postgres") + "\n"
	if err := os.WriteFile(claim, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	again := serve(t, "-data", data)
	if again.url == "" {
		t.Fatalf("does not start: %s", &again.stderr)
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the bystander was ended: %v", err)
	}
}

func TestRootGivesNoForeignFolderAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives folders away")
	}
	data := t.TempDir()
	file := filepath.Join(data, "thesis.txt")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := serve(t, "-data", data)
	if err := c.wait(t); err == nil {
		t.Error("a foreign folder was taken")
	}
	if want := "holds no Berth data"; !strings.Contains(c.stderr.String(), want) {
		t.Errorf("said %q, want %q", c.stderr.String(), want)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 {
		t.Errorf("the file now belongs to %d", owner)
	}
}

func TestRootRunsProgramsThatTheUserCannotRead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root changes to another user")
	}
	data := dataDir(t)
	c := serve(t, "-data", data)
	exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(postmaster(t, data)), "exe"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.end(t, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hidden := t.TempDir()
	if err := os.Chmod(hidden, 0o700); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(hidden, "native")
	if err := os.CopyFS(root, os.DirFS(filepath.Dir(filepath.Dir(exe)))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BERTH_POSTGRES_BIN", root)
	again := serve(t, "-data", data)
	if again.url == "" {
		t.Fatalf("does not start: %s", &again.stderr)
	}
	used, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(postmaster(t, data)), "exe"))
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Dir(filepath.Dir(used))
	t.Cleanup(func() {
		if err := os.RemoveAll(copied); err != nil {
			t.Error(err)
		}
	})
	if !strings.HasPrefix(copied, "/var/cache/berth/") {
		t.Errorf("runs from %s", copied)
	}
}

func TestServerEndsWhenNobodyHoldsItsLease(t *testing.T) {
	t.Parallel()
	lease, err := os.Create(filepath.Join(t.TempDir(), "lease"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lease.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	c := serve(t, "-lease", lease.Name())
	if got := query(t, c.url, `select 'held'`); got != "held" {
		t.Errorf("a held server answers %q", got)
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.wait(t); err != nil {
		t.Errorf("ended with %v: %s", err, &c.stderr)
	}
}

func TestCommandGetsAServerAndPassesItsExitCodeOn(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(program, "sh", "-c", `echo "$BERTH_TEST_DATABASE_URL"; exit 7`)
	out, _ := cmd.Output() // the exit code is looked at below
	if !strings.HasPrefix(string(out), "postgres://") {
		t.Errorf("the command saw %q for a URL", out)
	}
	if got := cmd.ProcessState.ExitCode(); got != 7 {
		t.Errorf("exit code %d, want 7", got)
	}
}

func TestKilledWrapperLeavesNoServer(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(program, "sh", "-c", `echo "$BERTH_TEST_DATABASE_URL"; exec sleep 60`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(query(t, strings.TrimSpace(line), `select split_part(pg_read_file('postmaster.pid'), E'\n', 1)`))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, pid)
}
