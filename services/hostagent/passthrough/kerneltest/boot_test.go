package kerneltest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The machine's exit device ends QEMU with twice the value plus one.
const (
	exitPort = 0x501
	passed   = 16
	failed   = 17
)

// childEnv tells a process of the test binary what it is to be.
const childEnv = "KERNELTEST_CHILD"

// TestMain is the first process of the emulated machine, a child that a test
// started there, or go test anywhere else, where there is nothing to test with.
func TestMain(m *testing.M) {
	if child := os.Getenv(childEnv); child != "" {
		runChild(child)
	}
	if os.Getpid() != 1 {
		fmt.Println("skipped: these tests run inside an emulated machine, by make test-vfio")
		return
	}
	status := byte(failed)
	if err := boot(); err != nil {
		fmt.Println("boot:", err)
	} else if m.Run() == 0 {
		status = passed
	}
	powerOff(status)
}

// boot mounts what a Linux process expects and loads the drivers.
func boot() error {
	for _, m := range []struct{ kind, at string }{{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"}} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	for _, name := range []string{"vfio_iommu_type1", "vfio-pci", "nvme", "snd-hda-intel"} {
		if err := load(name); err != nil {
			return err
		}
	}
	return nil
}

// load loads a module after those that it needs, as modprobe does.
func load(name string) error {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	dir := filepath.Join("/lib/modules", strings.TrimSpace(string(release)))
	deps, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(deps)) {
		file, needs, _ := strings.Cut(line, ":")
		if filepath.Base(file) != name+".ko" {
			continue
		}
		files := strings.Fields(needs)
		for _, f := range slices.Backward(files) {
			if err := insert(filepath.Join(dir, f)); err != nil {
				return err
			}
		}
		return insert(filepath.Join(dir, file))
	}
	return fmt.Errorf("no module %s", name)
}

func insert(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && err != unix.EEXIST {
		return fmt.Errorf("load %s: %w", file, err)
	}
	return nil
}

// powerOff writes what is left on the console, then tells QEMU how it went.
func powerOff(status byte) {
	_ = unix.IoctlSetInt(int(os.Stdout.Fd()), unix.TCSBRK, 1) // drains the serial line
	port, err := os.OpenFile("/dev/port", os.O_WRONLY, 0)
	if err == nil {
		_, err = port.WriteAt([]byte{status}, exitPort)
	}
	fmt.Println("the exit device does not work:", err)
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// child starts a process of this binary as something else. It lives until its
// standard input ends.
func child(t *testing.T, what string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	cmd.Stderr = os.Stderr
	return cmd
}
