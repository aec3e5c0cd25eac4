package kerneltest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"berth/services/hostagent/machine"
	"berth/services/hostagent/passthrough"
	"berth/services/hostagent/pci"
)

// Requests of linux/vfio.h.
const (
	vfioSetIOMMU         = 0x3b66
	vfioSetContainer     = 0x3b68
	vfioGetDevice        = 0x3b6a
	vfioType1        int = 1
)

// runChild is the whole life of a child.
func runChild(what string) {
	words := strings.Fields(what)
	var err error
	switch words[0] {
	case "open":
		err = holdNode(words[1])
	case "vfio":
		err = holdDevice(words[1], words[2])
	case "return":
		err = returnCard(machine.Root(words[1]), words[2])
	case "killed":
		err = takeAndDie(words[1], words[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, what+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// hold starts a child that has something open, and waits until it has.
func hold(t *testing.T, what string) (pid int, release func()) {
	t.Helper()
	cmd := child(t, what)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%s: %q, %v", what, line, err)
	}
	release = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(release)
	return cmd.Process.Pid, release
}

// untilReleased says that all is open and waits.
func untilReleased() error {
	fmt.Println("open")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func holdNode(node string) error {
	f, err := os.Open(node)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return untilReleased()
}

// holdDevice has a device as QEMU does for a VM.
func holdDevice(groupNode, address string) error {
	container, err := os.OpenFile("/dev/vfio/vfio", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	group, err := os.OpenFile(groupNode, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(int(group.Fd()), vfioSetContainer, int(container.Fd())); err != nil {
		return fmt.Errorf("join the container: %w", err)
	}
	if err := unix.IoctlSetInt(int(container.Fd()), vfioSetIOMMU, vfioType1); err != nil {
		return fmt.Errorf("set the IOMMU: %w", err)
	}
	name, err := unix.BytePtrFromString(address)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, group.Fd(), vfioGetDevice, uintptr(unsafe.Pointer(name))); errno != 0 {
		return fmt.Errorf("open the device: %w", errno)
	}
	return untilReleased()
}

func returnCard(root machine.Root, file string) error {
	b, err := passthrough.New(root, file, passthrough.Linux{Root: root})
	if err != nil {
		return err
	}
	return b.Return(context.Background(), key)
}

// dying is a kernel under an agent that is killed before one of its writes.
type dying struct {
	passthrough.Kernel
	left int
}

func (d *dying) Write(name, value string) error {
	if d.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	d.left--
	return d.Kernel.Write(name, value)
}

func takeAndDie(after, file string) error {
	d := &dying{Kernel: passthrough.Linux{Root: "/"}}
	if _, err := fmt.Sscan(after, &d.left); err != nil {
		return err
	}
	b, err := passthrough.New("/", file, d)
	if err != nil {
		return err
	}
	bus, err := pci.Read("/")
	if err != nil {
		return err
	}
	for _, c := range bus.Cards {
		if len(c.Functions) == 2 {
			return b.Take(context.Background(), key, c)
		}
	}
	return fmt.Errorf("no card of two functions")
}
