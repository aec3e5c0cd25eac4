package nvml

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"berth/services/hostagent/discovery"
	"berth/services/hostagent/pci"
)

// machine is NVIDIA's mock of eight H100, with what it leaves out filled in as
// the driver does.
func machine(t *testing.T, addresses ...string) *server.Server {
	t.Helper()
	s := dgxh100.New()
	s.Devices = s.Devices[:len(addresses)]
	for i, address := range addresses {
		d := s.Devices[i].(*server.Device)
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
			var p nvml.PciInfo
			for j := range address {
				p.BusId[j] = int8(address[j])
			}
			return p, nvml.SUCCESS
		}
		d.GetSerialFunc = func() (string, nvml.Return) { return "16544201988" + string(rune('0'+i)), nvml.SUCCESS }
		d.GetVbiosVersionFunc = func() (string, nvml.Return) { return "96.00.74.00.11", nvml.SUCCESS }
		d.GetGspFirmwareVersionFunc = func() (string, nvml.Return) { return "", nvml.ERROR_NOT_SUPPORTED }
	}
	return s
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestCards(t *testing.T) {
	s := machine(t, "00000000:1B:00.0", "00010000:E1:00.0")
	closed := 0
	s.ShutdownFunc = func() nvml.Return { closed++; return nvml.SUCCESS }
	got, err := with(s, quiet()).Cards(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uuid := func(i int) string { return s.Devices[i].(*server.Device).UUID }
	want := map[pci.Address]discovery.Seen{
		"0000:1b:00.0":  {Serial: "165442019880", UUID: uuid(0), VBIOS: "96.00.74.00.11"},
		"10000:e1:00.0": {Serial: "165442019881", UUID: uuid(1), VBIOS: "96.00.74.00.11"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if closed != 1 {
		t.Errorf("the library was closed %d times; while it is open the agent holds the cards", closed)
	}
}

func TestCardThatIsLostHidesNoOther(t *testing.T) {
	for name, spoil := range map[string]func(*server.Device){
		"no address": func(d *server.Device) { d.GetPciInfoFunc = lost },
		"a broken address": func(d *server.Device) {
			d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.SUCCESS }
		},
		"neither is opened": nil,
	} {
		s := machine(t, "00000000:1B:00.0", "00000000:43:00.0")
		if spoil != nil {
			spoil(s.Devices[0].(*server.Device))
		} else {
			open := s.DeviceGetHandleByIndexFunc
			s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
				if i == 0 {
					return nil, nvml.ERROR_GPU_IS_LOST
				}
				return open(i)
			}
		}
		got, err := with(s, quiet()).Cards(t.Context())
		if err != nil || len(got) != 1 || got["0000:43:00.0"].Serial == "" {
			t.Errorf("%s: %v, %v; want the other card", name, got, err)
		}
	}
}

func lost() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.ERROR_GPU_IS_LOST }

func TestMachineWithoutTheLibraryIsOneLineOfLog(t *testing.T) {
	var out bytes.Buffer
	l := New(slog.New(slog.NewTextHandler(&out, nil)))
	if ret := l.lib.Init(); ret == nvml.SUCCESS {
		t.Skip("this machine has NVIDIA's library")
	}
	for range 3 {
		if got, err := l.Cards(t.Context()); !errors.Is(err, discovery.ErrNoLibrary) || got != nil {
			t.Fatalf("%v, %v; want nothing, for there is no library", got, err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%d lines of log, want 1:\n%s", n, out.String())
	}
}

func TestLibraryThatFails(t *testing.T) {
	broken := machine(t)
	broken.InitFunc = func() nvml.Return { return nvml.ERROR_UNKNOWN }
	if _, err := with(broken, quiet()).Cards(t.Context()); err == nil {
		t.Error("a library that does not open is no error")
	}
	uncountable := machine(t)
	uncountable.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	if _, err := with(uncountable, quiet()).Cards(t.Context()); err == nil {
		t.Error("cards that can't be counted are no error")
	}
	sticky := machine(t, "00000000:1B:00.0")
	sticky.ShutdownFunc = func() nvml.Return { return nvml.ERROR_UNKNOWN }
	if _, err := with(sticky, quiet()).Cards(t.Context()); err == nil {
		t.Error("a library that does not close is no error, though it holds the cards")
	}
}

func TestLibraryThatHangsIsAskedOnce(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := machine(t, "00000000:1B:00.0")
	asked, answer := 0, make(chan struct{})
	s.InitFunc = func() nvml.Return { asked++; <-answer; return nvml.SUCCESS }
	l := with(s, quiet())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Cards(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context ended", err)
	}
	if _, err := l.Cards(t.Context()); !errors.Is(err, errBusy) {
		t.Errorf("error %v, want that the library is busy", err)
	}
	close(answer)
	l.busy <- struct{}{} // once the first question has ended
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
	<-l.busy
	if cards, err := l.Cards(t.Context()); err != nil || len(cards) != 1 {
		t.Errorf("after it answered: %v, %v", cards, err)
	}
}
