// Package libvirt is the driver for real hosts: VMs by libvirt on QEMU, with
// cards that passthrough takes from the host.
//
// What is known of a VM beyond its definition (its starts, what the console told
// it, which cards it is to have) stands in the metadata of the domain itself, so
// that there is one place to read. Domains without that metadata are somebody
// else's: it is seen which cards they have, and they are never touched.
package libvirt
