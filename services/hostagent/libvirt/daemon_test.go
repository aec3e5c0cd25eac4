package libvirt

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	rpc "github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket/dialers"
	"libvirt.org/go/libvirtxml"
)

// nobody runs libvirt and QEMU where the tests run as root.
const nobody = 65534

// server is a libvirtd of these tests alone, with QEMU's own emulation of a
// processor: no KVM is needed.
type server struct {
	program     string
	dir, socket string
	cmd         *exec.Cmd
}

var shared *server // nil: there is no libvirtd on this machine

func TestMain(m *testing.M) {
	os.Exit(runWithServer(m))
}

func runWithServer(m *testing.M) int {
	program, err := exec.LookPath("libvirtd")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/libvirtd")
	}
	if err == nil {
		if shared, err = newServer(program); err != nil {
			fmt.Fprintln(os.Stderr, "start libvirtd:", err)
			return 1
		}
		defer shared.remove()
	}
	return m.Run()
}

// newServer starts libvirtd in a session of its own.
func newServer(program string) (*server, error) {
	dir, err := os.MkdirTemp("", "lv-") // short: a socket's path holds 107 bytes
	if err != nil {
		return nil, err
	}
	s := &server{program: program, dir: dir, socket: filepath.Join(dir, "run/libvirt/libvirt-sock")}
	files := map[string]string{
		"config/libvirt/qemu.conf":     "stdio_handler = \"file\"\nremember_owner = 0\nsecurity_driver = \"none\"\n",
		"config/libvirt/libvirtd.conf": "log_level = 4\n",
		"home/.keep":                   "", "cache/.keep": "", "run/.keep": "", "pools/.keep": "",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if os.Getuid() == 0 {
		if err := giveAway(dir); err != nil {
			return nil, err
		}
	}
	return s, s.serve()
}

// serve starts the program and returns when it listens.
func (s *server) serve() error {
	s.cmd = exec.Command(s.program)
	s.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + s.dir + "/home", "XDG_CONFIG_HOME=" + s.dir + "/config",
		"XDG_RUNTIME_DIR=" + s.dir + "/run", "XDG_CACHE_HOME=" + s.dir + "/cache",
	}
	if os.Getuid() == 0 {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var log bytes.Buffer
	s.cmd.Stderr = &log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("unix", s.socket); err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			s.end()
			return fmt.Errorf("no socket: %s", log.String())
		}
	}
}

// end leaves the VMs as they are.
func (s *server) end() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

func (s *server) remove() {
	s.end()
	_ = os.RemoveAll(s.dir)
}

// stop and start are a restart of the daemon, as by an upgrade.
func (s *server) stop(t *testing.T) {
	t.Helper()
	s.end()
}

func (s *server) start(t *testing.T) {
	t.Helper()
	if err := s.serve(); err != nil {
		t.Fatal(err)
	}
}

// giveAway makes a folder and all in it nobody's.
func giveAway(dir string) error {
	return filepath.WalkDir(dir, func(file string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(file, nobody, nobody)
	})
}

// connect gives the tests a connection of their own.
func (s *server) connect(t *testing.T) *rpc.Libvirt {
	t.Helper()
	l := rpc.NewWithDialer(dialers.NewLocal(dialers.WithSocket(s.socket)))
	if err := l.ConnectToURI(rpc.QEMUSession); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Disconnect() })
	return l
}

// needServer skips where libvirt is not installed.
func needServer(t *testing.T) *server {
	t.Helper()
	if shared == nil && os.Getenv("BERTH_TEST_LIBVIRT") == "required" {
		t.Fatal("libvirtd is not installed")
	}
	if shared == nil {
		t.Skip("libvirtd is not installed: apt-get install libvirt-daemon-system qemu-system-x86")
	}
	return shared
}

