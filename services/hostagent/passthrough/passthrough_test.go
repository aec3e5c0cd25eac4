package passthrough_test

import (
	"bytes"
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

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/passthrough"
	"berth/services/hostagent/pci"
	"berth/services/hostagent/sysfstest"
)

const key = "1654420198833"

// bench is a host with cards, and a binder on it.
type bench struct {
	*testing.T
	tree   *sysfstest.Tree
	linux  *sysfstest.Kernel
	file   string
	binder *passthrough.Binder
}

func newBench(t *testing.T, tree *sysfstest.Tree) *bench {
	t.Helper()
	b := &bench{T: t, tree: tree, linux: tree.Kernel(), file: filepath.Join(t.TempDir(), "loans.json")}
	b.restart(b.linux)
	return b
}

// restart is a new agent after the last one ended or was killed.
func (b *bench) restart(kernel passthrough.Kernel) {
	b.Helper()
	binder, err := passthrough.New(machine.Root(b.tree.Root), b.file, kernel)
	if err != nil {
		b.Fatal(err)
	}
	b.binder = binder
}

func (b *bench) card(at pci.Address) pci.Card {
	b.Helper()
	bus, err := pci.Read(b.tree.Root)
	if err != nil {
		b.Fatal(err)
	}
	i := slices.IndexFunc(bus.Cards, func(c pci.Card) bool { return c.GPU.Address == at })
	if i < 0 {
		b.Fatalf("no card at %s", at)
	}
	return bus.Cards[i]
}

// state tells drivers and overrides of all functions of a card.
func (b *bench) state(at pci.Address) []string {
	b.Helper()
	var out []string
	for _, f := range b.card(at).Functions {
		override, err := os.ReadFile(filepath.Join(b.tree.Root, pci.Devices, string(f.Address), "driver_override"))
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s by %s", f.Driver, strings.TrimSpace(string(override))))
	}
	return out
}

func (b *bench) wantState(doing string, want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, b.state(quadro)); diff != "" {
		b.Errorf("%s: %s", doing, diff)
	}
}

func (b *bench) must(doing string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", doing, err)
	}
}

func (b *bench) wantProblem(doing string, err error, code, message string) agentapi.Problem {
	b.Helper()
	blocked, ok := errors.AsType[*hostagent.Blocked](err)
	if !ok || blocked.Problem.Code != code || !strings.Contains(blocked.Problem.Message, message) {
		b.Fatalf("%s: error %v, want %s with %q", doing, err, code, message)
	}
	return blocked.Problem
}

// quadro is the first card of FourFunctions.
const quadro pci.Address = "0000:3b:00.0"

var (
	home = []string{"nvidia by (null)", "snd_hda_intel by (null)", "xhci_hcd by (null)", "nvidia-gpu by (null)"}
	away = []string{"vfio-pci by vfio-pci", "vfio-pci by vfio-pci", "vfio-pci by vfio-pci", "vfio-pci by vfio-pci"}
)

func TestCardGoesAndComesBackWhole(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	for range 2 {
		b.must("take", b.binder.Take(t.Context(), key, b.card(quadro)))
		b.wantState("taken", away...)
		if !b.binder.Taken(b.card(quadro)) || !slices.Equal(b.binder.Loans(), []string{key}) {
			t.Errorf("taken is %t, on loan are %v", b.binder.Taken(b.card(quadro)), b.binder.Loans())
		}
	}
	if n := len(b.linux.Writes); n != 12 {
		t.Errorf("%d writes, want override, unbind and probe for each of 4 functions, once", n)
	}
	for range 2 {
		b.must("return", b.binder.Return(t.Context(), key))
		b.wantState("returned", home...)
		if b.binder.Taken(b.card(quadro)) || len(b.binder.Loans()) != 0 {
			t.Errorf("taken is %t, on loan are %v", b.binder.Taken(b.card(quadro)), b.binder.Loans())
		}
	}
}

// killed is a kernel under an agent that is killed after some writes.
type killed struct {
	passthrough.Kernel
	left int
}

var errKilled = errors.New("killed")

func (k *killed) Write(name, value string) error {
	if k.left == 0 {
		return errKilled
	}
	k.left--
	return k.Kernel.Write(name, value)
}

