package hostagent

import (
	"context"
	"maps"
	"slices"
	"time"

	"berth/services/agentapi"
)

// report tells the console what is seen: soon after each change, and at each
// interval as a sign of life.
func (a *Agent) report(ctx context.Context, epoch int64) {
	r := &reporter{agent: a, epoch: epoch}
	failures, wait := 0, a.opts.Interval
	for {
		wake := a.news
		if failures > 0 {
			wake = nil // a console in trouble is not told more often because much changes
		}
		if !pause(ctx, wait, wake) || !pause(ctx, a.opts.Coalesce, nil) {
			return
		}
		select {
		case <-a.news:
		default:
		}
		err := r.send(ctx)
		if ctx.Err() != nil {
			return
		}
		failures, wait = failures+1, a.opts.Interval
		if err != nil {
			wait = a.afterFailure("report", err, failures)
		} else {
			failures = 0
		}
	}
}

// reporter numbers the reports.
type reporter struct {
	agent    *Agent
	epoch    int64
	sequence int64
}

// send reports once, and once more with a larger epoch where the console holds
// a newer one of this agent.
func (r *reporter) send(ctx context.Context) error {
	for range 2 {
		answer, err := r.sendOnce(ctx)
		if err != nil {
			return err
		}
		if answer.Accepted {
			return nil
		}
		r.agent.log.Warn("report not taken", "reason", answer.Reason, "epoch", r.epoch, "sequence", r.sequence)
		if answer.Reason != agentapi.ReasonStale {
			return nil
		}
		least := max(r.agent.opts.Now().UnixNano(), answer.Epoch+1)
		if r.epoch, err = r.agent.store.nextEpoch(least); err != nil {
			return err
		}
		r.sequence = 0
	}
	return nil
}

func (r *reporter) sendOnce(ctx context.Context) (agentapi.ReportAnswer, error) {
	r.sequence++
	// The revision is read before what is seen, which can only be newer.
	report := agentapi.Report{Epoch: r.epoch, Sequence: r.sequence, Revision: r.agent.conv.reachedRevision()}
	report.Hosts, report.Partial = r.agent.observed()
	began := time.Now()
	answer, err := r.agent.client.report(ctx, report)
	r.agent.log.Debug("report", "sequence", r.sequence, "revision", report.Revision,
		"partial", report.Partial, "duration", time.Since(began), "error", err)
	return answer, err
}

// observed gathers what is known of each host now. A host that could not be
// looked at is left out, and the report is partial.
func (a *Agent) observed() (hosts []agentapi.HostReport, partial bool) {
	hosts = make([]agentapi.HostReport, 0, len(a.sites))
	for _, name := range slices.Sorted(maps.Keys(a.sites)) {
		in, ok := a.sites[name].obs.latest()
		if !ok {
			partial = true
			continue
		}
		in.Host.Cards = slices.Clone(in.Host.Cards)
		in.Host.VMs = slices.Clone(in.Host.VMs)
		a.conv.annotate(&in)
		partial = partial || in.Partial
		hosts = append(hosts, in.Host)
	}
	return hosts, partial
}
