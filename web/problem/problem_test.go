package problem

import (
	"testing"

	"berth/services"
	"berth/web/webtest"
)

func TestEveryStatusHasWordsAndAWayOut(t *testing.T) {
	shell := webtest.Shell()
	for _, status := range []int{400, 403, 404, 405, 409, 413, 415, 418, 422, 429, 500, 502, 503} {
		for _, p := range []Page{
			{Frame: webtest.Frame(), Status: status, RequestID: "abc123"},
			{Frame: webtest.Frame(), Shell: &shell, Status: status, RequestID: "abc123"},
		} {
			doc := webtest.Both(t, View(p))
			if doc.Find("#main h1").Length() != 1 || doc.Find(`#main a[href="/"]`).Length() == 0 {
				t.Errorf("%d has no heading or no way out", status)
			}
			if n := doc.Find(`#main .problem-request [data-copy="abc123"]`).Length(); n != 1 {
				t.Errorf("%d names the request %d times, want once", status, n)
			}
		}
	}
}

func TestBrokenRulesAreListed(t *testing.T) {
	p := Page{Frame: webtest.Frame(), Status: 422, Broken: []services.Violation{
		{Code: services.CodeInvalidValue, Args: map[string]any{"Value": "<b>"}}, {Code: services.CodeNotFound},
	}}
	doc := webtest.Both(t, View(p))
	if n := doc.Find("[data-error]").Length(); n != 1 {
		t.Errorf("%d rules are listed, want 1: the page itself says the other", n)
	}
}
