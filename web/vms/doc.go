// Package vms is the pages about virtual machines: the list, the form that
// makes one, a machine's own page, and the form that changes its type.
package vms
