package vms_test

import (
	"time"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/urls"
	"berth/web/vms"
	"berth/web/webtest"
)

const (
	vmID     = services.VMID("i-5be20f11")
	attached = services.GPUID("fgpu-7c41d09e")
	coming   = services.GPUID("fgpu-1f8a33b2")
	leaving  = services.GPUID("fgpu-0c77a9d3")
)

// named are two types of an operator's list: a plain one, and one with GPUs.
var named = catalog.Types{
	{Name: "u1.2xlarge", VCores: 8, MemoryMiB: 32 << 10, Performance: catalog.Highest, Named: true},
	{Name: "inf.2h", VCores: 32, MemoryMiB: 256 << 10, Generation: "v7", Performance: catalog.Highest, GPUModel: "nvidia-h100", GPUCount: 2, Named: true},
}

// h100 is an offer with every limit.
var h100 = catalog.Offer{Model: "nvidia-h100", Region: "eu-west-2", MaxVCores: 32, MaxMemoryMiB: 256 << 10, Generations: []string{"v7"}}

func machine(power services.Power) vms.Machine {
	return vms.Machine{
		ID: vmID, Name: "render <lab>", Type: "tinav7.c24r192p1", VCores: 24, MemoryMiB: 192 << 10, Generation: "v7",
		Performance: catalog.Highest, Tenancy: catalog.TenancyDefault, Zone: "eu-west-2a", Region: "eu-west-2",
		Storage: services.StorageShared, Image: "Debian 12", SSHKey: "ssh-ed25519 AAAA ops@lab.test", UserData: "#cloud-config\n<b>",
		Power: power, Wanted: power, PowerSince: webtest.Now.Add(-144 * time.Hour), CreatedAt: webtest.Now.Add(-200 * time.Hour),
	}
}

func gpu(id services.GPUID, name string, state services.GPUState) vms.GPU {
	return vms.GPU{ID: id, Name: name, Model: "nvidia-h100", Kind: services.GPUFlexible, State: state, Since: webtest.Now.Add(-time.Minute)}
}

// page is a machine with a GPU in each state that a machine's GPU may have.
func page(power services.Power) vms.Page {
	p := vms.Page{
		Shell: webtest.Shell(), Key: "key", VM: machine(power),
		GPUs: []vms.GPU{
			gpu(attached, "training-0", services.GPUAttached), gpu(coming, "training-1", services.GPUAttaching), gpu(leaving, "infer-b", services.GPUDetaching),
		},
		Pending: &vms.Pending{OnHost: power == services.PowerStopped, Since: webtest.Now.Add(-time.Minute)},
		Limits:  &vms.Limits{Model: h100.Model, Region: h100.Region, MaxVCores: h100.MaxVCores, MaxMemoryMiB: h100.MaxMemoryMiB, Generations: h100.Generations},
		Driver:  &vms.Driver{Model: h100.Model, Branch: "525"},
		Attach: &vms.Attach{GPUs: []vms.Choice{
			{ID: "fgpu-aaaaaaa1", Name: "spare <1>", Model: h100.Model, Zone: "eu-west-2a"},
			{ID: "fgpu-aaaaaaa2", Name: "other", Model: "nvidia-l40", Zone: "eu-west-2b", Reasons: []services.Violation{
				{Code: services.CodeModelMismatch, Args: map[string]any{"Model": "nvidia-l40", "Other": h100.Model, "Holder": "training-0", "VM": "render-lab"}},
				{Code: services.CodeZoneMismatch, Args: map[string]any{"Zone": "eu-west-2b", "VMZone": "eu-west-2a"}},
			}},
		}},
		Events: []components.Happening{
			{ID: 2, At: webtest.Now.Add(-time.Hour), Kind: "vm.resized", Actor: "tenant-a@lab.test", VM: vmID, Args: map[string]any{"Old": "u1.2xlarge", "New": "tinav7.c24r192p1"}},
			{ID: 1, At: webtest.Now.Add(-2 * time.Hour), Kind: "vm.created", Actor: "tenant-a@lab.test", VM: vmID, Args: map[string]any{"Type": "u1.2xlarge", "Zone": "eu-west-2a"}},
		},
	}
	p.GPUs[1].DeleteOnVMDeletion = true
	return p
}

