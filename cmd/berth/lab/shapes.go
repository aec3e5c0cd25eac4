package lab

import (
	"slices"

	"berth/services/catalog"
	"berth/services/compute"
	"berth/services/hostagent/sim"
)

// hosts are the simulated machines by zone. Each zone has free cards of every
// model that its region offers, and a machine without cards.
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
		},
		"hikube-1": {
			gpuHost("hik-gpu-01", "v7", sim.Repeat(sim.L40S, 4), sim.Repeat(sim.A10080, 2), sim.Repeat(sim.H100, 2)),
			gpuHost("hik-gpu-02", "v7", sim.Repeat(sim.L40S, 4), sim.Repeat(sim.A10080, 2), sim.Repeat(sim.H100, 2)),
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
