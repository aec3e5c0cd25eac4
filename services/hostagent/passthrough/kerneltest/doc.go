// Package kerneltest tests passthrough against a real kernel's VFIO, in an
// emulated machine that machine.sh starts. It has no code of its own.
package kerneltest
