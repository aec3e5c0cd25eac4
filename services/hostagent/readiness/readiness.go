// Package readiness tells whether a host can hand its cards to VMs: a checklist
// with, for each finding, what an operator does about it.
package readiness

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"berth/services/agentapi"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/pci"
)

// Host is what the checks look at.
type Host struct {
	Root       machine.Root
	Facts      machine.Facts
	Bus        pci.Scan   // Devices and Unreadable
	Cards      []pci.Card // those that Berth manages
	Generation string     // of the processor, as configured; empty: none
	Library    Library
}

// Library is what came of asking NVIDIA's management library.
type Library struct {
	Asked bool
	Err   error // nil: it answered
}

// Look runs all checks and changes nothing. Each gives one line, in the order
// in which an operator would go about them.
func Look(h Host) []agentapi.Finding {
	critical := machine.Critical(h.Root)
	found := []agentapi.Finding{
		iommu(h), vfio(h), nouveau(h), groups(h, critical), criticalDevices(h, critical),
		inUse(h), resets(h), generation(h), unreadable(h),
	}
	if h.Library.Asked {
		found = append(found, library(h.Library.Err))
	}
	return found
}

// Libvirt tells whether the daemon that runs the VMs answers at its socket.
func Libvirt(ctx context.Context, socket string) agentapi.Finding {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err == nil {
		_ = c.Close()
	}
	return LibvirtAnswers(err)
}

// LibvirtAnswers tells the same where it was asked already; nil: it answered.
func LibvirtAnswers(err error) agentapi.Finding {
	if err == nil {
		return ok(agentapi.FindingLibvirt, "libvirt answers.")
	}
	return failed(agentapi.FindingLibvirt, fmt.Sprintf("libvirt does not answer: %v.", err),
		"Install libvirt-daemon-system and qemu-system-x86, and run systemctl enable --now libvirtd.")
}

// Ready tells whether no finding keeps the host from handing out cards.
func Ready(findings []agentapi.Finding) bool {
	for _, f := range findings {
		if !f.OK && !f.Warning {
			return false
		}
	}
	return true
}

func ok(code, detail string) agentapi.Finding {
	return agentapi.Finding{Code: code, OK: true, Detail: detail}
}

func failed(code, detail, fix string) agentapi.Finding {
	return agentapi.Finding{Code: code, Detail: detail, Fix: fix}
}

func warned(code, detail, fix string) agentapi.Finding {
	return agentapi.Finding{Code: code, Detail: detail, Fix: fix, Warning: true}
}

func iommu(h Host) agentapi.Finding {
	if h.Facts.IOMMU {
		if len(h.Cards) == 0 {
			return ok(agentapi.FindingIOMMUOff, "The IOMMU is on.")
		}
		grouped := 0
		for _, c := range h.Cards {
			if c.GPU.IOMMUGroup != nil {
				grouped++
			}
		}
		return ok(agentapi.FindingIOMMUOff, fmt.Sprintf("The IOMMU is on; %d of %d cards have a group.", grouped, len(h.Cards)))
	}
	return failed(agentapi.FindingIOMMUOff, "The IOMMU is off: the kernel has no IOMMU groups.", iommuFix(h.Facts))
}

func iommuFix(f machine.Facts) string {
	options := strings.Fields(f.CommandLine)
	for _, off := range options {
		switch off {
		case "iommu=off", "intel_iommu=off", "amd_iommu=off":
			return fmt.Sprintf("Take %s from GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub and reboot.", off)
		}
	}
	if f.CPUVendor == "AuthenticAMD" {
		return "Switch on IOMMU (AMD-Vi) in the firmware's settings and reboot; the kernel turns it on by itself then."
	}
	if slices.Contains(options, "intel_iommu=on") {
		return "The kernel is told to use it, so it is off in the firmware: switch on VT-d there and reboot."
	}
	return "Add intel_iommu=on iommu=pt to GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, and reboot; VT-d must be on in the firmware."
}

func vfio(h Host) agentapi.Finding {
	var missing []string
	if !h.Root.HasDriver("vfio-pci") {
		missing = append(missing, "vfio-pci")
	}
	if !h.Root.HasModule("vfio_iommu_type1") && !h.Root.HasModule("iommufd") {
		missing = append(missing, "vfio_iommu_type1")
	}
	if len(missing) == 0 {
		return ok(agentapi.FindingVFIOMissing, "vfio-pci is loaded.")
	}
	names := strings.Join(missing, " and ")
	return failed(agentapi.FindingVFIOMissing, "The kernel has not loaded "+names+".",
		"Run modprobe -a "+strings.Join(missing, " ")+", and list the modules in /etc/modules-load.d/vfio.conf so that they are there after a reboot.")
}

func nouveau(h Host) agentapi.Finding {
	var bound []string
	for _, c := range h.Cards {
		for _, f := range c.Functions {
			if f.Driver == "nouveau" {
				bound = append(bound, string(f.Address))
			}
		}
	}
	if len(bound) == 0 {
		return ok(agentapi.FindingNouveauBound, "nouveau has none of the cards.")
	}
	return failed(agentapi.FindingNouveauBound, "nouveau has "+strings.Join(bound, ", ")+".",
		"Write \"blacklist nouveau\" and \"options nouveau modeset=0\" to /etc/modprobe.d/nouveau.conf, run update-initramfs -u and reboot.")
}

