package hostagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"berth/services/agentapi"
)

// Agent is the program of one or more hosts.
type Agent struct {
	opts   Options
	log    *slog.Logger
	store  *store
	client *client
	news   chan struct{} // something to report

	sites     map[string]*site
	conv      *converger
	restartAt atomic.Bool // the next poll asks for the desired state from the start

	grumbleMu sync.Mutex
	grumbled  time.Time // when it was last logged that the agent is revoked
}

// New checks the options and opens the state folder. It contacts nobody.
func New(opts Options) (*Agent, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	st, err := openStore(opts.StateDir)
	if err != nil {
		return nil, err
	}
	return &Agent{
		opts: opts, log: opts.Logger, store: st, client: newClient(&opts),
		news: make(chan struct{}, 1),
	}, nil
}

// Run enrols where that is needed and works until ctx ends; then it returns
// nil, with every goroutine of the agent gone and the VMs as they are. It
// returns an error where trying again can't help: ErrToken, ErrPin, or a state
// folder that can't be used.
func (a *Agent) Run(ctx context.Context) error {
	defer a.client.close()
	id, err := a.identity(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	a.client.use(id)
	epoch, err := a.store.nextEpoch(a.opts.Now().UnixNano())
	if err != nil {
		return err
	}
	names, err := a.hosts(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	a.serve(ctx, names, id, epoch)
	return nil
}

// unlessEnded keeps err for an agent that was not told to end.
func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// serve runs everything until ctx ends and waits for it.
func (a *Agent) serve(ctx context.Context, names []string, id *identity, epoch int64) {
	a.sites = make(map[string]*site, len(names))
	for _, name := range names {
		obs := newObserver(name, &a.opts, func() { a.hostChanged(name) })
		a.sites[name] = &site{name: name, driver: a.opts.Driver, obs: obs, opts: &a.opts}
	}
	a.conv = newConverger(ctx, a.sites, a.log, a.changed)

	var wg sync.WaitGroup
	for _, s := range a.sites {
		wg.Go(func() { s.obs.run(ctx) })
	}
	wg.Go(func() { a.watchDriver(ctx) })
	wg.Go(func() { a.report(ctx, epoch) })
	wg.Go(func() { a.poll(ctx) })
	wg.Go(func() { a.renew(ctx, id) })
	wg.Wait()
	a.conv.wg.Wait()
}

// changed asks for a report.
func (a *Agent) changed() {
	select {
	case a.news <- struct{}{}:
	default:
	}
}

func (a *Agent) hostChanged(host string) {
	a.changed()
	a.conv.hostChanged(host)
}

func (a *Agent) watchDriver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.opts.Driver.Changes():
			for _, s := range a.sites {
				s.obs.poke()
			}
		}
	}
}

// hosts asks the driver, again and again until it answers.
func (a *Agent) hosts(ctx context.Context) ([]string, error) {
	for failures := 1; ; failures++ {
		bounded, cancel := context.WithTimeout(ctx, a.opts.InspectTimeout)
		names, err := a.opts.Driver.Hosts(bounded)
		cancel()
		if err == nil {
			return names, nil
		}
		a.log.Warn("driver does not list its hosts", "error", err)
		if !pause(ctx, a.opts.backoff(failures), nil) {
			return nil, ctx.Err()
		}
	}
}

// poll follows the desired state. A state that can't be read or understood
// changes nothing.
func (a *Agent) poll(ctx context.Context) {
	since, failures := int64(0), 0
	for ctx.Err() == nil {
		if a.restartAt.Swap(false) {
			since = 0
		}
		began := time.Now()
		d, err := a.client.desired(ctx, since)
		if err == nil && d != nil {
			err = checkDesired(*d)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			if refusedWith(err, agentapi.RefusalRevisionUnknown) {
				since = 0
			}
			pause(ctx, a.afterFailure("desired state", err, failures), nil)
		case d != nil:
			failures, since = 0, d.Revision
			a.log.Info("desired state", "revision", d.Revision)
			a.conv.apply(*d)
		default:
			failures = 0
			if time.Since(began) < a.opts.RetryMin { // a console that does not wait is not asked in circles
				pause(ctx, a.opts.RetryMin, nil)
			}
		}
	}
}

