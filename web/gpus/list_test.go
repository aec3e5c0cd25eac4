package gpus_test

import (
	"strings"
	"testing"

	"berth/services"
	"berth/services/catalog"
	"berth/web/gpus"
	"berth/web/urls"
	"berth/web/webtest"
)

func TestRowsCarryIdentifierAndState(t *testing.T) {
	doc := webtest.Both(t, gpus.ListView(list()))
	row := doc.Find(`tr[data-id="fgpu-00000001"]`)
	if row.Length() != 1 || row.Find(`[data-state=attached]`).Length() != 1 || row.Find(`a[href="/vms/i-5be20f11"]`).Length() != 1 {
		t.Error("the row lacks its state or its machine")
	}
	if got := row.Find(`a[href="/gpus/fgpu-00000001"]`).Text(); got != "<b>one</b>" {
		t.Errorf("name %q", got)
	}
	if got := webtest.Text(doc.Find(`tr[data-id="fgpu-00000002"]`)); !strings.Contains(got, "not attached") {
		t.Errorf("an unattached GPU says %q", got)
	}
}

func TestListSaysHowMuchOfTheQuotaIsUsed(t *testing.T) {
	doc := webtest.Both(t, gpus.ListView(list()))
	if got := webtest.Text(doc.Find(".head-line")); got != "6 held of 8 in your quota. 2 wait for a machine to stop." {
		t.Errorf("the heading says %q", got)
	}
	unlimited := list()
	unlimited.Quotas[0].Max = nil
	if got := webtest.Text(webtest.Both(t, gpus.ListView(unlimited)).Find(".head-line")); !strings.HasPrefix(got, "6 held.") {
		t.Errorf("without a quota the heading says %q", got)
	}
}

func TestFiltersSortAndPagesKeepEachOther(t *testing.T) {
	l := list()
	l.Query = urls.GPUQuery{State: "attached", Model: "nvidia-h100", Text: "tr", Sort: "name", After: "fgpu-00000009"}
	doc := webtest.Both(t, gpus.ListView(l))
	for what, selector := range map[string]string{
		"the next page keeps all":       `.pages a[rel=next][href="/gpus?after=fgpu-00000002&model=nvidia-h100&q=tr&sort=name&state=attached"]`,
		"the first page drops paging":   `.pages a[href="/gpus?model=nvidia-h100&q=tr&sort=name&state=attached"]`,
		"a tab drops paging":            `.pill[href="/gpus?model=nvidia-h100&q=tr&sort=name&state=waiting"]`,
		"the present tab is marked":     `.pill[aria-current][data-state-filter=attached]`,
		"sorting again turns it around": `th[aria-sort=ascending] a[href="/gpus?model=nvidia-h100&q=tr&sort=-name&state=attached"]`,
		"the form keeps the state":      `form[method=get] input[type=hidden][name=state][value=attached]`,
		"the form keeps the model":      `form[method=get] option[value=nvidia-h100][selected]`,
		"the live part keeps the query": `#gpus[hx-get="/fragments/gpus?after=fgpu-00000009&model=nvidia-h100&q=tr&sort=name&state=attached"]`,
	} {
		if doc.Find(selector).Length() != 1 {
			t.Errorf("%s: %d elements", what, doc.Find(selector).Length())
		}
	}
	if got := webtest.Text(doc.Find(".pages-shown")); got != "2 of 3 shown" {
		t.Errorf("the pages say %q", got)
	}
}

func TestBulkActionsPostTheTickedRows(t *testing.T) {
	l := list()
	l.Chosen = vmID
	l.Broken = []services.Violation{{Code: services.CodeModelMismatch, Args: map[string]any{"Model": "nvidia-l40", "Other": "nvidia-h100", "Holder": "x", "VM": "render-lab"}}}
	doc := webtest.Both(t, gpus.ListView(l))
	form := doc.Find(`form[method=post][action="/gpus/bulk"]`)
	if form.Find(`input[type=checkbox][name=gpu]`).Length() != 2 || form.Find(`input[name=gpu][value="fgpu-00000002"][checked]`).Length() != 1 {
		t.Error("the rows can't be ticked, or a refused choice is lost")
	}
	for _, action := range []string{"attach", "detach", "release"} {
		if form.Find(`button[name=action][value=`+action+`]`).Length() != 1 {
			t.Errorf("%s is missing", action)
		}
	}
	if form.Find(`select[name=vm] option[value="i-5be20f11"][selected]`).Length() != 1 || form.Find("[name=idempotency_key]").Length() != 1 {
		t.Error("the machine or the key is missing")
	}
	if doc.Find(`[data-error="model-mismatch"]`).Length() != 1 {
		t.Error("the refusal does not show")
	}
}

func TestViewersCannotTick(t *testing.T) {
	l := list()
	l.Account.Role = services.RoleViewer
	doc := webtest.Both(t, gpus.ListView(l))
	if doc.Find(`main input[type=checkbox], main button[name=action], main a[href^="/gpus/new"]`).Length() != 0 {
		t.Error("a viewer is offered changes")
	}
}

