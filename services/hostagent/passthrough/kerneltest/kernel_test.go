package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/discovery"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/passthrough"
	"berth/services/hostagent/pci"
)

const key = "1654420198833"

// soon is well within what a step of the agent may take.
const soon = 5 * time.Second

// bench is the emulated machine with a binder on it.
type bench struct {
	*testing.T
	file   string
	binder *passthrough.Binder
}

func newBench(t *testing.T) *bench {
	t.Helper()
	disguise(t)
	b := &bench{T: t, file: filepath.Join(t.TempDir(), "loans.json")}
	b.restart("/")
	t.Cleanup(func() {
		b.restart("/")
		b.must("leave the card with the host", b.binder.Return(context.Background(), key))
		b.wantDrivers("left", "nvme", "snd_hda_intel")
	})
	return b
}

// restart is a new agent that sees the file system at root.
func (b *bench) restart(root machine.Root) {
	b.Helper()
	binder, err := passthrough.New(root, b.file, passthrough.Linux{Root: root})
	b.must("start", err)
	b.binder = binder
}

func (b *bench) must(doing string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", doing, err)
	}
}

// card is the one with two functions.
func (b *bench) card() pci.Card {
	b.Helper()
	bus, err := pci.Read("/")
	b.must("read the bus", err)
	i := slices.IndexFunc(bus.Cards, func(c pci.Card) bool { return len(c.Functions) == 2 })
	if i < 0 {
		b.Fatalf("no card of two functions among %+v", bus.Cards)
	}
	return bus.Cards[i]
}

func (b *bench) wantDrivers(doing string, want ...string) {
	b.Helper()
	var got []string
	for _, f := range b.card().Functions {
		got = append(got, f.Driver)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s: %s", doing, diff)
	}
}

func (b *bench) take() {
	b.Helper()
	b.must("take", b.binder.Take(b.Context(), key, b.card()))
	b.wantDrivers("taken", "vfio-pci", "vfio-pci")
}

func (b *bench) group() string { return fmt.Sprintf("/dev/vfio/%d", *b.card().GPU.IOMMUGroup) }

// wantHeld checks that err names a child of this test.
func (b *bench) wantHeld(doing string, err error, pid int) {
	b.Helper()
	blocked, ok := errors.AsType[*hostagent.Blocked](err)
	if !ok || blocked.Problem.Code != agentapi.ProblemHeld || blocked.Problem.PID != pid || blocked.Problem.Holder == "" {
		b.Fatalf("%s: error %v, want that pid %d holds the card", doing, err, pid)
	}
}