func groups(h Host, critical map[string]string) agentapi.Finding {
	var broken []string
	for _, c := range h.Cards {
		if c.GPU.IOMMUGroup == nil {
			if h.Facts.IOMMU {
				broken = append(broken, fmt.Sprintf("%s has no group", c.GPU.Address))
			}
			continue
		}
		for _, n := range c.Neighbours {
			if !pci.Yields(n.Driver) && critical[string(n.Address)] == "" {
				broken = append(broken, fmt.Sprintf("%s shares group %d with %s (driver %s)", c.GPU.Address, *c.GPU.IOMMUGroup, n.Address, n.Driver))
			}
		}
	}
	if len(broken) == 0 {
		return ok(agentapi.FindingGroup, "Each card can leave the host without another device.")
	}
	return failed(agentapi.FindingGroup, strings.Join(broken, "; ")+".",
		"Put the card into a slot whose root port has ACS, or switch ACS on in the firmware; or unbind what shares its group; or leave the card out with \"exclude\" in the agent's configuration.")
}

func criticalDevices(h Host, critical map[string]string) agentapi.Finding {
	var shared []string
	for _, c := range h.Cards {
		for _, n := range c.Neighbours {
			if why := critical[string(n.Address)]; why != "" {
				shared = append(shared, fmt.Sprintf("%s shares a group with %s, %s", c.GPU.Address, n.Address, why))
			}
		}
	}
	if len(shared) == 0 {
		return ok(agentapi.FindingGroupCritical, "No card shares a group with a device that the host needs.")
	}
	return failed(agentapi.FindingGroupCritical, strings.Join(shared, "; ")+".",
		"Put the card into another slot: taking its group would cut the host off. Until then leave it out with \"exclude\" in the agent's configuration.")
}

func inUse(h Host) agentapi.Finding {
	var held []string
	for _, c := range h.Cards {
		for _, f := range c.Functions {
			if pci.Yields(f.Driver) { // whoever has it, a VM or not, is not in a VM's way on the host's driver
				continue
			}
			for _, p := range machine.Holders(h.Root, machine.Nodes(h.Root, string(f.Address))...) {
				held = append(held, fmt.Sprintf("%s (pid %d) uses %s", p.Name, p.PID, f.Address))
			}
		}
	}
	if len(held) == 0 {
		return ok(agentapi.FindingDriverInUse, "No process of the host uses a card.")
	}
	return warned(agentapi.FindingDriverInUse, strings.Join(held, "; ")+".",
		"End the process before a VM is to have the card; for nvidia-persistenced: systemctl disable --now nvidia-persistenced.")
}

func resets(h Host) agentapi.Finding {
	var without []string
	for _, c := range h.Cards {
		if len(c.GPU.ResetMethods) == 0 {
			without = append(without, string(c.GPU.Address))
		}
	}
	if len(without) == 0 {
		return ok(agentapi.FindingNoReset, "Each card can be reset.")
	}
	return warned(agentapi.FindingNoReset, "No reset method for "+strings.Join(without, ", ")+".",
		"The card can't be cleaned between accounts and is quarantined after its first use; a newer kernel, or another slot, may know a way.")
}

func generation(h Host) agentapi.Finding {
	if h.Generation != "" {
		return ok(agentapi.FindingGeneration, fmt.Sprintf("%s counts as %s.", h.Facts.CPUModel, h.Generation))
	}
	return warned(agentapi.FindingGeneration, fmt.Sprintf("No CPU generation is configured for %q.", h.Facts.CPUModel),
		"Add a [[generation]] with a matching cpu pattern to the agent's configuration; until then the host takes only VMs that ask for none.")
}

func library(err error) agentapi.Finding {
	if err == nil {
		return ok(agentapi.FindingNVMLMissing, "NVIDIA's library tells which card is which.")
	}
	return warned(agentapi.FindingNVMLMissing, sentence(err),
		"Install NVIDIA's driver with libnvidia-ml.so.1. Until then cards have no serial and are told apart by their slot: one that moves counts as another.")
}

// sentence makes one of an error.
func sentence(err error) string {
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func unreadable(h Host) agentapi.Finding {
	if len(h.Bus.Unreadable) == 0 {
		return ok(agentapi.FindingUnreadable, fmt.Sprintf("All %d devices of the PCI bus can be read.", len(h.Bus.Devices)))
	}
	names := make([]string, len(h.Bus.Unreadable))
	for i, u := range h.Bus.Unreadable {
		names[i] = fmt.Sprintf("%.40q", u.Name)
	}
	return warned(agentapi.FindingUnreadable, "sysfs does not describe "+strings.Join(names, ", ")+".",
		"What is there is left alone. Look at dmesg for the device; one that has fallen off the bus needs a power cycle of the host.")
}
