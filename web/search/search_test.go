package search

import (
	"testing"

	"berth/services"
	"berth/services/catalog"
	"berth/web/webtest"
)

func TestWhatWasFoundLeadsOn(t *testing.T) {
	p := Page{
		Shell: webtest.Shell(), GPUs: []GPU{{ID: "fgpu-1f8a33b2", Name: "one", Model: "nvidia-h100", Zone: "z", State: services.GPUAttached}},
		Machines: []Machine{{ID: "i-5be20f11", Name: "<b>", Type: "u1.2xlarge", Zone: "z", Power: services.PowerRunning}},
		Models:   []Model{{ID: "nvidia-h100", Memory: catalog.Memory{GB: 80, Type: "HBM3"}, Architecture: "Hopper"}}, More: true,
	}
	p.Search = "one & more"
	doc := webtest.Both(t, View(p))
	for _, href := range []string{"/gpus/fgpu-1f8a33b2", "/vms/i-5be20f11", "/catalog/nvidia-h100", "/gpus?q=one+%26+more"} {
		if doc.Find(`#main a[href="`+href+`"]`).Length() != 1 {
			t.Errorf("nothing leads to %s", href)
		}
	}
}

func TestNothingFoundSaysWhatCanBe(t *testing.T) {
	if doc := webtest.Both(t, View(Page{Shell: webtest.Shell()})); doc.Find(".empty").Length() != 1 {
		t.Error("an empty answer says nothing")
	}
}
