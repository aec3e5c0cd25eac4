package libvirt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rpc "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"berth/services/agentapi"
	"berth/services/hostagent"
	"berth/services/hostagent/pci"
	"berth/services/hostagent/sysfstest"
)

const host = "gpu-par-014"

func (s *site) wantProblem(doing string, err error, code, message string) agentapi.Problem {
	s.Helper()
	b, ok := errors.AsType[*hostagent.Blocked](err)
	if !ok || b.Problem.Code != code || !strings.Contains(b.Problem.Message, message) {
		s.Fatalf("%s: error %v, want %s with %q", doing, err, code, message)
	}
	return b.Problem
}

func (s *site) vm(id string) agentapi.VMReport {
	s.Helper()
	in := s.look()
	for _, v := range in.Host.VMs {
		if v.ID == id {
			return v
		}
	}
	s.Fatalf("VM %s is not there", id)
	return agentapi.VMReport{}
}

func (s *site) wantPower(id, power, by string) {
	s.Helper()
	if v := s.vm(id); v.Power != power || v.StoppedBy != by {
		s.Errorf("VM is %s, stopped by %q; want %s by %q", v.Power, v.StoppedBy, power, by)
	}
}

// started is a VM that runs, with the first cards of the host.
func (s *site) started(cards int) agentapi.DesiredVM {
	s.Helper()
	vm := s.want(1, cards)
	s.apply(vm)
	s.must("start", s.driver.Start(s.Context(), host, vm.ID, hostagent.Counts{Run: 1}))
	return vm
}

// definition is the persistent one of a domain.
func (s *site) definition(vm string) (libvirtxml.Domain, string) {
	s.Helper()
	dom, err := s.rpc.DomainLookupByName(vm)
	s.must("look up", err)
	raw, err := s.rpc.DomainGetXMLDesc(dom, rpc.DomainXMLInactive)
	s.must("read the definition", err)
	var def libvirtxml.Domain
	s.must("parse it", def.Unmarshal(raw))
	return def, raw
}

func TestGuestThatListensShutsDownByItself(t *testing.T) {
	s := newSite(t)
	vm := s.started(0)
	booted(t, s.rpc, vm.ID)
	began := time.Now()
	s.must("stop", s.driver.Stop(t.Context(), host, vm.ID, time.Minute))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s: the guest did not hear of it", took)
	}
	s.wantPower(vm.ID, agentapi.PowerStopped, agentapi.StoppedByConsole)
}

func TestRebootFromInsideIsNoStop(t *testing.T) {
	s := newSite(t)
	vm := s.started(1)
	if _, err := booted(t, s.rpc, vm.ID).WriteString("r"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	eventually(ctx, t, "libvirt tells of the reboot", func() bool { return s.driver.rebootsOf(vm.ID) > 0 })
	s.wantPower(vm.ID, agentapi.PowerRunning, "")
	if v := s.vm(vm.ID); v.Reboots != 0 || v.Run != 1 || len(v.Devices) != 1 {
		t.Errorf("VM is %+v, want no reboot of the console's", v)
	}
}

func TestDomainsOfOthersAreSeenAndNotTouched(t *testing.T) {
	s := newSite(t)
	card := s.want(1, 1).Devices[0]
	foreign := libvirtxml.Domain{
		Type: "qemu", Name: "windows-build", Memory: &libvirtxml.DomainMemory{Unit: "MiB", Value: 64},
		OS:      &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Arch: "x86_64", Machine: "q35", Type: "hvm"}},
		Devices: &libvirtxml.DomainDeviceList{Hostdevs: []libvirtxml.DomainHostdev{hostdev(pci.Address(card.PCIAddress))}},
	}
	raw, err := foreign.Marshal()
	s.must("describe", err)
	_, err = s.rpc.DomainDefineXML(raw)
	s.must("define", err)
	_, before := s.definition("windows-build")

	in := s.look()
	if len(in.Host.VMs) != 0 || in.Holders[card.Key] != "windows-build" {
		t.Errorf("VMs %v, holders %v; want none and the domain as holder", in.Host.VMs, in.Holders)
	}
	p := s.wantProblem("bind its card", s.driver.Apply(t.Context(), host, s.want(1, 1)), agentapi.ProblemInUse, "windows-build has the card")
	if p.Holder != "windows-build" {
		t.Errorf("holder is %q", p.Holder)
	}
	s.wantProblem("clean its card", s.driver.Clean(t.Context(), host, card.Key, 1), agentapi.ProblemInUse, "windows-build")
	same := s.want(1, 0)
	same.ID = "windows-build"
	for doing, err := range map[string]error{
		"apply":  s.driver.Apply(t.Context(), host, same),
		"start":  s.driver.Start(t.Context(), host, same.ID, hostagent.Counts{Run: 1}),
		"stop":   s.driver.Stop(t.Context(), host, same.ID, 0),
		"remove": s.driver.Remove(t.Context(), host, same.ID, false),
	} {
		if err == nil || !strings.Contains(err.Error(), "not Berth's") {
			t.Errorf("%s: error %v", doing, err)
		}
	}
	if _, after := s.definition("windows-build"); after != before {
		t.Errorf("its definition was changed:\n%s\n%s", before, after)
	}
}

