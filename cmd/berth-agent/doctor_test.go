package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/services/hostagent/sysfstest"
)

// doctor runs the command and gives what it printed.
func doctor(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, log bytes.Buffer
	err := run(t.Context(), append([]string{"doctor"}, args...), &out, &log)
	return out.String(), err
}

func TestDoctorOnAHostThatIsReady(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "agent.toml")
	if err := os.WriteFile(conf, []byte("[[generation]]\nname = \"v7\"\ncpu = \"Intel*\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := doctor(t, "--sysfs", sysfstest.DualL40S(t).Root, "--config", conf)
	if err != nil {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"2 NUMA nodes", "ok    IOMMU ", "0000:16:00.0", "10de:26b9", "counts as v7"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "FAIL") || strings.Contains(out, "warn") {
		t.Errorf("a fault on a host that has none:\n%s", out)
	}
}

func TestDoctorOnAHostThatIsNotReady(t *testing.T) {
	out, err := doctor(t, "--sysfs", sysfstest.SharedGroup(t).Root)
	if err == nil || !strings.Contains(err.Error(), "checks that failed: 1") {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"FAIL  critical devices", "→ Put the card into another slot", "warn  CPU generation"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestDoctorForScripts(t *testing.T) {
	for name, c := range map[string]struct {
		tree     *sysfstest.Tree
		ready    bool
		findings map[string]string // severity by code
		cards    int
	}{
		"ready":     {sysfstest.DGXH100(t), true, map[string]string{"cpu-generation": "warning"}, 8},
		"not ready": {sysfstest.VMD(t), false, map[string]string{"group-critical-device": "error", "cpu-generation": "warning"}, 1},
	} {
		out, err := doctor(t, "--json", "--sysfs", c.tree.Root)
		if (err == nil) != c.ready {
			t.Errorf("%s: error %v", name, err)
		}
		var got struct {
			Ready    bool
			Findings []struct{ Code, Severity, Message, Fix string }
			Cards    []struct {
				Address string `json:"pci_address"`
			}
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, out)
		}
		if got.Ready != c.ready || len(got.Findings) != len(c.findings) || len(got.Cards) != c.cards {
			t.Errorf("%s: %+v", name, got)
		}
		for _, f := range got.Findings {
			if c.findings[f.Code] != f.Severity || f.Message == "" || f.Fix == "" {
				t.Errorf("%s: finding %+v, want severity %q", name, f, c.findings[f.Code])
			}
		}
	}
}

func TestDoctorThatCannotLook(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "agent.toml")
	if err := os.WriteFile(bad, []byte("reserve_cores = 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"sys and proc":     {"--sysfs", t.TempDir()},
		"--sysfs: stat":    {"--sysfs", filepath.Join(t.TempDir(), "nowhere")},
		`"reserve_cores"`:  {"--config", bad, "--sysfs", sysfstest.VMD(t).Root},
		"no such file":     {"--config", bad + "x"},
		"unknown flag --x": {"--x"},
	} {
		if out, err := doctor(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("doctor %v: error %v and output %q, want %q", args, err, out, want)
		}
	}
}
