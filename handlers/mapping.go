package handlers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"berth/services"
	"berth/services/agentapi"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/web/components"
	"berth/web/gpus"
)

// pageRows is the length of a page of a list.
const pageRows = 50

// happenings make events ready to be shown.
func happenings(events []compute.Event) ([]components.Happening, error) {
	all := make([]components.Happening, 0, len(events))
	for _, e := range events {
		h := components.Happening{
			ID: e.ID, At: e.At, Kind: e.Kind, Actor: e.Actor, GPU: e.GPU, GPUName: e.GPUName, VM: e.VM, VMName: e.VMName,
			From: e.From, To: e.To, RequestID: e.RequestID,
		}
		if err := json.Unmarshal(e.Data, &h.Args); err != nil {
			return nil, fmt.Errorf("decode data of event %d: %w", e.ID, err)
		}
		all = append(all, h)
	}
	return all, nil
}

// progress makes an operation ready to be shown; nil for none.
func (s *site) progress(op *compute.Operation) *components.Progress {
	if op == nil {
		return nil
	}
	p := components.Progress{
		ID: op.ID, Kind: op.Kind, State: op.State, At: op.Step, Reason: op.Reason, Detail: op.Detail, Actor: op.Actor,
		Since: op.CreatedAt, Deadline: op.Deadline, Now: s.Now(), VM: op.VM, VMName: op.VMName,
	}
	for _, step := range compute.Steps(op.Kind) {
		p.Steps = append(p.Steps, string(step))
	}
	if op.State == services.OpDone {
		p.At = len(p.Steps)
	}
	return &p
}

func problemOf(p *agentapi.Problem) *gpus.Problem {
	if p == nil {
		return nil
	}
	return &gpus.Problem{Message: p.Message, Holder: p.Holder, PID: p.PID, Since: p.Since, Final: p.Final}
}

func limitsOf(o catalog.Offer) gpus.Limits {
	return gpus.Limits{MaxVCores: o.MaxVCores, MaxMemoryMiB: o.MaxMemoryMiB, Generations: o.Generations, HourlyPrice: o.HourlyPrice}
}

// quotaOf finds the quota of a model in a region. Where none was set nothing
// is allowed.
func quotaOf(uses []compute.QuotaUse, region, model string) *gpus.Quota {
	for _, q := range uses {
		if q.Region == region && q.Model == model {
			return &gpus.Quota{Region: q.Region, Model: q.Model, Used: q.Used, Max: q.Max}
		}
	}
	return &gpus.Quota{Region: region, Model: model, Max: new(int)}
}

// quotasIn lists the quotas of a region (empty: of all).
func quotasIn(uses []compute.QuotaUse, region string) []gpus.Quota {
	var quotas []gpus.Quota
	for _, q := range uses {
		if region == "" || q.Region == region {
			quotas = append(quotas, gpus.Quota{Region: q.Region, Model: q.Model, Used: q.Used, Max: q.Max})
		}
	}
	return quotas
}

// zonesIn names the zones of a region (empty: of all).
func zonesIn(zones []compute.Zone, region string) []string {
	var names []string
	for _, z := range zones {
		if region == "" || z.Region == region {
			names = append(names, z.ID)
		}
	}
	return names
}

// sorted lists the columns that a list may be sorted by; not each has all.
var sorted = []string{"name", "created", "state", "model", "zone", "power", "type", "serial"}

// order is a query's sort, a column or a column with a minus before it; empty,
// the list's own order, for anything unknown.
func order(sort string) string {
	if slices.Contains(sorted, strings.TrimPrefix(sort, "-")) {
		return sort
	}
	return ""
}

// after reads a page's key; anything else leads to the first page.
func after[T services.ID](text string) T {
	id, err := services.ParseID[T](text)
	if err != nil {
		return ""
	}
	return id
}

// modelOf finds a model; zero where the catalogue has it no more.
func modelOf(models []catalog.Model, id string) catalog.Model {
	i := slices.IndexFunc(models, func(m catalog.Model) bool { return m.ID == id })
	if i < 0 {
		return catalog.Model{}
	}
	return models[i]
}

// answer ends a write. One that was made leads on; where it was refused, the
// form is shown again with the status and the broken rules.
func (r *request) answer(err error, to string, refused func(status int, broken []services.Violation) error) error {
	if err == nil {
		return r.seeOther(to)
	}
	status, broken, ok := refusal(err)
	if !ok {
		return err
	}
	return refused(status, broken)
}

// refusal gives what a form says where its write was refused: the status and the
// broken rules. ok is false where the error is none that a form can help with.
func refusal(err error) (status int, broken []services.Violation, ok bool) {
	e, is := services.AsError(err)
	if !is {
		return 0, nil, false
	}
	switch e.Kind {
	case services.KindInvalid, services.KindConflict, services.KindCapacity:
		return statusOf(e.Kind), e.Violations, true
	}
	return 0, nil, false
}
