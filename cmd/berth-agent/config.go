package main

import (
	"errors"
	"fmt"

	"github.com/BurntSushi/toml"

	"berth/services/hostagent/discovery"
	"berth/services/hostagent/libvirt"
)

// config is the agent's configuration file on a real host: what discovery.Config
// tells at the top, and a section [libvirt].
type config struct {
	discovery.Config
	Libvirt libvirt.Config `toml:"libvirt"`
}

// loadConfig reads a file and reports all that is wrong with it; no file: the
// defaults.
func loadConfig(file string) (config, error) {
	var c config
	if file != "" {
		meta, err := toml.DecodeFile(file, &c)
		if err != nil {
			return config{}, fmt.Errorf("read %s: %w", file, err)
		}
		for _, key := range meta.Undecoded() {
			err = errors.Join(err, fmt.Errorf("there is no setting %q", key))
		}
		if err = errors.Join(err, c.Validate()); err != nil {
			return config{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	var err error
	if c.Libvirt, err = c.Libvirt.WithDefaults(); err != nil {
		return config{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}
