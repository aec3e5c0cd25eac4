// Package nvml asks NVIDIA's management library about the cards that are on
// NVIDIA's driver. It needs cgo; the library itself is loaded when it is asked,
// and a machine without it is no error.
package nvml

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"berth/services/hostagent/discovery"
	"berth/services/hostagent/pci"
)

// Library is NVIDIA's on this machine. It is opened for each question and
// closed after it: while it is open this process holds the cards, and none
// could be handed to a VM.
type Library struct {
	lib  nvml.Interface
	log  *slog.Logger
	busy chan struct{} // holds the one question that may be under way

	missing sync.Once
}

var errBusy = errors.New("an earlier question to NVIDIA's library has not been answered")

// New finds the library when it is first asked.
func New(log *slog.Logger) *Library { return with(nvml.New(), log) }

func with(lib nvml.Interface, log *slog.Logger) *Library {
	return &Library{lib: lib, log: log, busy: make(chan struct{}, 1)}
}

// Cards tells which card is which, by address. Without a library the error is
// discovery.ErrNoLibrary; that is logged once. A library that hangs, as
// one does over a card that has fallen off the bus, is an error once ctx ends,
// and each further question until it answers.
func (l *Library) Cards(ctx context.Context) (map[pci.Address]discovery.Seen, error) {
	type answer struct {
		cards map[pci.Address]discovery.Seen
		err   error
	}
	select {
	case l.busy <- struct{}{}:
	default:
		return nil, errBusy
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-l.busy }()
		cards, err := l.ask()
		done <- answer{cards, err}
	}()
	select {
	case a := <-done:
		return a.cards, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("ask NVIDIA's library: %w", ctx.Err())
	}
}

// ask calls nothing but Init before that has gone well: any other call without
// the library ends the process.
func (l *Library) ask() (cards map[pci.Address]discovery.Seen, err error) {
	switch ret := l.lib.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_DRIVER_NOT_LOADED:
		l.missing.Do(func() {
			l.log.Info("NVIDIA's library or driver is not there: serials are unknown, cards are told apart by their place", "cause", text(ret))
		})
		return nil, fmt.Errorf("%w: %s", discovery.ErrNoLibrary, text(ret))
	default:
		return nil, fmt.Errorf("open NVIDIA's library: %s", text(ret))
	}
	defer func() {
		if ret := l.lib.Shutdown(); ret != nvml.SUCCESS {
			err = errors.Join(err, fmt.Errorf("close NVIDIA's library: %s", text(ret)))
		}
	}()
	n, ret := l.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("count the cards: %s", text(ret))
	}
	cards = make(map[pci.Address]discovery.Seen, n)
	for i := range n {
		if err := l.card(i, cards); err != nil { // one that is lost hides no other
			l.log.Warn("a card does not answer NVIDIA's library", "index", i, "error", err)
		}
	}
	return cards, nil
}

func (l *Library) card(index int, cards map[pci.Address]discovery.Seen) error {
	d, ret := l.lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return fmt.Errorf("open: %s", text(ret))
	}
	bus, ret := d.GetPciInfo()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("PCI address: %s", text(ret))
	}
	address, err := pci.ParseAddress(chars(bus.BusId[:]))
	if err != nil {
		return err
	}
	cards[address] = discovery.Seen{
		Serial: known(d.GetSerial), UUID: known(d.GetUUID), VBIOS: known(d.GetVbiosVersion), Firmware: known(d.GetGspFirmwareVersion),
	}
	return nil
}

// known is empty where a card has no such thing, or does not tell.
func known(get func() (string, nvml.Return)) string {
	s, ret := get()
	if ret != nvml.SUCCESS {
		return ""
	}
	return s
}

// chars reads a C string.
func chars(c []int8) string {
	b := make([]byte, 0, len(c))
	for _, ch := range c {
		if ch == 0 {
			break
		}
		b = append(b, byte(ch))
	}
	return string(b)
}

// text names a code; nvml's own names come from the library, which may not be
// there.
func text(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "libnvidia-ml.so.1 was not found"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the driver is not loaded"
	}
	return fmt.Sprintf("NVML error %d", int32(ret))
}
