package libvirt

import (
	"errors"

	"libvirt.org/go/libvirtxml"
)

// Config says how VMs are made on a host. In the agent's configuration it is
//
//	[libvirt]
//	socket = "/run/libvirt/libvirt-sock"
//	pool = "berth"          # storage pool with the images, and for the disks
//	disk_gib = 40           # size of a disk at least; 0: as its image
//	network = "default"     # libvirt network that VMs are on, or
//	bridge = "br0"          # bridge of the host
//	firmware = "efi"        # or "bios"
//	emulate = false         # without KVM: for trials, slow
//	scrub = ["/usr/local/sbin/scrub-gpu"]   # see Options.Scrub
type Config struct {
	Socket   string `toml:"socket"`
	URI      string `toml:"uri"`
	Pool     string `toml:"pool"`
	DiskGiB  int    `toml:"disk_gib"`
	Network  string `toml:"network"`
	Bridge   string `toml:"bridge"`
	Firmware string `toml:"firmware"`
	Emulate  bool   `toml:"emulate"`
	// Scrub is a command, run with a card's PCI address as its last argument
	// after the card was reset and given back to the host's driver. A failure
	// takes the card out of offer. Empty: the reset is all.
	Scrub []string `toml:"scrub"`
}

const (
	firmwareEFI  = "efi"
	firmwareBIOS = "bios"
)

// WithDefaults checks c and fills in what is left out.
func (c Config) WithDefaults() (Config, error) {
	for _, d := range []struct {
		at    *string
		value string
	}{{&c.Socket, "/run/libvirt/libvirt-sock"}, {&c.URI, "qemu:///system"}, {&c.Pool, "berth"}, {&c.Firmware, firmwareEFI}} {
		if *d.at == "" {
			*d.at = d.value
		}
	}
	var err error
	if c.Firmware != firmwareEFI && c.Firmware != firmwareBIOS {
		err = errors.New(`libvirt.firmware is "efi" or "bios"`)
	}
	if c.Network != "" && c.Bridge != "" {
		err = errors.Join(err, errors.New("libvirt.network and libvirt.bridge exclude each other"))
	}
	if c.DiskGiB < 0 {
		err = errors.Join(err, errors.New("libvirt.disk_gib is 0 or more"))
	}
	return c, err
}

// interfaceSource is nil for VMs without a network.
func (c Config) interfaceSource() *libvirtxml.DomainInterfaceSource {
	switch {
	case c.Bridge != "":
		return &libvirtxml.DomainInterfaceSource{Bridge: &libvirtxml.DomainInterfaceSourceBridge{Bridge: c.Bridge}}
	case c.Network != "":
		return &libvirtxml.DomainInterfaceSource{Network: &libvirtxml.DomainInterfaceSourceNetwork{Network: c.Network}}
	}
	return nil
}
