package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"berth/services/agentapi"
	"berth/services/hostagent/discovery"
	"berth/services/hostagent/machine"
	"berth/services/hostagent/nvml"
	"berth/services/hostagent/pci"
	"berth/services/hostagent/readiness"
)

type doctorFlags struct {
	Config string `type:"existingfile" placeholder:"FILE" help:"The agent's configuration; without it no CPU generation is known."`
	Sysfs  string `type:"existingdir" placeholder:"DIR" help:"Look at another machine's sys and proc, kept in this folder."`
	JSON   bool   `help:"Print for scripts."`

	socket string // libvirt's, as configured
}

// doctorDeadline bounds a look at a host whose driver hangs.
const doctorDeadline = 30 * time.Second

// Run prints what the host is made of and what keeps it from handing out its
// cards. A host that is not ready is an error, so that scripts can tell.
func (f *doctorFlags) Run(p process) error {
	opt, err := f.options(p)
	if err != nil {
		return err
	}
	host, err := discovery.New(opt)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.ctx, doctorDeadline)
	defer cancel()
	found, err := host.Look(ctx)
	if err != nil {
		return err
	}
	if f.Sysfs == "" {
		found.Report.Findings = append(found.Report.Findings, readiness.Libvirt(ctx, f.socket))
	}
	show := table
	if f.JSON {
		show = script
	}
	if err := show(p.stdout, found); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return verdict(found.Report.Findings)
}

// options leave out NVIDIA's library for another machine: it knows this one's
// cards.
func (f *doctorFlags) options(p process) (discovery.Options, error) {
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	opt := discovery.Options{Root: "/", Library: nvml.New(log), Logger: log}
	if f.Sysfs != "" {
		if _, err := os.Stat(filepath.Join(f.Sysfs, pci.Devices)); err != nil {
			return opt, fmt.Errorf("--sysfs wants the folder that holds a machine's sys and proc: %w", err)
		}
		opt.Root, opt.Library = machine.Root(f.Sysfs), nil
	}
	conf, err := loadConfig(f.Config)
	if err != nil {
		return opt, err
	}
	opt.Config, f.socket = conf.Config, conf.Libvirt.Socket
	if opt.Name, err = os.Hostname(); err != nil {
		return opt, fmt.Errorf("ask for the host's name: %w", err)
	}
	return opt, nil
}

// diagnosis is what --json prints.
type diagnosis struct {
	Ready    bool                  `json:"ready"`
	Findings []trouble             `json:"findings"` // what is not as it should be
	Cards    []agentapi.CardReport `json:"cards"`
}

type trouble struct {
	Code     string `json:"code"`     // as in the agent's report
	Severity string `json:"severity"` // error: no card is handed out; warning
	Message  string `json:"message"`
	Fix      string `json:"fix"`
}

func script(w io.Writer, found discovery.Found) error {
	d := diagnosis{Ready: readiness.Ready(found.Report.Findings), Findings: []trouble{}, Cards: found.Report.Cards}
	for _, f := range found.Report.Findings {
		severity := "error"
		switch {
		case f.OK:
			continue
		case f.Warning:
			severity = "warning"
		}
		d.Findings = append(d.Findings, trouble{Code: f.Code, Severity: severity, Message: f.Detail, Fix: f.Fix})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

func table(w io.Writer, found discovery.Found) error {
	var b strings.Builder
	describe(&b, found)
	checklist(&b, found.Report.Findings)
	cards(&b, found.Report.Cards)
	_, err := io.WriteString(w, b.String())
	return err
}

func describe(b *strings.Builder, found discovery.Found) {
	r := found.Report
	nodes := "1 NUMA node"
	if n := len(r.NUMA); n != 1 {
		nodes = fmt.Sprintf("%d NUMA nodes", n)
	}
	fmt.Fprintf(b, "%s: %s, %d vCores and %d GiB for VMs, %s, Linux %s\n\n", r.Name, found.CPU, r.VCores, r.MemoryMiB>>10, nodes, r.Kernel)
}

// titles name the checks on a terminal; the codes name what they would find.
var titles = map[string]string{
	agentapi.FindingIOMMUOff:      "IOMMU",
	agentapi.FindingVFIOMissing:   "vfio modules",
	agentapi.FindingNouveauBound:  "nouveau",
	agentapi.FindingGroup:         "IOMMU groups",
	agentapi.FindingGroupCritical: "critical devices",
	agentapi.FindingDriverInUse:   "cards in use",
	agentapi.FindingNoReset:       "reset",
	agentapi.FindingGeneration:    "CPU generation",
	agentapi.FindingUnreadable:    "PCI devices",
	agentapi.FindingNVMLMissing:   "NVIDIA library",
	agentapi.FindingLibvirt:       "libvirt",
}

func checklist(b *strings.Builder, findings []agentapi.Finding) {
	for _, f := range findings {
		mark := "FAIL"
		switch {
		case f.OK:
			mark = "ok"
		case f.Warning:
			mark = "warn"
		}
		fmt.Fprintf(b, "%-4s  %-16s  %s\n", mark, cmp.Or(titles[f.Code], f.Code), f.Detail)
		if f.Fix != "" {
			fmt.Fprintf(b, "%24s→ %s\n", "", f.Fix)
		}
	}
}

func cards(b *strings.Builder, list []agentapi.CardReport) {
	if len(list) == 0 {
		b.WriteString("\nNo card by NVIDIA was found.\n")
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ADDRESS\tDEVICE\tGROUP\tNUMA\tDRIVER\tFUNCTIONS\tKEY") // a strings.Builder takes everything
	for _, c := range list {
		driver := "none"
		for _, f := range c.Functions {
			if f.Address == c.PCIAddress {
				driver = cmp.Or(f.Driver, driver)
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%s:%s\t%s\t%s\t%s\t%d\t%s\n", c.PCIAddress, c.VendorID, c.DeviceID, number(c.IOMMUGroup), number(c.NUMANode), driver, len(c.Functions), c.Key)
	}
	_ = w.Flush()
}

func number(n *int) string {
	if n == nil {
		return "–"
	}
	return fmt.Sprint(*n)
}

func verdict(findings []agentapi.Finding) error {
	if readiness.Ready(findings) {
		return nil
	}
	n := 0
	for _, f := range findings {
		if !f.OK && !f.Warning {
			n++
		}
	}
	return fmt.Errorf("this host is not ready to hand out cards; checks that failed: %d", n)
}
