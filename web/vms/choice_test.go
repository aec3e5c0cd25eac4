package vms_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/services/catalog"
	"berth/web/vms"
)

func TestTypeIsReadByEachWay(t *testing.T) {
	tests := []struct {
		name   string
		fields []string
		want   vms.TypeChoice
		is     string // its name
	}{
		{
			"nothing yet: the fallback", nil,
			vms.TypeChoice{By: vms.ByParts, Text: "tinav7.c24r192p1", Generation: "v7", VCores: "24", Memory: "192", Performance: catalog.Highest}, "tinav7.c24r192p1",
		},
		{
			"a script's type", []string{"type", "tinav6.c8r32", "performance", "medium"},
			vms.TypeChoice{By: vms.ByParts, Text: "tinav6.c8r32p3", Generation: "v6", VCores: "8", Memory: "32", Performance: catalog.Medium}, "tinav6.c8r32p3",
		},
		{
			"a script's named type", []string{"type", "u1.2xlarge"},
			vms.TypeChoice{By: vms.ByName, Text: "u1.2xlarge", Named: "u1.2xlarge", VCores: "8", Memory: "32", Performance: catalog.Highest}, "u1.2xlarge",
		},
		{
			"no type at all stays as it is", []string{"type", "tinav7.c0"},
			vms.TypeChoice{By: vms.ByText, Text: "tinav7.c0"}, "tinav7.c0",
		},
		{
			"parts win over what else is posted",
			[]string{"by", "parts", "type", "u1.2xlarge", "named", "inf.2h", "generation", "v7", "vcores", " 36 ", "memory", "256", "performance", "high"},
			vms.TypeChoice{By: vms.ByParts, Text: "tinav7.c36r256p2", Named: "inf.2h", Generation: "v7", VCores: "36", Memory: "256", Performance: catalog.High}, "tinav7.c36r256p2",
		},
		{
			"unfinished parts are kept",
			[]string{"by", "parts", "type", "u1.2xlarge", "generation", "v7", "vcores", "3x", "performance", "highest"},
			vms.TypeChoice{By: vms.ByParts, Text: "u1.2xlarge", Generation: "v7", VCores: "3x", Performance: catalog.Highest}, "tinav7.c3xrp1",
		},
		{
			"a named one shows by its parts too", []string{"by", "name", "named", "inf.2h", "generation", "v6", "vcores", "1", "memory", "1", "performance", "high"},
			vms.TypeChoice{By: vms.ByName, Text: "inf.2h", Named: "inf.2h", Generation: "v7", VCores: "32", Memory: "256", Performance: catalog.Highest}, "inf.2h",
		},
		{
			"text is kept as typed", []string{"by", "text", "type", "tinav7.c8r32", "performance", "highest"},
			vms.TypeChoice{By: vms.ByText, Text: "tinav7.c8r32", Generation: "v7", VCores: "8", Memory: "32", Performance: catalog.Highest}, "tinav7.c8r32",
		},
		{
			"another way than ours is none", []string{"by", "magic", "type", "u1.2xlarge"},
			vms.TypeChoice{By: vms.ByName, Text: "u1.2xlarge", Named: "u1.2xlarge", VCores: "8", Memory: "32", Performance: catalog.Highest}, "u1.2xlarge",
		},
	}
	for _, tt := range tests {
		got := vms.ReadType(fields(tt.fields...), named, "tinav7.c24r192p1")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if got.Name() != tt.is {
			t.Errorf("%s: its name is %q, want %q", tt.name, got.Name(), tt.is)
		}
	}
}

func TestFormBeginsWithTheNewestGeneration(t *testing.T) {
	if got := vms.Starting([]string{"v6", "v7"}); got != "tinav7.c8r32p1" {
		t.Errorf("it begins with %q", got)
	}
	if got := vms.Starting(nil); got != "" {
		t.Errorf("without generations it begins with %q", got)
	}
}