func TestLibvirtTakesADefinitionWithAllThatCardsNeed(t *testing.T) {
	s := newSite(t)
	cards, nodes := cardsOf(t, sysfstest.FourFunctions(t))
	dom := newDomain(t, Config{Emulate: true, Network: "default"})
	dom.setCards(noted(cards, "0000:3b:00.0", "0000:5e:00.0"), cards, nodes)
	dom.def.OS.Firmware = "" // this machine need not have one
	raw, err := dom.encode()
	s.must("encode", err)
	_, err = s.rpc.DomainDefineXMLFlags(raw, rpc.DomainDefineValidate)
	s.must("define", err)
	def, text := s.definition("i-c0ffee01")
	if n := len(hostdevs(def)); n != 8 || hole(def) != 64 || !strings.Contains(text, "X-PciMmio64Mb") || def.VCPU.CPUSet != "0-31" {
		t.Errorf("libvirt has made of it\n%s", text)
	}
}

func TestLibvirtRefusesToStart(t *testing.T) {
	s := newSite(t)
	vm := s.want(1, 1)
	s.apply(vm)
	s.must("close", s.driver.Close())
	s.whole = true // this machine has no IOMMU
	s.open(Config{})
	s.wantProblem("start", s.driver.Start(t.Context(), host, vm.ID, hostagent.Counts{Run: 4}), agentapi.ProblemStart, "passthrough")
	if v := s.vm(vm.ID); v.Power != agentapi.PowerStopped || v.Run != 0 || v.StoppedBy != "" {
		t.Errorf("VM is %+v, want that the start does not count", v)
	}
}

func TestCardThatIsNoLongerBoundKeepsAVMFromStarting(t *testing.T) {
	s := newSite(t)
	vm := s.want(1, 1)
	s.apply(vm)
	at := vm.Devices[0].PCIAddress
	s.must("unbind", s.kernel.Write(pci.Devices+"/"+at+"/driver/unbind", at))
	if v := s.vm(vm.ID); len(v.Devices) != 0 {
		t.Errorf("VM is said to have %v", v.Devices)
	}
	s.wantProblem("start", s.driver.Start(t.Context(), host, vm.ID, hostagent.Counts{Run: 1}), agentapi.ProblemBind, "not bound")
	s.apply(vm)
	s.must("start", s.driver.Start(t.Context(), host, vm.ID, hostagent.Counts{Run: 1}))
}

