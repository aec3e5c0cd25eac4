package main

import (
	"strings"
	"testing"
)

func TestALabsSizeHasBounds(t *testing.T) {
	for name, c := range map[string]labCommand{
		"fewer than no hosts": {Hosts: -1, Cards: 8}, "too many hosts": {Hosts: maxLabHosts + 1, Cards: 8},
		"fewer than no cards": {Hosts: 1, Cards: -1}, "too many cards": {Hosts: 1, Cards: maxLabCards + 1},
	} {
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--hosts must be 0 to") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
