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

// write writes for one function and returns when the kernel is done, or soon
// after ctx ends. A write that has not ended then goes on; until it does the
// kernel holds the device's lock, and further writes would only pile up behind
// it.
func (b *Binder) write(ctx context.Context, at pci.Address, name, value string) error {
	if err := b.settled(ctx, at); err != nil {
		return err
	}
	done, ended := make(chan error, 1), make(chan struct{})
	b.mu.Lock()
	b.busy[at] = ended
	b.mu.Unlock()
	go func() {
		err := b.kernel.Write(name, value)
		b.mu.Lock()
		delete(b.busy, at)
		b.mu.Unlock()
		close(ended)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("write %q to /%s: %w", value, name, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("write %q to /%s: %w", value, name, ctx.Err())
	}
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

// override is what driver_override says; "" for nothing.
func (b *Binder) override(at pci.Address) string {
	raw, err := os.ReadFile(filepath.Join(string(b.root), attribute(at, "driver_override")))
	if s := strings.TrimSpace(string(raw)); err == nil && s != "(null)" {
		return s
	}
	return ""
}

// move gives a function another driver by way of none, and reads it back.
func (b *Binder) move(ctx context.Context, at pci.Address, override, driver string) error {
	if driver != "" && !b.root.HasDriver(driver) {
		return fmt.Errorf("driver %s is not loaded", driver)
	}
	if b.override(at) != override {
		if err := b.write(ctx, at, attribute(at, "driver_override"), override+"\n"); err != nil {
			return err
		}
	}
	if err := b.settled(ctx, at); err != nil { // without a driver is not yet free
		return err
	}
	if now := b.driver(at); now != "" && now != driver {
		if err := b.write(ctx, at, attribute(at, "driver/unbind"), string(at)); err != nil {
			return err
		}
	}
	if b.driver(at) == driver {
		return nil
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
