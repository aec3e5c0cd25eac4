package catalog_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services/catalog"
)

// What NumSpot's table of GPU models says, retyped.
const numspot = `
nvidia-l40     48000 35 250 v7    eu-west-2
nvidia-l40     48000 35 250 v7    cloudgouv-eu-west-1
nvidia-h100    80000 32 256 v7    eu-west-2
nvidia-h100    80000 32 256 v7    cloudgouv-eu-west-1
nvidia-a100-80 80000 35 256 v6    eu-west-2
nvidia-a100-80 80000 35 256 v6,v7 cloudgouv-eu-west-1`

// What Hikube's tables of GPU types and resource names say, retyped.
const hikube = `
nvidia-l40s    | Ada Lovelace | 48 GDDR6 | 362  | nvidia.com/AD102GL_L40S        | inference, development, prototyping
nvidia-a100-80 | Ampere       | 80 HBM2e | 312  | nvidia.com/GA100_A100_PCIE_80GB | training, fine-tuning
nvidia-h100    | Hopper       | 80 HBM3  | 1979 | nvidia.com/H100_94GB           | llm, exascale, distributed-training`

func model(t *testing.T, id string) catalog.Model {
	t.Helper()
	all := catalog.Published().Models
	i := slices.IndexFunc(all, func(m catalog.Model) bool { return m.ID == id })
	if i < 0 {
		t.Fatalf("there is no model %s", id)
	}
	return all[i]
}

func TestPublishedLimitsAreNumSpots(t *testing.T) {
	var got []string
	for _, o := range catalog.Published().Offers {
		if o.Region != "hikube" {
			got = append(got, fmt.Sprintf("%s %d %d %d %s %s", o.Model, model(t, o.Model).VRAMMiB, o.MaxVCores, o.MaxMemoryMiB/gib, strings.Join(o.Generations, ","), o.Region))
		}
	}
	var want []string
	for line := range strings.Lines(strings.TrimSpace(numspot)) {
		want = append(want, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPublishedModelsAreHikubes(t *testing.T) {
	var offered []string
	for line := range strings.Lines(strings.TrimSpace(hikube)) {
		cells := regexp.MustCompile(`\s*\|\s*`).Split(strings.TrimSpace(line), -1)
		m := model(t, cells[0])
		got := []string{
			m.ID, m.Architecture, fmt.Sprint(m.Memory.GB, " ", m.Memory.Type), fmt.Sprint(m.INT8TOPS), m.ResourceName, strings.Join(m.UseCases, ", "),
		}
		if diff := cmp.Diff(cells, got); diff != "" {
			t.Error(diff)
		}
		offered = append(offered, m.ID)
	}
	for _, o := range catalog.Published().Offers {
		if o.Region != "hikube" {
			continue
		}
		if !slices.Contains(offered, o.Model) || o.MaxVCores != 0 || o.MaxMemoryMiB != 0 || o.Generations != nil {
			t.Errorf("hikube offers %+v, want one of %v without limits", o, offered)
		}
	}
}

func TestPublishedInferenceTypesHaveModelsOfTheCatalogue(t *testing.T) {
	models := map[string]bool{}
	for _, v := range catalog.Published().Types {
		if v.Inference() {
			models[model(t, v.GPUModel).ID] = true
		}
		again, err := types().Resolve(v.Name, "")
		if err != nil || again != v {
			t.Errorf("%s resolves to %+v: %v", v.Name, again, err)
		}
	}
	if diff := cmp.Diff(map[string]bool{"nvidia-l40": true, "nvidia-h100": true, "nvidia-h200": true}, models); diff != "" {
		t.Error(diff)
	}
}

func TestACardsIDLeadsToOneModel(t *testing.T) {
	seen := map[string]string{}
	for _, m := range catalog.Published().Models {
		for _, id := range m.PCIIDs {
			if other, twice := seen[id]; twice {
				t.Errorf("%s is of %s and of %s", id, other, m.ID)
			}
			seen[id] = m.ID
		}
	}
}
