package catalog

// Place is a zone to set a console up with.
type Place struct {
	Region  string
	Zone    string
	Storage string // "shared" or "local"
}

// Image is a system that a VM can be made from.
type Image struct {
	ID   string
	Name string
}

// Reference is a whole catalogue. Operators edit theirs afterwards.
type Reference struct {
	Places []Place
	Models []Model
	Offers []Offer
	Types  []VMType
	Images []Image
}

// Published is the catalogue as NumSpot (models with VRAM, limits, generations,
// regions, inference types) and Hikube (architecture, memory, INT8, use cases,
// resource names, u1 types) publish it. Where the documents say nothing of a
// limit, none binds.
func Published() Reference {
	return Reference{
		Places: []Place{
			{Region: "eu-west-2", Zone: "eu-west-2a", Storage: "shared"},
			{Region: "eu-west-2", Zone: "eu-west-2b", Storage: "local"},
			{Region: "cloudgouv-eu-west-1", Zone: "cloudgouv-eu-west-1a", Storage: "shared"},
			{Region: "hikube", Zone: "hikube-1", Storage: "shared"},
		},
		Models: publishedModels(),
		Offers: []Offer{
			{Model: "nvidia-l40", Region: "eu-west-2", MaxVCores: 35, MaxMemoryMiB: 250 * 1024, Generations: []string{"v7"}},
			{Model: "nvidia-l40", Region: "cloudgouv-eu-west-1", MaxVCores: 35, MaxMemoryMiB: 250 * 1024, Generations: []string{"v7"}},
			{Model: "nvidia-h100", Region: "eu-west-2", MaxVCores: 32, MaxMemoryMiB: 256 * 1024, Generations: []string{"v7"}},
			{Model: "nvidia-h100", Region: "cloudgouv-eu-west-1", MaxVCores: 32, MaxMemoryMiB: 256 * 1024, Generations: []string{"v7"}},
			{Model: "nvidia-a100-80", Region: "eu-west-2", MaxVCores: 35, MaxMemoryMiB: 256 * 1024, Generations: []string{"v6"}},
			{Model: "nvidia-a100-80", Region: "cloudgouv-eu-west-1", MaxVCores: 35, MaxMemoryMiB: 256 * 1024, Generations: []string{"v6", "v7"}},
			{Model: "nvidia-a100-80", Region: "hikube"},
			{Model: "nvidia-h100", Region: "hikube"},
			{Model: "nvidia-l40s", Region: "hikube"},
		},
		Types:  publishedTypes(),
		Images: []Image{{"debian-12", "Debian 12"}, {"ubuntu-24.04", "Ubuntu 24.04 LTS"}, {"rocky-9", "Rocky Linux 9"}},
	}
}

func publishedModels() []Model {
	return []Model{
		{
			ID: "nvidia-l40", Architecture: "Ada Lovelace", VRAMMiB: 48000, Memory: Memory{48, "GDDR6"},
			UseCases: []string{"rendering", "inference"}, DriverBranch: "525", PCIIDs: []string{"10de:26b5"},
		},
		{
			ID: "nvidia-l40s", Architecture: "Ada Lovelace", Memory: Memory{48, "GDDR6"}, INT8TOPS: 362,
			UseCases:     []string{"inference", "development", "prototyping"},
			ResourceName: "nvidia.com/AD102GL_L40S", DriverBranch: "535", PCIIDs: []string{"10de:26b9"},
		},
		{
			ID: "nvidia-a100-80", Architecture: "Ampere", VRAMMiB: 80000, Memory: Memory{80, "HBM2e"}, INT8TOPS: 312,
			UseCases:     []string{"training", "fine-tuning"},
			ResourceName: "nvidia.com/GA100_A100_PCIE_80GB", DriverBranch: "470", PCIIDs: []string{"10de:20b2", "10de:20b5"},
		},
		{
			ID: "nvidia-h100", Architecture: "Hopper", VRAMMiB: 80000, Memory: Memory{80, "HBM3"}, INT8TOPS: 1979,
			UseCases:     []string{"llm", "exascale", "distributed-training"},
			ResourceName: "nvidia.com/H100_94GB", DriverBranch: "525", PCIIDs: []string{"10de:2321", "10de:2330", "10de:2331"},
		},
		{
			ID: "nvidia-h200", Architecture: "Hopper", VRAMMiB: 141000, Memory: Memory{141, "HBM3e"},
			UseCases: []string{"llm", "inference"}, DriverBranch: "550", PCIIDs: []string{"10de:2335"},
		},
	}
}

func publishedTypes() []VMType {
	named := func(name string, vcores, memoryMiB int) VMType {
		return VMType{Name: name, VCores: vcores, MemoryMiB: memoryMiB, Performance: Highest, Named: true}
	}
	inference := func(name string, vcores, memoryGiB int, model string, count int) VMType {
		return VMType{
			Name: name, VCores: vcores, MemoryMiB: memoryGiB * 1024, Generation: "v7", Performance: Highest,
			GPUModel: model, GPUCount: count, Named: true,
		}
	}
	return []VMType{
		named("u1.nano", 1, 512),
		named("u1.micro", 1, 1024),
		named("u1.small", 1, 2048),
		named("u1.medium", 1, 4096),
		named("u1.large", 2, 8192),
		named("u1.xlarge", 4, 16384),
		named("u1.2xlarge", 8, 32768),
		named("u1.4xlarge", 16, 65536),
		named("u1.8xlarge", 32, 131072),
		inference("ns-inf7-16c128r-1l40g", 16, 128, "nvidia-l40", 1),
		inference("ns-inf7-32c256r-2l40g", 32, 256, "nvidia-l40", 2),
		inference("ns-inf7-32c256r-2h100g", 32, 256, "nvidia-h100", 2),
		inference("ns-inf7-64c450r-2h100g", 64, 450, "nvidia-h100", 2),
		inference("ns-inf7-126c1024r-8h200g", 126, 1024, "nvidia-h200", 8),
	}
}