func operation(kind services.OperationKind, state services.OperationState) *components.Progress {
	return &components.Progress{
		ID: "op-00000001", Kind: kind, State: state, Steps: []string{"halt", "settle", "boot"}, At: 1,
		Since: webtest.Now.Add(-time.Minute), Deadline: webtest.Now.Add(time.Minute), Now: webtest.Now, VM: vmID,
	}
}

func list() vms.List {
	return vms.List{
		Shell: webtest.Shell(), Query: urls.VMQuery{}, Zones: []string{"eu-west-2a", "eu-west-2b"},
		Counts: []vms.PowerCount{{Power: services.PowerRunning, Count: 2}, {Power: services.PowerStopped, Count: 1}},
		Rows: []vms.Row{
			{
				ID: vmID, Name: "render <lab>", Type: "tinav7.c24r192p1", VCores: 24, MemoryMiB: 192 << 10, Zone: "eu-west-2a",
				Power: services.PowerRunning, Wanted: services.PowerStopped, CreatedAt: webtest.Now,
				GPUs: []vms.Group{{Model: h100.Model, State: services.GPUAttached, Count: 2}, {Model: h100.Model, State: services.GPUAttaching, Count: 1}},
			},
			{
				ID: "i-00000002", Name: "serve", Type: "inf.2h", VCores: 32, MemoryMiB: 256 << 10, Zone: "eu-west-2b",
				Power: services.PowerRunning, Wanted: services.PowerRunning, CreatedAt: webtest.Now,
				GPUs: []vms.Group{{Model: h100.Model, Kind: services.GPUBuiltIn, Count: 2}},
			},
			{
				ID: "i-00000003", Name: "web-01", Type: "u1.2xlarge", VCores: 8, MemoryMiB: 32 << 10, Zone: "eu-west-2a",
				Power: services.PowerStopped, Wanted: services.PowerStopped, CreatedAt: webtest.Now,
			},
		},
	}
}

// fields answers as a form or query would.
func fields(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// resize is the form with a type filled in, on a machine with two H100.
func resize(power services.Power, filled ...string) vms.Resize {
	p := page(power)
	r := vms.Resize{
		Shell: p.Shell, Key: "key", VM: p.VM, Type: vms.ReadType(fields(filled...), named, p.VM.Type), Generations: []string{"v6", "v7"}, Limits: p.Limits,
		Types: []vms.NamedType{{Type: named[0]}, {Type: named[1], Reasons: []services.Violation{{Code: services.CodeInferenceType}}}},
		Fits:  []vms.Fit{{ID: attached, Name: "training-0", State: services.GPUAttached}, {ID: coming, Name: "training-1", State: services.GPUAttaching}},
	}
	t, err := named.Resolve(r.Type.Name(), r.Type.Performance)
	if e, ok := services.AsError(err); ok {
		r.Against = e.Violations
		return r
	}
	r.Becomes = &t
	spec := t.Spec(r.VM.Generation, r.VM.Tenancy)
	for i := range r.Fits {
		r.Fits[i].Broken = h100.Check(spec)
	}
	if len(r.Fits[0].Broken) > 0 {
		if closest, ok := catalog.Largest(spec, []catalog.Offer{h100}); ok {
			r.Largest = catalog.Spell(closest)
		}
	}
	return r
}

func newForm(filled ...string) vms.New {
	n := vms.New{
		Shell: webtest.Shell(), Key: "key", Generations: []string{"v6", "v7"},
		Values: vms.NewValues{Name: "n <1>", Zone: "eu-west-2a", Image: "debian-12", Type: vms.ReadType(fields(filled...), named, "tinav7.c8r32p1")},
		Zones: []vms.ZoneChoice{
			{ID: "eu-west-2a", Region: "eu-west-2", Storage: services.StorageShared}, {ID: "eu-west-2b", Region: "eu-west-2", Storage: services.StorageLocal},
		},
		Images: []vms.Image{{ID: "debian-12", Name: "Debian 12"}, {ID: "ubuntu-24.04", Name: "Ubuntu 24.04"}},
		Types:  []vms.NamedType{{Type: named[0]}, {Type: named[1]}},
	}
	if t, err := named.Resolve(n.Values.Type.Name(), n.Values.Type.Performance); err == nil {
		n.Becomes = &t
		n.Takes = []vms.Taking{{Model: h100.Model, Memory: catalog.Memory{GB: 80, Type: "HBM3"}, Broken: h100.Check(t.Spec("v7", n.Values.Tenancy))}}
	}
	return n
}
