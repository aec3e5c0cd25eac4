// Package pci reads the PCI bus of a host from sysfs: every device, and the
// cards among them with all functions of their slots. It changes nothing.
//
// The root of the file system is given, so that tests read trees of machines
// that are not there. A device that can't be read is listed as such and never
// hides the others.
package pci
