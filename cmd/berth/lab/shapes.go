package lab

import (
	"fmt"
	"maps"
	"slices"

	"berth/services/agentapi"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/services/hostagent/sim"
)

// hosts are the simulated machines by zone. Each zone has free cards of every
// model that its region offers, and a machine without cards; one zone has the
// oddities that a fleet collects.
func hosts() map[string][]sim.HostSpec {
	return map[string][]sim.HostSpec{
		"eu-west-2a": {
			gpuHost("par-a-gpu-01", "v7", sim.Repeat(sim.L40, 4), sim.Repeat(sim.H100, 4)),
			gpuHost("par-a-gpu-02", "v7", sim.Repeat(sim.L40, 4), sim.Repeat(sim.H100, 4)),
			gpuHost("par-a-gpu-03", "v6", sim.Repeat(sim.A10080, 4)),
			gpuHost("par-a-cpu-01", "v7"),
		},
		"eu-west-2b": {
			gpuHost("par-b-gpu-01", "v7", sim.Repeat(sim.L40, 2), sim.Repeat(sim.H100, 4)),
			gpuHost("par-b-gpu-02", "v7", sim.Repeat(sim.L40, 2)),
			gpuHost("par-b-gpu-03", "v6", sim.Repeat(sim.A10080, 4)),
			gpuHost("par-b-inf-01", "v7", sim.Repeat(sim.H200, 8)),
			gpuHost("par-b-cpu-01", "v7"),
		},
		"cloudgouv-eu-west-1a": {
			gpuHost("gov-gpu-01", "v7", sim.Repeat(sim.L40, 4), sim.Repeat(sim.H100, 2), sim.Repeat(sim.A10080, 2)),
			gpuHost("gov-gpu-02", "v6", sim.Repeat(sim.A10080, 2)),
			gpuHost("gov-cpu-01", "v7"),
			workstation(oddHost),
			notReady("gov-gpu-03"),
		},
		"hikube-1": {
			gpuHost("hik-gpu-01", "v7", sim.Repeat(sim.L40S, 4), sim.Repeat(sim.A10080, 2), sim.Repeat(sim.H100, 2)),
			gpuHost("hik-gpu-02", "v7", sim.Repeat(sim.L40S, 4), sim.Repeat(sim.A10080, 2), sim.Repeat(sim.H100, 2)),
			gpuHost("hik-gpu-10", "v7", sim.Repeat(sim.L40S, 10)),
			gpuHost("hik-cpu-01", "v7"),
		},
	}
}

func gpuHost(name, generation string, models ...[]sim.Model) sim.HostSpec {
	const numaNodes = 2
	return sim.HostSpec{
		Name: name, Generation: generation, VCores: 384, MemoryMiB: 4 << 20, NUMANodes: numaNodes, Kernel: "6.1.0-28-amd64",
		Cards: sim.Cards(name, numaNodes, slices.Concat(models...)...),
	}
}

// oddHost is the machine with the odd cards.
const oddHost = "gov-lab-01"

// workstation is a host of odd cards: one of four functions that no catalogue
// has, one behind a VMD controller (domain 10000, no NUMA node), one without a
// serial, and one whose reset fails: a line of its checklist warns of it.
func workstation(name string) sim.HostSpec {
	h := gpuHost(name, "v7", sim.Repeat(sim.Titan, 1), sim.Repeat(sim.L40, 3))
	vmd, nameless, failing := &h.Cards[1], &h.Cards[2], &h.Cards[3]
	vmd.PCIAddress, vmd.NUMANode, vmd.Parents = "10000:e1:00.0", nil, []string{"pci10000:e0", "10000:e0:01.0"}
	for i := range vmd.Functions {
		vmd.Functions[i].Address = "10000:e1:00." + string(rune('0'+i))
	}
	nameless.Serial = ""
	failing.FailResets = 1000
	h.Findings = []agentapi.Finding{{
		Code: agentapi.FindingReset, Warning: true, Detail: failing.PCIAddress + " did not come back from its last reset",
		Fix: "power the host off and on; replace the card if it fails again",
	}}
	return h
}

// notReady is a host whose cards nouveau holds.
func notReady(name string) sim.HostSpec {
	h := gpuHost(name, "v7", sim.Repeat(sim.H100, 4))
	h.Findings = []agentapi.Finding{{
		Code: agentapi.FindingNouveauBound, Detail: "nouveau holds " + h.Cards[0].PCIAddress,
		Fix: "echo 'blacklist nouveau' > /etc/modprobe.d/nouveau.conf && update-initramfs -u && reboot",
	}}
	return h
}

// anyFleet makes any number of hosts with any number of cards each, spread over
// the zones, of the models that each zone's region offers.
func anyFleet(hosts, cards int) map[string][]sim.HostSpec {
	offered := map[string][]sim.Model{
		"eu-west-2a": {sim.L40, sim.H100, sim.A10080}, "eu-west-2b": {sim.L40, sim.H100, sim.A10080, sim.H200},
		"cloudgouv-eu-west-1a": {sim.L40, sim.H100, sim.A10080}, "hikube-1": {sim.L40S, sim.A10080, sim.H100},
	}
	zones := slices.Sorted(maps.Keys(offered))
	all := map[string][]sim.HostSpec{}
	for i := range hosts {
		zone, n := zones[i%len(zones)], i/len(zones)
		model := offered[zone][n%len(offered[zone])]
		generation := "v7"
		if model.Name == sim.A10080.Name {
			generation = "v6"
		}
		all[zone] = append(all[zone], gpuHost(fmt.Sprintf("%s-gpu-%04d", zone, n+1), generation, sim.Repeat(model, cards)))
	}
	return all
}

type tenant struct {
	email string
	name  string
	vms   []compute.NewVM
}

// tenants are the two accounts with VMs of every sort that the rules tell apart.
func tenants() []tenant {
	return []tenant{
		{TenantA, "Tenant A", []compute.NewVM{
			{Name: "render-lab", Zone: "eu-west-2a", Type: "tinav7.c24r192p1"},
			{Name: "api-blue", Zone: "eu-west-2a", Type: "tinav7.c16r64p1"},
			{Name: "web-01", Zone: "eu-west-2a", Type: "tinav7.c4r16p2"},
			{Name: "vault", Zone: "eu-west-2a", Type: "tinav7.c8r32p1", Tenancy: catalog.TenancyDedicated},
			{Name: "tune-01", Zone: "eu-west-2a", Type: "tinav6.c16r128p1"},
			{Name: "studio-03", Zone: "eu-west-2b", Type: "tinav7.c8r32p1"},
			{Name: "notebook", Zone: "hikube-1", Type: "u1.2xlarge"},
		}},
		{TenantB, "Tenant B", []compute.NewVM{
			{Name: "batch-1", Zone: "eu-west-2a", Type: "tinav7.c16r64p1"},
			{Name: "web-b", Zone: "eu-west-2b", Type: "u1.xlarge"},
		}},
	}
}
