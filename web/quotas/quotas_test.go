package quotas_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/web/quotas"
	"berth/web/webtest"
)

// F4: 0 never reads as unlimited, nor the other way round.
func TestALimitReadsAsWhatItIs(t *testing.T) {
	tests := []struct {
		max         *int
		used        int
		text, state string
	}{
		{new(0), 0, "0", "none"}, {new(0), 2, "0", "full"}, {new(5), 4, "5", "open"}, {new(5), 5, "5", "full"}, {new(5), 9, "5", "full"},
		{nil, 9, "unlimited", "unlimited"}, {new(12345), 0, "12,345", "open"},
	}
	for _, tt := range tests {
		row := quotas.Quota{Account: "acc-00000001", Region: "r", Item: "nvidia-l40", Max: tt.max, Used: tt.used, Pending: 1}
		doc := webtest.Both(t, quotas.View(quotas.Page{Shell: webtest.Shell(), Rows: []quotas.Quota{row}}))
		tr := doc.Find(`tr[data-account="acc-00000001"][data-model="nvidia-l40"]`)
		got := []string{webtest.Text(tr.Find("[data-limit]")), tr.AttrOr("data-state", ""), webtest.Text(tr.Find("[data-pending]"))}
		if diff := cmp.Diff([]string{tt.text, tt.state, "1"}, got); diff != "" {
			t.Errorf("%+v: %s", tt, diff)
		}
		if tr.Find("svg.meter").Length() != 0 != (tt.max != nil) {
			t.Errorf("%+v: %d bars", tt, tr.Find("svg.meter").Length())
		}
		if doc.Find(`a[href^="/admin"]`).Length() > 0 {
			t.Error("a tenant is led to the operator's pages")
		}
	}
}

func TestAnAccountWithoutQuotasIsToldWhatThatMeans(t *testing.T) {
	doc := webtest.Both(t, quotas.View(quotas.Page{Shell: webtest.Shell()}))
	if doc.Find(".empty").Length() != 1 || doc.Find("table").Length() != 0 {
		t.Error("there is a table of nothing")
	}
}