// bootSector is a guest: the 16-bit program in the first sector of its disk. It
// powers off when the ACPI power button is pressed, or by itself when q comes
// over its serial line, and resets the machine for r.
var bootSector = []byte{
	0xfb,             // sti
	0xba, 0x02, 0x06, // mov dx,0x602: enable the power button
	0xb8, 0x00, 0x01, // mov ax,0x100
	0xef, // out dx,ax
	// loop:
	0xba, 0xf8, 0x03, // mov dx,0x3f8: say that it is there
	0xb0, '.', 0xee, // mov al,'.'; out dx,al
	0xf4,             // hlt, until the timer ticks
	0xba, 0x00, 0x06, // mov dx,0x600: was the button pressed?
	0xed,             // in ax,dx
	0xf6, 0xc4, 0x01, // test ah,1
	0x75, 0x1c, // jnz off
	0xba, 0xfd, 0x03, // mov dx,0x3fd: is there a letter?
	0xec,       // in al,dx
	0xa8, 0x01, // test al,1
	0x74, 0xe8, // jz loop
	0xba, 0xf8, 0x03, // mov dx,0x3f8
	0xec,                  // in al,dx
	0x3c, 'q', 0x74, 0x0c, // cmp al,'q'; je off
	0x3c, 'r', 0x75, 0xdc, // cmp al,'r'; jne loop
	0xba, 0xf9, 0x0c, // mov dx,0xcf9: reset
	0xb0, 0x06, 0xee, 0xeb, 0xd4, // mov al,6; out dx,al; jmp loop
	// off:
	0xba, 0x04, 0x06, // mov dx,0x604: sleep state 5
	0xb8, 0x00, 0x20, // mov ax,0x2000
	0xef, 0xeb, 0xcb, // out dx,ax; jmp loop
}

// pool makes a storage pool with an image of that guest.
func (s *server) pool(t *testing.T, l *rpc.Libvirt) (name string) {
	t.Helper()
	name = "pool-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	dir := filepath.Join(s.dir, "pools", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	image := make([]byte, 1<<20)
	copy(image, bootSector)
	image[510], image[511] = 0x55, 0xaa
	if err := os.WriteFile(filepath.Join(dir, "guest.raw"), image, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := giveAway(dir); err != nil {
			t.Fatal(err)
		}
	}
	def, err := (&libvirtxml.StoragePool{Type: "dir", Name: name, Target: &libvirtxml.StoragePoolTarget{Path: dir}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.StoragePoolCreateXML(def, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.connect(t).StoragePoolDestroy(p) })
	return name
}

// sweep removes all domains, whoever made them.
func (s *server) sweep(t *testing.T) {
	t.Helper()
	l := s.connect(t)
	all, _, err := l.ConnectListAllDomains(1, 0)
	if err != nil {
		t.Error(err)
	}
	for _, dom := range all {
		_ = l.DomainDestroy(dom)
		_ = l.DomainUndefineFlags(dom, rpc.DomainUndefineNvram)
	}
}

// serial is a guest's serial line.
func serial(t *testing.T, l *rpc.Libvirt, vm string) *os.File {
	t.Helper()
	dom, err := l.DomainLookupByName(vm)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := l.DomainGetXMLDesc(dom, 0)
	if err != nil {
		t.Fatal(err)
	}
	var def libvirtxml.Domain
	if err := def.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	line, err := os.OpenFile(def.Devices.Serials[0].Source.Pty.Path, os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = line.Close() })
	return line
}

// booted waits until a guest says that it is there.
func booted(t *testing.T, l *rpc.Libvirt, vm string) *os.File {
	t.Helper()
	line := serial(t, l, vm)
	if err := line.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for c := []byte{0}; c[0] != '.'; {
		if _, err := line.Read(c); err != nil {
			t.Fatalf("the guest does not boot: %v", err)
		}
	}
	return line
}

// powerOff lets a guest power itself off.
func powerOff(t *testing.T, l *rpc.Libvirt, vm string) {
	t.Helper()
	if _, err := booted(t, l, vm).WriteString("q"); err != nil {
		t.Fatal(err)
	}
}

// cardless is a libvirt on a machine without an IOMMU: it defines VMs with
// cards, and starts them without.
type cardless struct{ daemon }

func (c cardless) DomainCreate(dom rpc.Domain) error {
	raw, err := c.DomainGetXMLDesc(dom, rpc.DomainXMLInactive)
	if err != nil {
		return err
	}
	var def libvirtxml.Domain
	if err := def.Unmarshal(raw); err != nil {
		return err
	}
	def.Devices.Hostdevs = nil
	bare, err := def.Marshal()
	if err != nil {
		return err
	}
	if _, err := c.DomainDefineXMLFlags(bare, 0); err != nil {
		return err
	}
	started := c.daemon.DomainCreate(dom)
	if _, err := c.DomainDefineXMLFlags(raw, 0); err != nil {
		return err
	}
	return started
}

var _ daemon = (*rpc.Libvirt)(nil)

func eventually(ctx context.Context, t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}
