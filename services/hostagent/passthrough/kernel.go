package passthrough

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"berth/services/hostagent/machine"
	"berth/services/hostagent/pci"
)

// Kernel writes attributes of sysfs, named from the root of the file system. A
// write may take as long as it likes: an unbind lasts until every process has
// let go of the device.
type Kernel interface {
	Write(name, value string) error
}

// Linux is the kernel whose file system lies at a root.
type Linux struct{ Root machine.Root }

// Write writes an attribute that is there.
func (l Linux) Write(name, value string) error {
	f, err := os.OpenFile(filepath.Join(string(l.Root), name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// errStuck: the kernel is still busy with an earlier write for the device.
var errStuck = errors.New("the kernel is still at work on the device")

// ask lets the kernel do something with one function and returns when it is
// done, or soon after ctx ends. What has not ended then goes on; until it does
// the kernel holds the device's lock, and further requests would only pile up
// behind it.
func (b *Binder) ask(ctx context.Context, at pci.Address, request func() error) error {
	if err := b.settled(ctx, at); err != nil {
		return err
	}
	done, ended := make(chan error, 1), make(chan struct{})
	b.mu.Lock()
	b.busy[at] = ended
	b.mu.Unlock()
	go func() {
		err := request()
		b.mu.Lock()
		delete(b.busy, at)
		b.mu.Unlock()
		close(ended)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Binder) write(ctx context.Context, at pci.Address, name, value string) error {
	if err := b.ask(ctx, at, func() error { return b.kernel.Write(name, value) }); err != nil {
		return fmt.Errorf("write %q to /%s: %w", value, name, err)
	}
	return nil
}

// settled waits for an earlier write.
func (b *Binder) settled(ctx context.Context, at pci.Address) error {
	b.mu.Lock()
	ended := b.busy[at]
	b.mu.Unlock()
	if ended == nil {
		return ctx.Err()
	}
	select {
	case <-ended:
		return ctx.Err()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errStuck, ctx.Err())
	}
}

func (b *Binder) stuck(at pci.Address) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.busy[at] != nil
}

func attribute(at pci.Address, name string) string {
	return pci.Devices + "/" + string(at) + "/" + name
}

// driver tells which driver a function has now; "" for none.
func (b *Binder) driver(at pci.Address) string {
	to, err := os.Readlink(filepath.Join(string(b.root), attribute(at, "driver")))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// override is what driver_override says; "" for nothing. The kernel tells it
// under the device's lock.
func (b *Binder) override(ctx context.Context, at pci.Address) (string, error) {
	said := make(chan string, 1)
	err := b.ask(ctx, at, func() error {
		raw, err := os.ReadFile(filepath.Join(string(b.root), attribute(at, "driver_override")))
		said <- strings.TrimSpace(string(raw))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read driver_override of %s: %w", at, err)
	}
	if s := <-said; s != "(null)" {
		return s, nil
	}
	return "", nil
}

// move gives a function another driver by way of none, and reads it back.
func (b *Binder) move(ctx context.Context, at pci.Address, override, driver string) error {
	if driver != "" && !b.root.HasDriver(driver) {
		return fmt.Errorf("driver %s is not loaded", driver)
	}
	now, err := b.override(ctx, at)
	if err == nil && now != override {
		err = b.write(ctx, at, attribute(at, "driver_override"), override+"\n")
	}
	if now := b.driver(at); err == nil && now != "" && now != driver {
		err = b.write(ctx, at, attribute(at, "driver/unbind"), string(at))
	}
	if err != nil || b.driver(at) == driver {
		return err
	}
	if err := b.write(ctx, at, "sys/bus/pci/drivers_probe", string(at)); err != nil {
		return err
	}
	if now := b.driver(at); now != driver {
		return fmt.Errorf("%s has driver %q, not %q: %w", at, now, driver, errNotTaken)
	}
	return nil
}

// errNotTaken: the kernel did as told, and the driver did not take the device.
var errNotTaken = errors.New("the driver did not take the device; dmesg tells why")
