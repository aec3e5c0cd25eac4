package hostagent

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"time"
)

// Options say how an agent works. The first four are needed; zero values of the
// others stand for what their comments say.
type Options struct {
	Console  string // base URL of the console's agent listener, https
	Token    string // enrols the agent; not needed once it has a certificate
	StateDir string // a folder of this agent alone, made where it is missing
	Driver   Driver

	Version string           // shown in the console; "dev"
	Logger  *slog.Logger     // slog.Default()
	Now     func() time.Time // time.Now
	Jitter  func() float64   // [0,1), spreads retries; math/rand

	Interval time.Duration // between heartbeats and between inspections without cause; 10 s
	Coalesce time.Duration // changes within it go into one report; 20 ms
	Wait     time.Duration // of a long poll; 30 s

	RequestTimeout time.Duration // of a request to the console, beyond Wait; 10 s
	InspectTimeout time.Duration // of one inspection; 10 s
	BindTimeout    time.Duration // of giving a VM its cards; 30 s
	StepTimeout    time.Duration // of any other step; 2 min
	CleanTimeout   time.Duration // of cleaning a card; 10 min
	ShutdownGrace  time.Duration // for a guest to shut down before it is turned off; 60 s

	RetryMin     time.Duration // before the first retry; 500 ms, doubled each time
	RetryMax     time.Duration // 30 s
	GiveUpAfter  time.Duration // a problem becomes final; 5 min
	RevokedRetry time.Duration // how often a revoked agent asks again; 1 min
}

// withDefaults checks o and fills in what is left out.
func (o Options) withDefaults() (Options, error) {
	if o.Driver == nil || o.StateDir == "" {
		return o, errors.New("agent options: driver and state folder are needed")
	}
	u, err := url.Parse(o.Console)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return o, fmt.Errorf("agent options: console %q is no https URL", o.Console)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	o.fillDurations()
	return o, nil
}

func (o *Options) fillDurations() {
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{
		{&o.Interval, 10 * time.Second},
		{&o.Coalesce, 20 * time.Millisecond},
		{&o.Wait, 30 * time.Second},
		{&o.RequestTimeout, 10 * time.Second},
		{&o.InspectTimeout, 10 * time.Second},
		{&o.BindTimeout, 30 * time.Second},
		{&o.StepTimeout, 2 * time.Minute},
		{&o.CleanTimeout, 10 * time.Minute},
		{&o.ShutdownGrace, time.Minute},
		{&o.RetryMin, 500 * time.Millisecond},
		{&o.RetryMax, 30 * time.Second},
		{&o.GiveUpAfter, 5 * time.Minute},
		{&o.RevokedRetry, time.Minute},
	} {
		if *d.at <= 0 {
			*d.at = d.value
		}
	}
}

// backoff is how long to wait after the given number of failures in a row:
// doubled each time, capped, and spread over its upper half.
func (o *Options) backoff(failures int) time.Duration {
	wait := o.RetryMax
	if shift := failures - 1; shift < 16 {
		wait = min(wait, o.RetryMin<<max(shift, 0))
	}
	return wait/2 + time.Duration(o.Jitter()*float64(wait/2))
}

// timeout bounds one step.
func (o *Options) timeout(act action) time.Duration {
	switch act {
	case actApply, actDefine:
		return o.BindTimeout
	case actClean:
		return o.CleanTimeout
	case actStop:
		return o.ShutdownGrace + o.StepTimeout
	default:
		return o.StepTimeout
	}
}
