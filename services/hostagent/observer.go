package hostagent

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"time"
)

// observer inspects one host, one inspection at a time, whenever asked and at
// each interval, and shares the result.
type observer struct {
	host    string
	driver  Inspector
	opts    *Options
	log     *slog.Logger
	changed func() // called after an inspection that differs from the last

	kick chan struct{}

	mu        sync.Mutex
	begun     int64 // number of the newest inspection that began
	done      int64 // number of the newest that ended
	last      Inspection
	err       error // of the newest; last is then what was seen before
	published chan struct{}
}

func newObserver(host string, opts *Options, changed func()) *observer {
	return &observer{
		host: host, driver: opts.Driver, opts: opts, changed: changed,
		log:  opts.Logger.With("host", host),
		kick: make(chan struct{}, 1), published: make(chan struct{}),
	}
}

// run inspects until ctx ends. After a failure the next inspection comes sooner
// than the interval.
func (o *observer) run(ctx context.Context) {
	failures := 0
	for {
		wait := o.opts.Interval
		if o.inspect(ctx) {
			failures = 0
		} else {
			failures++
			wait = min(wait, o.opts.backoff(failures))
		}
		if !pause(ctx, wait, o.kick) {
			return
		}
	}
}

func (o *observer) inspect(ctx context.Context) bool {
	o.mu.Lock()
	o.begun++
	number := o.begun
	o.mu.Unlock()

	bounded, cancel := context.WithTimeout(ctx, o.opts.InspectTimeout)
	defer cancel()
	in, err := o.driver.Inspect(bounded, o.host)
	if ctx.Err() != nil {
		return true
	}
	if o.publish(number, in, err) {
		o.changed()
	}
	return err == nil
}

// publish keeps the result, wakes those who wait for it, and tells whether it
// differs from the one before.
func (o *observer) publish(number int64, in Inspection, err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	differs := o.done == 0 || (err == nil) != (o.err == nil)
	if err == nil {
		differs = differs || !reflect.DeepEqual(in, o.last)
		o.last = in
	} else if differs {
		o.log.Warn("inspection failed", "error", err)
	}
	o.done, o.err = number, err
	close(o.published)
	o.published = make(chan struct{})
	return differs
}

// poke asks for an inspection soon.
func (o *observer) poke() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// request asks for an inspection that begins after this call and returns its
// number, to wait for.
func (o *observer) request() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.poke()
	return o.begun + 1
}

// await returns the newest inspection once the one with that number is done. It
// returns an error where the newest failed, or ctx ended.
func (o *observer) await(ctx context.Context, number int64) (Inspection, error) {
	for {
		o.mu.Lock()
		in, err, done, published := o.last, o.err, o.done, o.published
		o.mu.Unlock()
		if done >= number && done > 0 {
			return in, err
		}
		select {
		case <-ctx.Done():
			return Inspection{}, context.Cause(ctx)
		case <-published:
		}
	}
}

// latest returns the newest inspection, and false where it failed or there is
// none yet.
func (o *observer) latest() (Inspection, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last, o.done > 0 && o.err == nil
}

// pause waits for the time to pass or for a wake-up (nil: there is none); false
// means that ctx ended. A time of 0 never passes.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	var passed <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-passed:
	case <-wake:
	}
	return ctx.Err() == nil
}