// afterFailure logs a failed request and says how long to wait. An agent that
// was revoked lets go of everything and asks seldom.
func (a *Agent) afterFailure(doing string, err error, failures int) time.Duration {
	if !refusedWith(err, agentapi.RefusalRevoked) {
		a.log.Warn("request failed", "request", doing, "error", err, "failures", failures)
		return a.opts.backoff(failures)
	}
	a.conv.abandon()
	a.restartAt.Store(true)
	a.grumbleMu.Lock()
	defer a.grumbleMu.Unlock()
	if now := a.opts.Now(); a.grumbled.IsZero() || now.Sub(a.grumbled) >= time.Minute {
		a.grumbled = now
		a.log.Error("the console revoked this agent; it touches nothing until it is admitted again", "error", err)
	}
	return a.opts.RevokedRetry
}

// identity loads the agent's certificate, or enrols. A certificate that has run
// out is replaced by enrolling again, where there is a token.
func (a *Agent) identity(ctx context.Context) (*identity, error) {
	id, err := a.store.identity()
	if err != nil {
		return nil, err
	}
	if id != nil && (a.opts.Token == "" || a.opts.Now().Before(id.leaf.NotAfter)) {
		return id, nil
	}
	if a.opts.Token == "" {
		return nil, fmt.Errorf("%w: there is no certificate in the state folder and no token to get one", ErrToken)
	}
	return a.enrol(ctx)
}

func (a *Agent) enrol(ctx context.Context) (*identity, error) {
	pin, err := pinOf(a.opts.Token)
	if err != nil {
		return nil, err
	}
	for failures := 1; ; failures++ {
		id, err := a.enrolOnce(ctx, pin)
		switch {
		case err == nil:
			return id, nil
		case errors.Is(err, ErrPin):
			return nil, err
		case refusedForGood(err):
			return nil, fmt.Errorf("%w: %w", ErrToken, err)
		}
		a.log.Warn("enrolment failed", "error", err, "failures", failures)
		if !pause(ctx, a.opts.backoff(failures), nil) {
			return nil, ctx.Err()
		}
	}
}

func (a *Agent) enrolOnce(ctx context.Context, pin fingerprint) (*identity, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	csr, err := signingRequest(key)
	if err != nil {
		return nil, err
	}
	answer, err := a.client.enrol(ctx, a.opts.Token, csr, pin)
	if err != nil {
		return nil, err
	}
	id, err := newIdentity(key, answer, a.opts.Now())
	if err != nil {
		return nil, err
	}
	a.log.Info("enrolled", "agent_id", answer.AgentID, "expires_at", answer.ExpiresAt)
	return id, a.store.keepIdentity(id)
}

// renew replaces the certificate when a third of its life is left.
func (a *Agent) renew(ctx context.Context, id *identity) {
	for failures := 0; ; {
		wait := max(id.renewAt().Sub(a.opts.Now()), time.Millisecond)
		if failures > 0 {
			wait = a.opts.backoff(failures)
		}
		if !pause(ctx, wait, nil) {
			return
		}
		next, err := a.renewOnce(ctx)
		if err != nil {
			failures++
			if ctx.Err() == nil {
				a.log.Warn("certificate not renewed", "error", err, "expires_at", id.leaf.NotAfter)
			}
			continue
		}
		id, failures = next, 0
		a.client.use(id)
		a.log.Info("certificate renewed", "expires_at", id.leaf.NotAfter)
	}
}

func (a *Agent) renewOnce(ctx context.Context) (*identity, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	csr, err := signingRequest(key)
	if err != nil {
		return nil, err
	}
	answer, err := a.client.renew(ctx, csr)
	if err != nil {
		return nil, err
	}
	id, err := newIdentity(key, answer, a.opts.Now())
	if err != nil {
		return nil, err
	}
	return id, a.store.keepIdentity(id)
}
