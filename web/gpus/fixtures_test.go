package gpus_test

import (
	"time"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/gpus"
	"berth/web/webtest"
)

const (
	gpuID = services.GPUID("fgpu-1f8a33b2")
	vmID  = services.VMID("i-5be20f11")
)

// page is a GPU in a state, with a machine where the state has one.
func page(state services.GPUState, power services.Power) gpus.Page {
	p := gpus.Page{
		Shell: webtest.Shell(), Key: "key",
		GPU: gpus.GPU{
			ID: gpuID, Name: "training <1>", Kind: services.GPUFlexible, Model: "nvidia-h100", Memory: catalog.Memory{GB: 80, Type: "HBM3"}, Generation: "v7",
			Zone: "eu-west-2a", Region: "eu-west-2", State: state, Since: webtest.Now.Add(-33 * time.Second),
			AllocatedAt: webtest.Now.Add(-24 * time.Hour), DriverBranch: "525",
		},
		Limits: gpus.Limits{MaxVCores: 32, MaxMemoryMiB: 256 * 1024, Generations: []string{"v7"}},
		Quota:  &gpus.Quota{Region: "eu-west-2", Model: "nvidia-h100", Used: 12, Max: new(16)},
		Events: []components.Happening{
			{ID: 2, At: webtest.Now.Add(-time.Hour), Kind: "gpu.attach-planned", Actor: "tenant-a@lab.test", GPU: gpuID, VM: vmID, VMName: "render-lab", To: "attaching"},
			{ID: 1, At: webtest.Now.Add(-24 * time.Hour), Kind: "gpu.allocated", Actor: "tenant-a@lab.test", GPU: gpuID, To: "allocated"},
		},
	}
	if state == services.GPUAllocated {
		p.Attach = &gpus.Attach{Machines: []gpus.Choice{
			{ID: vmID, Name: "render-lab", Type: "tinav7.c24r192p1", Power: services.PowerRunning},
			{ID: "i-0c77a9d3", Name: "api-blue", Type: "tinav7.c40r32p2", Power: services.PowerStopped, Reasons: []services.Violation{
				{Code: services.CodeVMSpecsMismatch, Limit: services.LimitVCores, Args: map[string]any{"Have": 40, "Max": 32, "Model": "nvidia-h100", "Region": "eu-west-2"}},
				{Code: services.CodeVMDedicated},
			}},
		}}
		return p
	}
	p.Machine = &gpus.Machine{
		ID: vmID, Name: "render-lab", Power: power, PowerSince: webtest.Now.Add(-144 * time.Hour), Type: "tinav7.c24r192p1",
		VCores: 24, MemoryMiB: 192 * 1024, Generation: "v7", Performance: "highest",
		Peers: []gpus.Peer{{ID: "fgpu-7c41d09e", Name: "training-0", Model: "nvidia-h100", State: services.GPUAttached}},
	}
	if state == services.GPUAttaching || state == services.GPUDetaching {
		p.Pending = &gpus.Pending{OnHost: power == services.PowerStopped, Since: webtest.Now.Add(-33 * time.Second)}
	}
	return p
}

func list() gpus.List {
	return gpus.List{
		Shell: webtest.Shell(), Key: "key", Counts: gpus.Counts{Allocated: 1, Attaching: 1, Attached: 3, Detaching: 1},
		Models: []string{"nvidia-h100", "nvidia-l40"}, Zones: []string{"eu-west-2a"}, Next: "fgpu-00000002",
		Quotas:   []gpus.Quota{{Used: 5, Max: new(8)}, {Used: 1, Max: new(0)}},
		Machines: []gpus.Choice{{ID: vmID, Name: "render-lab", Type: "u1.2xlarge"}},
		Rows: []gpus.Row{
			{ID: "fgpu-00000001", Name: "<b>one</b>", Model: "nvidia-h100", Generation: "v7", State: services.GPUAttached, Zone: "eu-west-2a", VM: vmID, VMName: "render-lab", AllocatedAt: webtest.Now},
			{ID: "fgpu-00000002", Name: "two", Model: "nvidia-l40", State: services.GPUAllocated, Zone: "eu-west-2a", AllocatedAt: webtest.Now, Ticked: true},
		},
	}
}
