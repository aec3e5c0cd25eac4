package pci

import (
	"fmt"
	"regexp"
	"strings"
)

// Address is where a function stands: domain:bus:device.function in lower-case
// hex digits, e.g. "0000:3b:00.0". Domains are of four to eight digits: those
// behind Intel's VMD begin at 10000.
type Address string

var addressForm = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)

// ParseAddress reads an address as sysfs and as NVML write it: NVML pads the
// domain to eight digits, and some of its versions use capitals.
func ParseAddress(s string) (Address, error) {
	a := strings.ToLower(s)
	if domain, rest, ok := strings.Cut(a, ":"); ok {
		for len(domain) > 4 && domain[0] == '0' {
			domain = domain[1:]
		}
		a = domain + ":" + rest
	}
	if !addressForm.MatchString(a) {
		return "", fmt.Errorf("%q is no PCI address such as 0000:3b:00.0", s)
	}
	return Address(a), nil
}

// Slot is the address without its function: what one card fills.
func (a Address) Slot() string {
	slot, _, _ := strings.Cut(string(a), ".")
	return slot
}