// disguise shows the NVMe controllers, which stand for GPUs, as L40S: it mounts
// files of its own over their ids in sysfs, once the host's drivers have them.
func disguise(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/run/ids"); err == nil {
		return
	}
	await(t, "the host's drivers have the devices", func() bool { return len(driven("nvme")) == 2 && len(driven("snd_hda_intel")) == 1 })
	if err := os.MkdirAll("/run/ids", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"vendor": "0x10de", "device": "0x26b9", "class": "0x030200"} {
		file := filepath.Join("/run/ids", name)
		if err := os.WriteFile(file, []byte(id+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, address := range driven("nvme") {
			if err := unix.Mount(file, filepath.Join("/sys/bus/pci/devices", address, name), "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// driven lists what a driver has.
func driven(driver string) []string {
	found, _ := filepath.Glob("/sys/bus/pci/drivers/" + driver + "/*:*:*.*")
	for i, f := range found {
		found[i] = filepath.Base(f)
	}
	return found
}

func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !so() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestDiscovery(t *testing.T) {
	b := newBench(t)
	host, err := discovery.New(discovery.Options{Name: "emulated"})
	b.must("prepare", err)
	found, err := host.Look(t.Context())
	b.must("look", err)
	if len(found.Report.Cards) != 2 || found.Partial {
		t.Fatalf("found %+v", found)
	}
	for _, c := range found.Report.Cards {
		if c.VendorID != pci.NVIDIA || c.DeviceID != "26b9" || c.IOMMUGroup == nil || len(c.Parents) != 2 || c.Functions[0].Driver != "nvme" {
			t.Errorf("card %+v", c)
		}
	}
	for _, code := range []string{agentapi.FindingIOMMUOff, agentapi.FindingVFIOMissing, agentapi.FindingGroup, agentapi.FindingGroupCritical} {
		if i := slices.IndexFunc(found.Report.Findings, func(f agentapi.Finding) bool { return f.Code == code && f.OK }); i < 0 {
			t.Errorf("%s is not well: %+v", code, found.Report.Findings)
		}
	}
}

func TestCardGoesAndComesBack(t *testing.T) {
	b := newBench(t)
	began := time.Now()
	b.take()
	t.Logf("taken in %s", time.Since(began))
	if !b.binder.Taken(b.card()) {
		t.Error("the card does not count as taken")
	}
	group, err := os.OpenFile(b.group(), os.O_RDWR, 0)
	b.must("open the group", err)
	if _, err := os.OpenFile(b.group(), os.O_RDWR, 0); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a second user of the group: %v, want EBUSY", err)
	}
	b.must("close the group", group.Close())
	began = time.Now()
	b.must("return", b.binder.Return(t.Context(), key))
	t.Logf("returned in %s", time.Since(began))
	b.wantDrivers("returned", "nvme", "snd_hda_intel")
}

func TestReset(t *testing.T) {
	b := newBench(t)
	b.take()
	if methods := b.card().GPU.ResetMethods; len(methods) == 0 {
		t.Fatal("the card has no reset")
	}
	b.must("reset", b.binder.Reset(t.Context(), key, b.card()))
	b.wantDrivers("reset", "vfio-pci", "vfio-pci")
}

func TestProcessOnTheHostDriverIsNamed(t *testing.T) {
	b := newBench(t)
	var node string
	await(t, "the device has a node", func() bool {
		nodes := machine.Nodes("/", string(b.card().GPU.Address))
		i := slices.IndexFunc(nodes, func(n string) bool { return strings.HasPrefix(n, "/dev/nvme") })
		if i >= 0 {
			node = nodes[i]
		}
		return i >= 0
	})
	pid, release := hold(t, "open "+node)
	b.wantHeld("take", b.binder.Take(t.Context(), key, b.card()), pid)
	b.wantDrivers("refused", "nvme", "snd_hda_intel")
	release()
	b.take()
}

func TestVMOnTheCardIsNamed(t *testing.T) {
	b := newBench(t)
	b.take()
	pid, release := hold(t, "vfio "+b.group()+" "+string(b.card().GPU.Address))
	began := time.Now()
	b.wantHeld("return", b.binder.Return(t.Context(), key), pid)
	if took := time.Since(began); took > soon {
		t.Errorf("it took %s", took)
	}
	b.wantDrivers("refused", "vfio-pci", "vfio-pci")
	release()
	b.must("return", b.binder.Return(t.Context(), key))
}

// blind is a file system in which no processes are seen, so that nobody can be
// named and an unbind is tried.
func blind(t *testing.T) machine.Root {
	t.Helper()
	const root = "/run/blind"
	for from, at := range map[string]string{"/sys": root + "/sys", "/proc/sys": root + "/proc/sys"} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(from, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	}
	return root
}

func TestUnbindThatBlocksEndsInTime(t *testing.T) {
	b := newBench(t)
	b.take()
	_, release := hold(t, "vfio "+b.group()+" "+string(b.card().GPU.Address))
	b.restart(blind(t))
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		began := time.Now()
		err := b.binder.Return(ctx, key)
		cancel()
		if blocked, ok := errors.AsType[*hostagent.Blocked](err); !ok || blocked.Problem.Code != agentapi.ProblemBind {
			t.Errorf("return: error %v, want %s", err, agentapi.ProblemBind)
		}
		if took := time.Since(began); took > soon {
			t.Errorf("it took %s", took)
		}
		if b.binder.Taken(b.card()) || len(b.binder.Loans()) != 1 {
			t.Error("a card that the kernel is at work on counts as taken or as returned")
		}
	}
	release()
	b.must("return once it let go", b.binder.Return(t.Context(), key))
	b.wantDrivers("returned", "nvme", "snd_hda_intel")
}

func TestAgentThatIsKilledWhileAnUnbindBlocksGoesOn(t *testing.T) {
	b := newBench(t)
	b.take()
	_, release := hold(t, "vfio "+b.group()+" "+string(b.card().GPU.Address))
	agent := child(t, fmt.Sprintf("return %s %s", blind(t), b.file))
	b.must("start an agent", agent.Start())
	await(t, "the unbind blocks", func() bool { return b.card().GPU.Driver == "" })
	b.must("kill the agent", agent.Process.Kill())
	b.restart("/run/blind")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	if err := b.binder.Return(ctx, key); err == nil || time.Since(began) > soon {
		t.Errorf("a new agent: error %v after %s", err, time.Since(began))
	}
	release()
	_ = agent.Wait()
	b.must("return once it let go", b.binder.Return(t.Context(), key))
	b.wantDrivers("returned", "nvme", "snd_hda_intel")
}

func TestAgentThatIsKilledAtAnyStepGoesOn(t *testing.T) {
	b := newBench(t)
	for n := range 7 {
		for _, last := range []string{"take", "return"} {
			agent := child(t, fmt.Sprintf("killed %d %s", n, b.file))
			_ = agent.Run() // it kills itself
			b.restart("/")
			if last == "take" {
				b.take()
			}
			b.must(fmt.Sprintf("return after %d writes and %s", n, last), b.binder.Return(t.Context(), key))
			b.wantDrivers(fmt.Sprintf("after %d writes and %s", n, last), "nvme", "snd_hda_intel")
		}
	}
}