func TestEmptyListsSayWhatToDo(t *testing.T) {
	none := gpus.List{Shell: webtest.Shell()}
	doc := webtest.Both(t, gpus.ListView(none))
	if doc.Find(`.empty a[href="/gpus/new"]`).Length() != 1 || doc.Find(`.empty a[href="/catalog"]`).Length() != 1 {
		t.Error("an empty account leads nowhere")
	}
	none.Query.Text = "zzz"
	doc = webtest.Both(t, gpus.ListView(none))
	if doc.Find(`.empty a[href="/gpus"]`).Length() != 1 || doc.Find(`.empty a[href="/gpus/new"]`).Length() != 0 {
		t.Error("an empty search does not lead back")
	}
}

func TestStateFilter(t *testing.T) {
	for state, want := range map[string]int{"": 0, "waiting": 2, "attached": 1, "nonsense": 0} {
		if got := len(gpus.StateFilter(state)); got != want {
			t.Errorf("%q: %d states, want %d", state, got, want)
		}
	}
}

func newGPU() gpus.New {
	return gpus.New{
		Shell: webtest.Shell(), Key: "key", Values: gpus.NewValues{Model: "nvidia-a100-80", Zone: "cloudgouv-eu-west-1a", Name: `"quoted"`, DeleteOnVMDeletion: true},
		Models: []gpus.ModelChoice{
			{ID: "nvidia-a100-80", Memory: catalog.Memory{GB: 80, Type: "HBM2e"}, UseCases: []string{"training", "something of ours"}},
			{ID: "nvidia-l40s", Because: &services.Violation{Code: services.CodeQuotaExceeded, Args: map[string]any{"Model": "nvidia-l40s", "Region": "hikube", "Max": 0, "Used": 0}}},
		},
		Zones: []gpus.ZoneChoice{
			{ID: "cloudgouv-eu-west-1a", Region: "cloudgouv-eu-west-1", Free: true},
			{ID: "eu-west-2a", Region: "eu-west-2", Because: &services.Violation{Code: services.CodeNoCapacity, Args: map[string]any{"Model": "nvidia-a100-80", "Zone": "eu-west-2a", "Holders": "spare"}}},
		},
		Generations: []string{"v6", "v7"}, Limits: &gpus.Limits{MaxVCores: 35, MaxMemoryMiB: 256 * 1024, Generations: []string{"v6", "v7"}},
		Quota: &gpus.Quota{Used: 0, Max: new(2)},
	}
}

func TestAllocateFormHasTheContractsFields(t *testing.T) {
	doc := webtest.Both(t, gpus.NewView(newGPU()))
	form := doc.Find(`form[method=post][action="/gpus"]`)
	for _, field := range []string{"model", "zone", "name", "generation", "delete_on_vm_deletion", "idempotency_key"} {
		if form.Find(`[name="`+field+`"]`).Length() == 0 {
			t.Errorf("the form has no field %s", field)
		}
	}
	for what, selector := range map[string]string{
		"model kept": `[name=model][value="nvidia-a100-80"][checked]`, "zone kept": `[name=zone][value="cloudgouv-eu-west-1a"][checked]`,
		"impossible model": `[name=model][value="nvidia-l40s"][disabled]`, "impossible zone": `[name=zone][value="eu-west-2a"][disabled]`,
		"generations": `[name=generation] option[value=v6][selected]`, "ticked": `[name=delete_on_vm_deletion][value=true][checked]`,
		"narrows": `[hx-get="/fragments/gpus/new"]`,
	} {
		if form.Find(selector).Length() != 1 {
			t.Errorf("%s: %d elements", what, form.Find(selector).Length())
		}
	}
	text := webtest.Text(doc.Find("main"))
	for _, want := range []string{"Yours there are held by spare", "up to 35 vCores, 256 GiB, v6 or v7", "0 of 2 used", "something of ours"} {
		if !strings.Contains(text, want) {
			t.Errorf("the form does not say %q", want)
		}
	}
	if got := form.Find("[name=name]").AttrOr("value", ""); got != `"quoted"` {
		t.Errorf("the name is %q", got)
	}
}

func TestOneGenerationIsNoQuestion(t *testing.T) {
	n := newGPU()
	n.Generations = []string{"v7"}
	if webtest.Both(t, gpus.NewView(n)).Find("[name=generation]").Length() != 0 {
		t.Error("a choice of one is asked")
	}
}

func TestRefusedAllocationNamesTheFields(t *testing.T) {
	n := newGPU()
	n.Broken = []services.Violation{
		{Code: services.CodeNotOffered, Field: "model", Args: map[string]any{"Model": "nvidia-l40s", "Zone": "eu-west-2a"}},
		{Code: services.CodeTooLong, Field: "name", Args: map[string]any{"Max": 100}},
	}
	doc := webtest.Both(t, gpus.NewView(n))
	if doc.Find(`[data-error="not-offered"][data-field=model]`).Length() != 1 || doc.Find(`#name[aria-invalid=true]`).Length() != 1 {
		t.Error("the fields are not named")
	}
	if got := webtest.Text(doc.Find("#name-error")); got != "This is too long: at most 100 characters." {
		t.Errorf("the field says %q", got)
	}
}
