package hostagent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"berth/services/agentapi"
)

// worker brings one thing to its goal, one step at a time, on its own: what
// blocks it blocks nothing else.
type worker struct {
	id      string // of the VM, or key of the card
	site    *site
	log     *slog.Logger
	changed func() // something to report

	wake chan struct{}

	mu        sync.Mutex
	goal      goal // nil: none of the agent's business any more
	age       int  // grows with each other goal
	revision  int64
	settled   int64 // newest revision that is reached, or blocked
	renewed   bool  // the goal came since the last inspection was asked for
	trouble   *trouble
	interrupt context.CancelFunc // of the step under way
	doing     action

	after    int64  // inspection to wait for; the running goroutine's alone
	lastDone action // step that ended well, to see whether it took effect; likewise
	lastAge  int
}

// trouble is a step that failed, and when to try again.
type trouble struct {
	problem  agentapi.Problem
	tries    int
	revision int64 // that it was last tried for
	next     time.Time
}

// job is the goal as it stood when a step was chosen.
type job struct {
	goal     goal
	age      int
	revision int64
}

func newWorker(id string, s *site, changed func()) *worker {
	return &worker{
		id: id, site: s, changed: changed, wake: make(chan struct{}, 1),
		log: s.opts.Logger.With("host", s.name, "unit", id),
	}
}

// assign sets what is wanted; nil means that the thing is left as it is. The
// same goal with a larger revision gets one try more where it had failed.
func (w *worker) assign(g goal, revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision = revision
	if revision < w.settled { // the console counts anew
		w.settled = 0
	}
	switch {
	case g != nil && w.goal != nil && w.goal.same(g):
		if w.trouble != nil {
			w.trouble.next = time.Time{}
		}
	default:
		w.goal, w.trouble, w.renewed = g, nil, true
		w.age++
		if w.interrupt != nil && (g == nil || g.urgent() || w.doing.interruptible()) {
			w.interrupt()
		}
	}
	w.nudge()
}

func (w *worker) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// hostChanged lets the worker look again.
func (w *worker) hostChanged() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble != nil && foreseen(w.trouble.problem.Code) {
		w.trouble.next = time.Time{}
	}
	w.nudge()
}

// state tells what is wanted, what keeps it from being so, and the newest
// revision that was worked through.
func (w *worker) state() (g goal, problem *agentapi.Problem, settled int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble != nil {
		p := w.trouble.problem
		problem = &p
	}
	return w.goal, problem, w.settled
}

// run works until ctx ends, or until retire agrees that nothing is wanted.
func (w *worker) run(ctx context.Context, retire func() bool) {
	for {
		wait := w.pass(ctx)
		if retire() || !pause(ctx, wait, w.wake) {
			return
		}
	}
}

// pass carries out steps until none is due, and returns after which time to try
// again; 0 means when woken.
func (w *worker) pass(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		j, ok := w.current()
		if !ok {
			return 0
		}
		in, err := w.site.obs.await(ctx, w.after)
		if err != nil {
			return 0
		}
		act := j.goal.next(in)
		switch act {
		case actNone:
			w.settle(j, true)
			return 0
		case actWait:
			return 0
		}
		if wait, held := w.holdOff(j); held {
			return wait
		}
		w.step(ctx, j, act)
		w.after = w.site.obs.request()
	}
	return 0
}

// current takes the goal. What was seen before it was set may be too old.
func (w *worker) current() (job, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.renewed {
		w.renewed = false
		w.after = w.site.obs.request()
	}
	return job{goal: w.goal, age: w.age, revision: w.revision}, w.goal != nil
}

// settle notes that the job's revision is reached (well) or blocked.
func (w *worker) settle(j job, well bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.age != j.age {
		return
	}
	news := w.settled < j.revision
	w.settled = max(w.settled, j.revision)
	if well {
		news = news || w.trouble != nil
		w.trouble, w.lastDone = nil, actNone
	}
	if news {
		w.changed()
	}
}

// holdOff tells whether a failure keeps the next step from being tried, and for
// how long; 0 means until something is changed.
func (w *worker) holdOff(j job) (time.Duration, bool) {
	w.mu.Lock()
	t := w.trouble
	var wait time.Duration
	held := false
	if t != nil && w.age == j.age {
		wait = t.next.Sub(w.site.opts.Now())
		final := t.problem.Final && t.revision == j.revision
		held = final || wait > 0
		if final {
			wait = 0
		}
	}
	w.mu.Unlock()
	if held {
		w.settle(j, false)
	}
	return wait, held
}

// step carries out one step within its time and notes how it ended.
func (w *worker) step(ctx context.Context, j job, act action) {
	timeout := w.site.opts.timeout(act)
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if !w.begin(j, act, cancel) {
		return
	}
	err := w.ineffective(j, act)
	if err == nil {
		w.log.Info("step", "action", string(act), "revision", j.revision)
		err = j.goal.do(bounded, act)
	}
	if ctx.Err() == nil {
		w.end(j, act, err, timeout)
	}
}

// begin keeps the means to break the step off; false: the goal is another already.
func (w *worker) begin(j job, act action, cancel context.CancelFunc) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.age != j.age {
		return false
	}
	w.doing, w.interrupt = act, cancel
	return true
}

// ineffective finds a step that ended well a moment ago and is due again: a
// driver that claims what an inspection does not show must not be driven in circles.
func (w *worker) ineffective(j job, act action) error {
	again := w.lastDone == act && w.lastAge == j.age
	w.lastDone, w.lastAge = actNone, j.age
	if again {
		return fmt.Errorf("%s was carried out and shows no effect", act)
	}
	return nil
}

func (w *worker) end(j job, act action, err error, timeout time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interrupt = nil
	if w.age != j.age {
		return
	}
	if err == nil {
		w.lastDone = act
		if w.trouble != nil {
			w.trouble = nil
			w.changed()
		}
		return
	}
	w.fail(j, problemOf(err, act, timeout))
	w.changed()
}

// fail notes a failed step. What began with the first failure in a row is final
// when it has lasted too long.
func (w *worker) fail(j job, p agentapi.Problem) {
	now := w.site.opts.Now()
	t := w.trouble
	if t == nil {
		t = &trouble{problem: agentapi.Problem{Since: now}}
		w.trouble = t
	}
	p.Since = t.problem.Since
	p.Final = now.Sub(p.Since) >= w.site.opts.GiveUpAfter
	t.tries++
	t.problem, t.revision, t.next = p, j.revision, now.Add(w.site.opts.backoff(t.tries))
	w.log.Warn("step failed", "code", p.Code, "reason", p.Message, "tries", t.tries, "final", p.Final)
}
