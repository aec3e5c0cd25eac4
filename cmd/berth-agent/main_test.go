package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "sim.json")
	if err := os.WriteFile(conf, []byte(`{"hosts": [{"name": "gpu-par-014", "models": ["l40"]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	serve := func(more ...string) []string {
		return append([]string{"run", "--console", "https://127.0.0.1:1", "--state-dir", state, "--driver", "sim"}, more...)
	}
	for name, c := range map[string]struct {
		args   []string
		out    string // in the output
		errors string // in the error; empty: none
	}{
		"version":           {args: []string{"version"}, out: version()},
		"help":              {args: []string{"run", "--help"}, out: "--state-dir"},
		"no command":        {errors: "expected one of"},
		"unknown driver":    {args: []string{"run", "--console", "https://x", "--state-dir", state, "--driver", "xen"}, errors: "--driver must be"},
		"no such setting":   {args: append(serve(), "--driver", "libvirt", "--config", conf), errors: "sim.json"},
		"no simulated host": {args: serve(), errors: "--sim-config"},
		"no token":          {args: serve("--sim-config", conf), errors: "no token"},
		"malformed token":   {args: serve("--sim-config", conf, "--token", "abc"), errors: "not of the form"},
		"plain http":        {args: serve("--sim-config", conf, "--console", "http://127.0.0.1:1"), errors: "no https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("BERTH_TOKEN", "")
			var out bytes.Buffer
			err := run(t.Context(), c.args, &out, &out)
			switch {
			case c.errors == "" && err != nil, c.errors != "" && (err == nil || !strings.Contains(err.Error(), c.errors)):
				t.Errorf("error %v, want one with %q", err, c.errors)
			}
			if !strings.Contains(out.String(), c.out) {
				t.Errorf("output %q lacks %q", out.String(), c.out)
			}
		})
	}
}

func TestAgentThatIsToldToStopEndsWithoutAnError(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "sim.json")
	if err := os.WriteFile(conf, []byte(`{"hosts": [{"name": "gpu-par-014"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	token := "berth-enrol-v1.0123456789abcdef." + strings.Repeat("0", 64)
	err := run(ctx, []string{"run", "--console", "https://127.0.0.1:1", "--token", token, "--state-dir", filepath.Join(dir, "state"),
		"--driver", "sim", "--sim-config", conf}, &out, &out)
	if err != nil {
		t.Errorf("error %v", err)
	}
}
