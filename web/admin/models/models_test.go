package models_test

import (
	"strings"
	"testing"

	"berth/services"
	"berth/services/catalog"
	"berth/web/admin/models"
	"berth/web/i18n"
	"berth/web/webtest"
)

func TestTheIndexListsModelsTypesAndPrices(t *testing.T) {
	doc := webtest.Render(t, models.IndexView(models.Index{
		Shell: webtest.Shell(), Regions: []string{"r"},
		Models: []models.Model{
			{ID: "nvidia-l40", Memory: catalog.Memory{GB: 48, Type: "GDDR6"}, PCIIDs: []string{"10de:26b5"}, Offers: []models.Offer{{Region: "r", Limits: "35 vCores", HourlyPrice: "1.5000"}}},
			{ID: "<b>odd"},
		},
		Types: []models.Type{{Name: "u1.large", VCores: 2, MemoryMiB: 8192, HourlyPrice: "0.1250"}, {Name: "inf.2h", VCores: 32, MemoryMiB: 1 << 18, GPUModel: "nvidia-h100", GPUCount: 2}},
	}), i18n.French)
	for want, text := range map[string]string{
		`tr[data-id="nvidia-l40"] [data-region=r]`: "1,50 € de l’heure", `tr[data-id="u1.large"]`: "0,125 € de l’heure", `tr[data-id="inf.2h"]`: "2 × nvidia-h100",
		`tr[data-id="nvidia-l40"]`: "10de:26b5",
	} {
		if got := webtest.Text(doc.Find(want)); !strings.Contains(got, text) {
			t.Errorf("%s says %q, want %q in it", want, got, text)
		}
	}
	if doc.Find(`a[href="/admin/catalog/models/%3Cb%3Eodd"]`).Length() != 1 || doc.Find("td b").Length() > 0 {
		t.Error("an odd name leads nowhere, or is taken for HTML")
	}
}

func form() models.ModelForm {
	return models.ModelForm{
		Shell: webtest.Shell(), ID: "nvidia-l40", Version: "v1", Fields: map[string]string{"architecture": `"Ada`, "pci_ids": "10de:26b5"},
		Offers: []models.OfferForm{
			{Region: "r", Offered: true, Version: "v2", Fields: map[string]string{"max_vcores": "35"}},
			{Region: "s", Version: "v3", Fields: map[string]string{}},
		},
	}
}

func TestAModelsFormKeepsWhatWasTypedAndSaysWhatIsWrong(t *testing.T) {
	f := form()
	f.Broken = []services.Violation{{Field: "pci_ids", Code: services.CodeInvalidValue, Args: map[string]any{"Value": "x", "Allowed": "y"}}}
	doc := webtest.Both(t, models.ModelView(f))
	for _, want := range []string{
		`#model-form [name=architecture][value='"Ada']`, `#model-form [name=pci_ids][aria-invalid=true]`, `#model-form [name=version][value=v1]`,
		`[data-region=r][data-offered=true] [name=max_vcores][value="35"]`, `[data-region=s][data-offered=false] [name=version][value=v3]`,
		`form[action="/admin/catalog/models/nvidia-l40/delete"]`,
	} {
		if doc.Find(want).Length() != 1 {
			t.Errorf("%d match %s", doc.Find(want).Length(), want)
		}
	}
	blank := webtest.Both(t, models.ModelView(models.ModelForm{Shell: webtest.Shell(), New: true}))
	if blank.Find(`form[action="/admin/catalog/models"] [name=id]`).Length() != 1 || blank.Find("#delete, [data-region]").Length() != 0 {
		t.Error("a new model has no id to give, or can be deleted or offered already")
	}
}

// A change that attachments would not fit shows them and asks.
func TestMisfitsAreShownBeforeTheyAreAllowed(t *testing.T) {
	f := form()
	f.Offers[0].Misfits = []models.Misfit{{
		VM: "i-00000001", Name: "<i>render", Account: "Alpha", GPUs: "fgpu-00000001",
		Broken: []services.Violation{{Code: services.CodeVMSpecsMismatch, Limit: services.LimitVCores, Args: map[string]any{"Have": 36, "Max": 35, "Model": "nvidia-l40"}}},
	}}
	doc := webtest.Both(t, models.ModelView(f))
	if doc.Find(`#offer-r [data-misfits] [data-id="i-00000001"]`).Length() != 1 || doc.Find(`#offer-r [name=confirm][value=true]`).Length() != 1 ||
		doc.Find(`#offer-s [name=confirm]`).Length() != 0 || doc.Find("li i").Length() != 0 {
		t.Error("it does not show what would not fit, or asks for nothing, or for too much")
	}
}

func TestATypesFormOffersTheModels(t *testing.T) {
	f := models.TypeForm{Shell: webtest.Shell(), Name: "inf.2h", Models: []string{"nvidia-h100"}, Fields: map[string]string{"gpu_model": "nvidia-h100", "vcores": "32"}}
	doc := webtest.Both(t, models.TypeView(f))
	if doc.Find(`#type-form select[name=gpu_model] option[value="nvidia-h100"][selected]`).Length() != 1 || doc.Find(`#type-form [name=vcores][value="32"]`).Length() != 1 {
		t.Error("the form does not show what the type is")
	}
	blank := webtest.Both(t, models.TypeView(models.TypeForm{Shell: webtest.Shell(), New: true}))
	if blank.Find(`form[action="/admin/catalog/types"] [name=name]`).Length() != 1 || blank.Find("#delete").Length() != 0 {
		t.Error("a new type has no name to give, or can be deleted already")
	}
}
