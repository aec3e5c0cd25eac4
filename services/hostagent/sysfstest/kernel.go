package sysfstest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// Kernel does to a tree what Linux does to sysfs when its attributes are
// written: it binds and unbinds drivers and resets devices.
type Kernel struct {
	tree *Tree

	mu     sync.Mutex
	native map[string]string        // driver of each device without an override
	held   map[string]chan struct{} // an unbind of these waits
	broken map[string]error         // writes that fail, by the end of their name
	Writes []string                 // all, as "name=value"
}

// Kernel gives the tree one. The drivers that devices have now are those that
// they get by themselves.
func (tree *Tree) Kernel() *Kernel {
	k := &Kernel{tree: tree, native: map[string]string{}, held: map[string]chan struct{}{}, broken: map[string]error{}}
	entries, err := os.ReadDir(filepath.Join(tree.Root, "sys/bus/pci/devices"))
	if err != nil {
		tree.t.Fatal(err)
	}
	for _, e := range entries {
		k.native[e.Name()] = k.driver(e.Name())
	}
	return k
}

// Hold lets an unbind of a device wait, as for a process that has it open, until
// the function that is returned is called.
func (k *Kernel) Hold(address string) (release func()) {
	held := make(chan struct{})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[address] = held
	return sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.held, address)
		close(held)
	})
}

// Break makes writes fail whose name ends so; err nil: no more.
func (k *Kernel) Break(suffix string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		delete(k.broken, suffix)
	} else {
		k.broken[suffix] = err
	}
}

// Write writes an attribute, named from the root of the tree.
func (k *Kernel) Write(name, value string) error {
	wait, err := k.write(name, strings.TrimSpace(value))
	if wait != nil {
		<-wait
	}
	return err
}

func (k *Kernel) write(name, value string) (wait <-chan struct{}, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Writes = append(k.Writes, name+"="+value)
	for suffix, err := range k.broken {
		if strings.HasSuffix(name, suffix) {
			return nil, err
		}
	}
	switch path.Base(name) {
	case "driver_override":
		if value == "" {
			value = "(null)"
		}
		return nil, os.WriteFile(filepath.Join(k.tree.Root, name), []byte(value+"\n"), 0o600)
	case "unbind":
		return k.unbind(value)
	case "drivers_probe":
		return nil, k.probe(value)
	case "bind":
		return nil, k.bind(value, path.Base(path.Dir(name)))
	case "reset":
		return nil, nil
	}
	return nil, fmt.Errorf("%s: no such attribute", name)
}

func home(address string) string { return "sys/bus/pci/devices/" + address }

func (k *Kernel) driver(address string) string {
	to, err := os.Readlink(filepath.Join(k.tree.Root, home(address), "driver"))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// unbind takes the link away first and then waits, as Linux does.
func (k *Kernel) unbind(address string) (wait <-chan struct{}, err error) {
	if err := os.Remove(filepath.Join(k.tree.Root, home(address), "driver")); err != nil {
		return nil, fmt.Errorf("no such device: %w", err)
	}
	return k.held[address], nil
}

func (k *Kernel) probe(address string) error {
	if k.driver(address) != "" {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(k.tree.Root, home(address), "driver_override"))
	if err != nil {
		return err
	}
	if want := strings.TrimSpace(string(raw)); want != "(null)" {
		return k.bind(address, want)
	}
	return k.bind(address, k.native[address])
}

func (k *Kernel) bind(address, driver string) error {
	drivers := filepath.Join(k.tree.Root, "sys/bus/pci/drivers")
	if _, err := os.Stat(filepath.Join(drivers, driver)); err != nil || driver == "" {
		return nil //nolint:nilerr // a driver that is not loaded takes nothing, which is no error
	}
	place, err := filepath.EvalSymlinks(filepath.Join(k.tree.Root, home(address)))
	if err != nil {
		return err
	}
	to, err := filepath.Rel(place, filepath.Join(drivers, driver))
	if err != nil {
		return err
	}
	return os.Symlink(to, filepath.Join(place, "driver"))
}
