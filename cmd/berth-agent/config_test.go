package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	for text, want := range map[string]string{
		"exclude = [\"0000:01:00.0\"]\nreserve_vcores = 4\n[[generation]]\nname = \"v7\"\ncpu = \"AMD EPYC 9*\"\n[libvirt]\nbridge = \"br0\"\n": "",
		"exclude = [\"1:0\"]":                        `"1:0" is no PCI address`,
		"reserve_vcores = -1":                        "0 or more",
		"reserve_cores = 4":                          `no setting "reserve_cores"`,
		"[[generation]]\nname = \"v7\"":              "a pattern",
		"[[generation]]\nname = \"v7\"\ncpu = \"[\"": "a pattern",
		"exclude = 5":                                "exclude",
		"[[":                                         "read ",
		"[libvirt]\nfirmware = \"uboot\"":            `"efi" or "bios"`,
		"[libvirt]\npools = \"berth\"":               `no setting "libvirt.pools"`,
	} {
		file := filepath.Join(t.TempDir(), "agent.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := loadConfig(file)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
