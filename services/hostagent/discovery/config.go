package discovery

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"berth/services/hostagent/pci"
)

// Config is what the operator decides about a host. In a file it is
//
//	exclude = ["0000:01:00.0"]   # cards that stay with the host
//	reserve_vcores = 4           # for the host itself
//	reserve_memory_mib = 8192
//
//	[[generation]]
//	name = "v7"
//	cpu = "AMD EPYC 9*"          # a pattern for the model name in /proc/cpuinfo
type Config struct {
	Exclude          []string     `toml:"exclude"`
	ReserveVCores    int          `toml:"reserve_vcores"`
	ReserveMemoryMiB int64        `toml:"reserve_memory_mib"`
	Generations      []Generation `toml:"generation"` // the first that matches counts
}

// Generation names the CPU generation of processors, in the words of the
// console's catalogue.
type Generation struct {
	Name string `toml:"name"`
	CPU  string `toml:"cpu"` // as for path.Match
}

// Validate reports all that is wrong, and writes the addresses as sysfs does.
func (c Config) Validate() error {
	var errs []error
	for i, a := range c.Exclude {
		address, err := pci.ParseAddress(a)
		if err != nil {
			errs = append(errs, fmt.Errorf("exclude: %w", err))
			continue
		}
		c.Exclude[i] = string(address)
	}
	if c.ReserveVCores < 0 || c.ReserveMemoryMiB < 0 {
		errs = append(errs, errors.New("reserve_vcores and reserve_memory_mib are 0 or more"))
	}
	for _, g := range c.Generations {
		if _, err := path.Match(g.CPU, ""); err != nil || g.Name == "" || g.CPU == "" {
			errs = append(errs, fmt.Errorf("generation %q for %q: a name and a pattern such as \"AMD EPYC 9*\" are needed", g.Name, g.CPU))
		}
	}
	return errors.Join(errs...)
}

func (c Config) excludes(card pci.Card) bool {
	return slices.ContainsFunc(card.Functions, func(f pci.Device) bool { return slices.Contains(c.Exclude, string(f.Address)) })
}

// generation is empty for a processor that no pattern matches.
func (c Config) generation(cpu string) string {
	for _, g := range c.Generations {
		if fits, err := path.Match(g.CPU, cpu); err == nil && fits {
			return g.Name
		}
	}
	return ""
}
