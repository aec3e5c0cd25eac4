package operations_test

import (
	"strings"
	"testing"

	"berth/services"
	"berth/web/admin/operations"
	"berth/web/components"
	"berth/web/urls"
	"berth/web/webtest"
)

func row(id services.OperationID, kind services.OperationKind, state services.OperationState) operations.Row {
	return operations.Row{
		Progress: components.Progress{
			ID: id, Kind: kind, State: state, Steps: []string{"boot"}, VM: "i-00000001", VMName: "<b>render", Actor: "alice@lab.test", Now: webtest.Now, Since: webtest.Now,
		},
		Account: "acc-00000001", AccountName: "Alpha", Host: "host-00000001", HostName: "gpu-1", Zone: "z",
	}
}

func list(q urls.ListQuery, rows ...operations.Row) operations.List {
	return operations.List{
		Shell: webtest.Shell(), Listing: components.Listing{Path: urls.AdminOperations, Query: q, Shown: len(rows), Total: len(rows)}, Rows: rows,
		Count: func(state string) int { return len(state) }, Zones: []string{"z"}, Owner: "Alpha",
	}
}

func TestOperationsOfferWhatCanBeDone(t *testing.T) {
	stuck := row("op-00000001", services.OpStart, services.OpStuck)
	stuck.Reason, stuck.Problem = "late", "python3 has <i>the card"
	doc := webtest.Both(t, operations.View(list(urls.ListQuery{},
		stuck, row("op-00000002", services.OpDelete, services.OpStuck), row("op-00000003", services.OpStop, services.OpDone), row("op-00000004", services.OpStart, services.OpFailed))))
	has := func(id, action string) bool {
		return doc.Find(`tr[data-id="`+id+`"] form[action$="/`+action+`"]`).Length() == 1
	}
	for id, want := range map[string][2]bool{ // retry, cancel
		"op-00000001": {true, true}, "op-00000002": {true, false}, "op-00000003": {}, "op-00000004": {true, false},
	} {
		if got := [2]bool{has(id, "retry"), has(id, "cancel")}; got != want {
			t.Errorf("%s offers retry and cancel %v, want %v", id, got, want)
		}
	}
	if text := webtest.Text(doc.Find(`tr[data-id="op-00000001"]`)); !strings.Contains(text, "python3 has <i>the card") {
		t.Errorf("what the host says is missing: %q", text)
	}
	if doc.Find(`tr[data-id="op-00000001"] a[href="/admin/hosts/host-00000001"]`).Length() != 1 || doc.Find("td b, td i").Length() > 0 {
		t.Error("no way to the host, or a text is taken for HTML")
	}
}

func TestEveryStateOfOperationsHasATab(t *testing.T) {
	for _, state := range operations.States {
		doc := webtest.Both(t, operations.View(list(urls.ListQuery{State: state}, row("op-00000001", services.OpStart, services.OpRunning))))
		if state != "" && doc.Find(`[data-state-filter="`+state+`"][aria-current]`).Length() != 1 {
			t.Errorf("%s is not shown as chosen", state)
		}
	}
}