func TestAgentThatIsKilledAtAnyStepGoesOn(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	take := func() error { return b.binder.Take(t.Context(), key, b.card(quadro)) }
	giveBack := func() error { return b.binder.Return(t.Context(), key) }
	for n := range 13 {
		for _, c := range []struct {
			first, killed, then func() error
			what                string
			want                []string
		}{
			{giveBack, take, take, "a take, then takes", away},
			{giveBack, take, giveBack, "a take, then returns", home},
			{take, giveBack, take, "a return, then takes", away},
			{take, giveBack, giveBack, "a return, then returns", home},
		} {
			b.must("prepare", c.first())
			b.restart(&killed{b.linux, n})
			_ = c.killed()
			b.restart(b.linux)
			b.must(c.what, c.then())
			b.wantState(fmt.Sprintf("killed after %d writes of %s", n, c.what), c.want...)
		}
	}
}

// watch tells what was on disk at the first write.
type watch struct {
	passthrough.Kernel
	file  string
	found *[]byte
}

func (w watch) Write(name, value string) error {
	if *w.found == nil {
		*w.found, _ = os.ReadFile(w.file)
	}
	return w.Kernel.Write(name, value)
}

func TestFormerDriversAreOnDiskFirst(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	var found []byte
	b.restart(watch{b.linux, b.file, &found})
	b.must("take", b.binder.Take(t.Context(), key, b.card(quadro)))
	for _, want := range []string{key, `"nvidia"`, `"snd_hda_intel"`, "0000:3b:00.3"} {
		if !bytes.Contains(found, []byte(want)) {
			t.Errorf("%q was not on disk at the first write: %s", want, found)
		}
	}
	b.file = filepath.Join(t.TempDir(), "not", "there")
	b.restart(b.linux)
	writes := len(b.linux.Writes)
	if err := b.binder.Take(t.Context(), "other", b.card("0000:5e:00.0")); err == nil || len(b.linux.Writes) != writes {
		t.Errorf("a card was touched that could not be noted: error %v", err)
	}
}

// process puts a process into the tree that has a node open.
func (b *bench) process(pid int, name, node string) {
	b.Helper()
	dir := fmt.Sprintf("proc/%d", pid)
	b.tree.File(dir+"/comm", name+"\n")
	b.tree.File(dir+"/fd/.keep", "")
	b.must("open", os.Symlink(node, filepath.Join(b.tree.Root, dir, "fd/7")))
}

func TestHolderIsNamedAndNothingTouched(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	b.tree.File("sys/devices/pci0000:3b/0000:3b:00.1/sound/card1/pcmC1D3p/uevent", "DEVNAME=snd/pcmC1D3p\n")
	b.process(4242, "pipewire", "/dev/snd/pcmC1D3p")
	err := b.binder.Take(t.Context(), key, b.card(quadro))
	p := b.wantProblem("take", err, agentapi.ProblemHeld, "pipewire (pid 4242) has 0000:3b:00.1 open")
	if p.Holder != "pipewire" || p.PID != 4242 || p.Card != key {
		t.Errorf("problem %+v", p)
	}
	if len(b.linux.Writes) != 0 || len(b.binder.Loans()) != 0 {
		t.Errorf("written %v, on loan %v", b.linux.Writes, b.binder.Loans())
	}
	b.tree.Remove("proc/4242")
	b.must("take once it let go", b.binder.Take(t.Context(), key, b.card(quadro)))
	b.process(4243, "qemu-system-x86", "/dev/vfio/0")
	b.wantProblem("return", b.binder.Return(t.Context(), key), agentapi.ProblemHeld, "qemu-system-x86 (pid 4243)")
	b.wantState("while a VM runs", away...)
}

func TestUnbindThatHangsHangsNoLongerThanItsContext(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	release := b.linux.Hold("0000:3b:00.2")
	defer release()
	card := b.card(quadro)
	for try := range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		err := b.binder.Take(ctx, key, card)
		cancel()
		b.wantProblem(fmt.Sprint("try ", try), err, agentapi.ProblemBind, "deadline")
		b.wantState("while one function hangs", home[0], home[1], " by vfio-pci", home[3])
		if b.binder.Taken(b.card(quadro)) {
			t.Error("a card counts as taken while the kernel is at work on it")
		}
	}
	n := 0
	for _, w := range b.linux.Writes {
		if strings.Contains(w, "0000:3b:00.2/driver/unbind") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d unbinds of the function that hangs, want 1", n)
	}
	release()
	b.must("take once it let go", b.binder.Take(t.Context(), key, b.card(quadro)))
	b.wantState("taken", away...)
	b.must("return", b.binder.Return(t.Context(), key))
	b.wantState("returned", home...)
}