func TestCardThatNobodyHasGoesBackToTheHost(t *testing.T) {
	s := newSite(t)
	vm := s.want(1, 0)
	s.apply(vm)
	card := s.want(2, 1).Devices[0]
	found, err := s.driver.found(t.Context())
	s.must("look", err)
	s.must("take, and be killed before the VM has it", s.driver.binder.Take(t.Context(), card.Key, found.Cards[card.Key]))
	s.must("close", s.driver.Close())
	s.open(Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	eventually(ctx, t, "the card is the host's again", func() bool { return s.look().Host.Cards[0].Functions[0].Driver == "nvidia" })
}

func TestCleaningThatFailsIsKept(t *testing.T) {
	s := newSite(t)
	card := s.want(1, 1).Devices[0]
	scrub := filepath.Join(t.TempDir(), "scrub")
	s.must("write", os.WriteFile(scrub, []byte("#!/bin/sh\necho \"cleaning $1\"\necho 'uncorrectable memory' >&2\nexit 3\n"), 0o700)) //nolint:gosec // a script
	s.must("close", s.driver.Close())
	s.open(Config{Scrub: []string{scrub}})
	s.wantProblem("clean", s.driver.Clean(t.Context(), host, card.Key, 4), agentapi.ProblemReset, "exit status 3: uncorrectable memory")
	s.must("close", s.driver.Close())
	s.open(Config{})
	c := s.look().Host.Cards[0]
	if c.FailedOrder != 4 || c.CleanedOrder != 0 || c.Problem == nil || c.Problem.Since.IsZero() || c.Functions[0].Driver != "nvidia" {
		t.Errorf("after a restart the card is %+v", c)
	}
	s.kernel.Break(card.PCIAddress+"/reset", errors.New("inappropriate ioctl for device"))
	s.wantProblem("clean", s.driver.Clean(t.Context(), host, card.Key, 5), agentapi.ProblemReset, "inappropriate ioctl")
	s.kernel.Break(card.PCIAddress+"/reset", nil)
	s.must("clean", s.driver.Clean(t.Context(), host, card.Key, 6))
	if c := s.look().Host.Cards[0]; c.CleanedOrder != 6 || c.FailedOrder != 0 || c.Problem != nil {
		t.Errorf("after it went well the card is %+v", c)
	}
	_, _, release := s.hold(card.Key)
	defer release()
	s.wantProblem("clean a card that is held", s.driver.Clean(t.Context(), host, card.Key, 7), agentapi.ProblemHeld, "4242")
	if c := s.look().Host.Cards[0]; c.FailedOrder != 0 {
		t.Errorf("an order that was not tried is kept: %+v", c)
	}
}

func TestMissingPoolOrImage(t *testing.T) {
	s := newSite(t)
	vm := s.want(1, 0)
	vm.Image = "debian-13"
	s.wantProblem("no image", s.driver.Apply(t.Context(), host, vm), agentapi.ProblemUnsupported, "has no image debian-13")
	s.pool = "elsewhere"
	s.open(Config{})
	s.wantProblem("no pool", s.driver.Apply(t.Context(), host, vm), agentapi.ProblemUnsupported, "no storage pool elsewhere")
	if n := len(s.look().Host.VMs); n != 0 {
		t.Errorf("%d VMs were made", n)
	}
}

func TestDiskOutlivesAMoveAndGoesWithARemoval(t *testing.T) {
	s := newSite(t)
	vm := s.want(1, 0)
	s.apply(vm)
	pool, err := s.rpc.StoragePoolLookupByName(s.pool)
	s.must("find the pool", err)
	there := func() bool {
		_, err := s.rpc.StorageVolLookupByName(pool, diskOf(vm.ID))
		return err == nil
	}
	s.must("move away", s.driver.Remove(t.Context(), host, vm.ID, true))
	if !there() {
		t.Error("the disk is gone")
	}
	s.apply(vm)
	s.must("remove", s.driver.Remove(t.Context(), host, vm.ID, false))
	if there() {
		t.Error("the disk is still there")
	}
}

func TestLibvirtThatIsRestartedForgetsNothing(t *testing.T) {
	s := newSite(t)
	vm := s.started(1)
	off := s.want(2, 0)
	s.apply(off)
	s.must("start", s.driver.Start(t.Context(), host, off.ID, hostagent.Counts{Run: 7}))
	powerOff(t, s.rpc, off.ID)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	eventually(ctx, t, "it is kept who stopped the VM", func() bool {
		_, raw := s.definition(off.ID)
		return strings.Contains(raw, `ended="guest"`)
	})

	shared.stop(t)
	in, err := s.driver.Inspect(ctx, host)
	if err != nil || !in.Partial || len(in.Host.Cards) != 2 {
		t.Errorf("without libvirt: %+v, %v; want the cards, and that VMs are unknown", in, err)
	}
	shared.start(t)
	s.rpc = shared.connect(t)
	eventually(ctx, t, "the driver is connected again", func() bool {
		in, err := s.driver.Inspect(ctx, host)
		return err == nil && !in.Partial
	})
	s.wantPower(vm.ID, agentapi.PowerRunning, "")
	s.wantPower(off.ID, agentapi.PowerStopped, agentapi.StoppedByGuest)
	if v := s.vm(off.ID); v.Run != 7 {
		t.Errorf("VM is %+v, want run 7", v)
	}
	powerOff(t, s.rpc, vm.ID)
	eventually(ctx, t, "events are told again", func() bool { return s.vm(vm.ID).StoppedBy == agentapi.StoppedByGuest })
}

// mute is a libvirt that does not answer.
type mute struct {
	daemon
	until chan struct{}
}

func (m mute) Disconnected() <-chan struct{} { return m.until }

func (m mute) ConnectListAllDomains(int32, rpc.ConnectListAllDomainsFlags) ([]rpc.Domain, uint32, error) {
	<-m.until
	return nil, 0, errors.New("too late")
}

func TestLibvirtThatHangsHangsNobody(t *testing.T) {
	until := make(chan struct{})
	defer close(until)
	l := newLink(func() (daemon, error) { return mute{until: until}, nil })
	list := func(to daemon) (int, error) {
		refs, _, err := to.ConnectListAllDomains(1, 0)
		return len(refs), err
	}
	for range maxRequests {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := ask(ctx, l, list); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		cancel()
	}
	if _, err := ask(t.Context(), l, list); err == nil || !strings.Contains(err.Error(), "unanswered") {
		t.Errorf("with %d requests unanswered: error %v", maxRequests, err)
	}
}
