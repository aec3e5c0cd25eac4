package libvirt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rpc "github.com/digitalocean/go-libvirt"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/contract"
	"berth/services/hostagent/discovery"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/passthrough"
	"berth/services/hostagent/sysfstest"
)

// The driver against a real libvirtd, which runs real VMs; host and cards are a
// tree of files with a kernel that moves drivers about in it.
func TestContract(t *testing.T) {
	needServer(t)
	contract.Test(t, func(t *testing.T) contract.Fixture { return newSite(t).fixture() })
}

// site is a machine with two cards, and a driver on it.
type site struct {
	*testing.T
	tree   *sysfstest.Tree
	kernel *sysfstest.Kernel
	rpc    *rpc.Libvirt
	pool   string
	state  string
	driver *Driver
	whole  bool // VMs start with their cards
}

func newSite(t *testing.T) *site {
	t.Helper()
	server := needServer(t)
	tree := sysfstest.A100Bridge(t)
	s := &site{T: t, tree: tree, kernel: tree.Kernel(), rpc: server.connect(t), state: t.TempDir()}
	s.pool = server.pool(t, s.rpc)
	t.Cleanup(func() { server.sweep(t) })
	s.open(Config{})
	return s
}

// open starts a driver, as a new agent does.
func (s *site) open(conf Config) {
	s.Helper()
	conf.Socket, conf.URI, conf.Pool, conf.Firmware, conf.Emulate = shared.socket, string(rpc.QEMUSession), s.pool, firmwareBIOS, true
	root := machine.Root(s.tree.Root)
	look, err := discovery.New(discovery.Options{
		Name: host, Root: root, Identities: filepath.Join(s.state, "cards.json"),
		Config: discovery.Config{Generations: []discovery.Generation{{Name: "v7", CPU: "AMD EPYC 7*"}}},
	})
	s.must("look", err)
	binder, err := passthrough.New(root, filepath.Join(s.state, "loans.json"), s.kernel)
	s.must("bind", err)
	d, err := New(Options{
		Host: host, Look: look, Binder: binder, Orders: filepath.Join(s.state, "orders.json"), Config: conf, RebootGrace: 3 * time.Second,
		dial: func() (daemon, error) {
			to, err := dial(conf.Socket, conf.URI)
			if err != nil {
				return nil, err
			}
			if s.whole {
				return to, nil
			}
			return cardless{to}, nil
		},
	})
	s.must("open", err)
	s.driver = d
	s.Cleanup(func() { _ = d.Close() })
}

func (s *site) must(doing string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

func (s *site) fixture() contract.Fixture {
	return contract.Fixture{
		Driver: s.driver, Host: host, VM: agentapi.DesiredVM{VCores: 1, MemoryMiB: 64, Image: "guest", SSHKey: "ssh-ed25519 AAAA me@here"},
		PowerOff: func(t *testing.T, vm string) { powerOff(t, s.rpc, vm) },
		Hold:     func(_ *testing.T, card string) (string, int, func()) { return s.hold(card) },
		Reopen: func(*testing.T) hostagent.Driver {
			s.must("close", s.driver.Close())
			s.open(Config{})
			return s.driver
		},
	}
}

// hold lets a process of the tree have a card open by NVIDIA's driver.
func (s *site) hold(card string) (process string, pid int, release func()) {
	s.Helper()
	_, slot, _ := strings.Cut(card, "@")
	s.tree.File("proc/driver/nvidia/gpus/"+slot+".0/information", "Device Minor: \t 3\n")
	s.tree.File("proc/4242/comm", "nvidia-persiste\n")
	s.tree.File("proc/4242/fd/.keep", "")
	s.must("open the card", os.Symlink("/dev/nvidia3", filepath.Join(s.tree.Root, "proc/4242/fd/5")))
	return "nvidia-persiste", 4242, func() { s.tree.Remove("proc/4242") }
}

// apply gives a VM what is wanted of it.
func (s *site) apply(vm agentapi.DesiredVM) {
	s.Helper()
	s.must("apply", s.driver.Apply(s.Context(), host, vm))
}

// want is the nth VM with the first cards of the host.
func (s *site) want(n, cards int) agentapi.DesiredVM {
	s.Helper()
	vm := s.fixture().VM
	vm.ID = fmt.Sprintf("i-c0ffee%02x", n)
	for _, c := range s.look().Host.Cards[:cards] {
		vm.Devices = append(vm.Devices, agentapi.Device{Key: c.Key, PCIAddress: c.PCIAddress, IOMMUGroup: c.IOMMUGroup})
	}
	return vm
}

func (s *site) look() hostagent.Inspection {
	s.Helper()
	in, err := s.driver.Inspect(s.Context(), host)
	s.must("inspect", err)
	return in
}