func TestFailureIsUndone(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(*bench)
		message string
	}{
		"no vfio-pci":         {func(b *bench) { b.tree.Remove("sys/bus/pci/drivers/vfio-pci") }, "vfio-pci is not loaded"},
		"a write that fails":  {func(b *bench) { b.linux.Break("0000:3b:00.3/driver_override", errors.New("input/output error")) }, "input/output error"},
		"an unbind that does": {func(b *bench) { b.linux.Break("0000:3b:00.2/driver/unbind", errors.New("no such device")) }, "no such device"},
	} {
		b := newBench(t, sysfstest.FourFunctions(t))
		c.spoil(b)
		b.wantProblem(name, b.binder.Take(t.Context(), key, b.card(quadro)), agentapi.ProblemBind, c.message)
		b.wantState(name, home...)
	}
}

func TestDriverThatDoesNotTakeTheDevice(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	b.linux.Break("drivers_probe", errors.New("invalid argument"))
	b.wantProblem("take", b.binder.Take(t.Context(), key, b.card(quadro)), agentapi.ProblemBind, "invalid argument")
	if !slices.Equal(b.binder.Loans(), []string{key}) {
		t.Errorf("a card that could not go back is forgotten: %v", b.binder.Loans())
	}
	b.linux.Break("drivers_probe", nil)
	b.must("return", b.binder.Return(t.Context(), key))
	b.wantState("returned", home...)
}

func TestFormerDriverThatIsGone(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	b.must("take", b.binder.Take(t.Context(), key, b.card(quadro)))
	b.tree.Remove("sys/bus/pci/drivers/nvidia")
	b.wantProblem("return", b.binder.Return(t.Context(), key), agentapi.ProblemBind, "nvidia is not loaded")
	if !slices.Equal(b.binder.Loans(), []string{key}) {
		t.Errorf("on loan are %v", b.binder.Loans())
	}
}

func TestCardThatMayNotLeave(t *testing.T) {
	shared := newBench(t, sysfstest.SharedGroup(t))
	err := shared.binder.Take(t.Context(), key, shared.card("0000:01:00.0"))
	shared.wantProblem("group with a NIC", err, agentapi.ProblemGroup, "0000:02:00.0 (driver mlx5_core) shares IOMMU group 14")

	off := newBench(t, sysfstest.FourFunctions(t))
	off.tree.Remove("sys/devices/pci0000:3b/0000:3b:00.0/iommu_group")
	off.wantProblem("no group", off.binder.Take(t.Context(), key, off.card(quadro)), agentapi.ProblemGroup, "the IOMMU is off")

	half := newBench(t, sysfstest.FourFunctions(t))
	half.tree.File("sys/devices/pci0000:3b/0000:3b:00.1/class", "")
	half.wantProblem("unreadable function", half.binder.Take(t.Context(), key, half.card(quadro)), agentapi.ProblemIdentity, "0000:3b:00")
	for _, b := range []*bench{shared, off, half} {
		if len(b.linux.Writes) != 0 || len(b.binder.Loans()) != 0 {
			t.Errorf("written %v, on loan %v", b.linux.Writes, b.binder.Loans())
		}
	}
}

func TestCardThatVFIOHadFromTheStartStaysThere(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	for _, f := range b.card(quadro).Functions {
		b.tree.Remove(pci.Devices + "/" + string(f.Address) + "/driver")
		b.tree.Link("sys/devices/pci0000:3b/"+string(f.Address)+"/driver", "sys/bus/pci/drivers/vfio-pci")
	}
	b.must("take", b.binder.Take(t.Context(), key, b.card(quadro)))
	b.must("return", b.binder.Return(t.Context(), key))
	b.wantState("returned", "vfio-pci by (null)", "vfio-pci by (null)", "vfio-pci by (null)", "vfio-pci by (null)")
	if slices.ContainsFunc(b.linux.Writes, func(w string) bool { return !strings.Contains(w, "driver_override") }) {
		t.Errorf("written %v", b.linux.Writes)
	}
}

func TestLoanOfAnEarlierBootIsForgotten(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	b.tree.File("proc/sys/kernel/random/boot_id", "first\n")
	b.restart(b.linux)
	b.must("take", b.binder.Take(t.Context(), key, b.card(quadro)))
	other := sysfstest.FourFunctions(t)
	other.File("proc/sys/kernel/random/boot_id", "second\n")
	b.tree, b.linux = other, other.Kernel()
	b.restart(b.linux)
	b.must("return", b.binder.Return(t.Context(), key))
	b.wantState("after a reboot", home...)
	if len(b.binder.Loans()) != 0 || len(b.linux.Writes) != 0 {
		t.Errorf("on loan %v, written %v", b.binder.Loans(), b.linux.Writes)
	}
}

func TestCardThatWasPulledIsForgotten(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	b.must("take", b.binder.Take(t.Context(), key, b.card(quadro)))
	for _, f := range b.card(quadro).Functions {
		b.tree.Remove(pci.Devices + "/" + string(f.Address))
	}
	b.must("return", b.binder.Return(t.Context(), key))
	if len(b.binder.Loans()) != 0 {
		t.Errorf("on loan are %v", b.binder.Loans())
	}
}

func TestRecordThatCannotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "loans.json")
	if err := os.WriteFile(file, []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := sysfstest.FourFunctions(t)
	if _, err := passthrough.New(machine.Root(tree.Root), file, tree.Kernel()); err == nil {
		t.Error("no error, and nobody knows where the cards belong")
	}
}

func TestVariantDriverIsPreferredWhereItIsLoaded(t *testing.T) {
	tree := sysfstest.FourFunctions(t)
	tree.File("lib/modules/6.1.0-28-amd64/modules.alias", strings.Join([]string{
		"# Aliases extracted from modules themselves.",
		"alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci",
		"alias vfio_pci:v000010DEd00001E30sv*sd*bc*sc*i* quadro_vfio_pci",
		"alias vfio_pci:v000010DEd00001E30sv000010DEsd0000129Fbc*sc*i* special_vfio_pci",
		"alias pci:v000010DEd00001E30sv*sd*bc*sc*i* nvidia",
	}, "\n"))
	tree.File("sys/bus/pci/drivers/quadro_vfio_pci/uevent", "")
	b := newBench(t, tree)
	b.must("take", b.binder.Take(t.Context(), key, b.card(quadro)))
	b.wantState("taken", append([]string{"quadro_vfio_pci by quadro_vfio_pci"}, away[1:]...)...)
	b.must("return", b.binder.Return(t.Context(), key))
	b.wantState("returned", home...)
}

func TestReset(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	b.must("reset", b.binder.Reset(t.Context(), key, b.card(quadro)))
	if n := len(b.linux.Writes); n != 4 || b.linux.Writes[0] != "sys/bus/pci/devices/0000:3b:00.0/reset=1" {
		t.Errorf("written %v, want a reset of each function", b.linux.Writes)
	}
	b.linux.Break("0000:3b:00.0/reset", errors.New("inappropriate ioctl for device"))
	b.wantProblem("a reset that fails", b.binder.Reset(t.Context(), key, b.card(quadro)), agentapi.ProblemReset, "inappropriate ioctl")
	b.linux.Break("0000:3b:00.0/reset", nil)
	b.tree.File("sys/devices/pci0000:3b/0000:3b:00.0/config", "\xff\xff\xff\xff")
	b.wantProblem("a card that fell off the bus", b.binder.Reset(t.Context(), key, b.card(quadro)), agentapi.ProblemReset, "does not answer")
	b.tree.Remove("sys/devices/pci0000:3b/0000:3b:00.0/reset_method")
	b.tree.Remove("sys/devices/pci0000:3b/0000:3b:00.0/reset")
	b.wantProblem("a card without a reset", b.binder.Reset(t.Context(), key, b.card(quadro)), agentapi.ProblemReset, "no way to reset")
}

func TestTwoStepsWithOneCardWaitForEachOther(t *testing.T) {
	b := newBench(t, sysfstest.FourFunctions(t))
	release := b.linux.Hold(string(quadro))
	first := make(chan error, 1)
	go func() { first <- b.binder.Take(t.Context(), key, b.card(quadro)) }()
	for len(b.binder.Loans()) == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := b.binder.Return(ctx, key); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a return beside a take: error %v", err)
	}
	release()
	b.must("take", <-first)
	b.wantState("taken", away...)
}
