package libvirt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	rpc "github.com/digitalocean/go-libvirt"

	"berth/services/hostagent/discovery"
	"berth/services/hostagent/passthrough"
)

// Options say what a driver works with. The first four are needed.
type Options struct {
	Host   string // the machine's name in reports
	Look   *discovery.Host
	Binder *passthrough.Binder
	Orders string // file that keeps which cleaning orders were carried out
	Config Config

	// RebootGrace is how long a guest may take to begin a restart before it is
	// reset; 30 s.
	RebootGrace time.Duration
	Logger      *slog.Logger // slog.Default()

	dial func() (daemon, error)
}

// Driver serves the machine that it runs on. It implements hostagent.Driver.
type Driver struct {
	host   string
	look   *discovery.Host
	binder *passthrough.Binder
	conf   Config
	link   *link
	store  store
	orders *orders
	log    *slog.Logger

	rebootGrace time.Duration

	changes chan struct{}
	looking chan struct{} // holds the one look at the machine that may be under way
	noting  chan struct{} // holds the one change of a definition that may be under way
	end     context.CancelFunc
	ended   sync.WaitGroup

	mu      sync.Mutex
	claims  map[string]string // card key → who is about to do something with it
	reboots map[string]uint64 // reboots that were seen, by VM
	forced  map[string]int    // reboots of the console's that are under way, by VM
	turned  chan struct{}     // closed at the next event
}

// New starts to serve. Libvirt need not answer yet.
func New(opt Options) (*Driver, error) {
	conf, err := opt.Config.WithDefaults()
	if err != nil {
		return nil, err
	}
	if opt.Host == "" || opt.Look == nil || opt.Binder == nil || opt.Orders == "" {
		return nil, errors.New("libvirt driver: host, look, binder and orders are needed")
	}
	kept, err := loadOrders(opt.Orders)
	if err != nil {
		return nil, err
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	if opt.RebootGrace <= 0 {
		opt.RebootGrace = 30 * time.Second
	}
	if opt.dial == nil {
		opt.dial = func() (daemon, error) { return dial(conf.Socket, conf.URI) }
	}
	link := newLink(opt.dial)
	ctx, end := context.WithCancel(context.Background())
	d := &Driver{
		host: opt.Host, look: opt.Look, binder: opt.Binder, conf: conf, link: link, orders: kept, log: opt.Logger, rebootGrace: opt.RebootGrace,
		store:   store{link: link, pool: conf.Pool, size: uint64(conf.DiskGiB) << 30}, //nolint:gosec // checked not to be negative
		changes: make(chan struct{}, 1), looking: make(chan struct{}, 1), noting: make(chan struct{}, 1), end: end,
		claims: make(map[string]string), reboots: make(map[string]uint64), forced: make(map[string]int), turned: make(chan struct{}),
	}
	d.ended.Go(func() { d.watch(ctx) })
	d.ended.Go(func() { d.tidyUp(ctx) })
	return d, nil
}

// Close ends the driver's own work. VMs and cards stay as they are.
func (d *Driver) Close() error {
	d.end()
	d.link.close()
	d.ended.Wait()
	return nil
}

// Name is the driver's word in reports.
func (*Driver) Name() string { return "libvirt" }

// Hosts is this machine.
func (d *Driver) Hosts(context.Context) ([]string, error) { return []string{d.host}, nil }

// Changes delivers after each event of libvirt, and after each step.
func (d *Driver) Changes() <-chan struct{} { return d.changes }

// turn says that something changed, to the agent and to whoever waits here.
func (d *Driver) turn() {
	d.mu.Lock()
	close(d.turned)
	d.turned = make(chan struct{})
	d.mu.Unlock()
	select {
	case d.changes <- struct{}{}:
	default:
	}
}

// next is closed at the next event.
func (d *Driver) next() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.turned
}

// begin checks what every step begins with.
func (d *Driver) begin(ctx context.Context, host string) error {
	if host != d.host {
		return fmt.Errorf("this agent serves %s, not %q", d.host, host)
	}
	return ctx.Err()
}

// find looks a VM up; nil: there is none.
func (d *Driver) find(ctx context.Context, vm string) (*domain, error) {
	ref, err := ask(ctx, d.link, func(to daemon) (rpc.Domain, error) { return to.DomainLookupByName(vm) })
	if is(err, rpc.ErrNoDomain) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for VM %s: %w", vm, err)
	}
	return d.read(ctx, ref)
}

// own is a VM of the console's; nil: there is none. One of the same name that
// somebody else made is an error.
func (d *Driver) own(ctx context.Context, vm string) (*domain, error) {
	dom, err := d.find(ctx, vm)
	if err == nil && dom != nil && dom.note == nil {
		return nil, fmt.Errorf("domain %s on this host is not Berth's", vm)
	}
	return dom, err
}

// domains lists all, those of others among them.
func (d *Driver) domains(ctx context.Context) ([]*domain, error) {
	refs, err := ask(ctx, d.link, func(to daemon) ([]rpc.Domain, error) {
		refs, _, err := to.ConnectListAllDomains(1, 0)
		return refs, err
	})
	if err != nil {
		return nil, fmt.Errorf("list the domains: %w", err)
	}
	var out []*domain
	for _, ref := range refs {
		dom, err := d.read(ctx, ref)
		if err != nil {
			return nil, err
		}
		if dom != nil {
			out = append(out, dom)
		}
	}
	return out, nil
}

// found looks at the machine, and returns when ctx ends though the kernel does
// not answer.
func (d *Driver) found(ctx context.Context) (discovery.Found, error) {
	type answer struct {
		found discovery.Found
		err   error
	}
	select {
	case d.looking <- struct{}{}:
	case <-ctx.Done():
		return discovery.Found{}, fmt.Errorf("an earlier look at the host has not ended: %w", ctx.Err())
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-d.looking }()
		f, err := d.look.Look(ctx)
		done <- answer{f, err}
	}()
	select {
	case a := <-done:
		return a.found, a.err
	case <-ctx.Done():
		return discovery.Found{}, fmt.Errorf("look at the host: %w", ctx.Err())
	}
}

// put makes a definition the persistent one.
func (d *Driver) put(ctx context.Context, dom *domain) error {
	done, err := d.exclusively(ctx)
	if err != nil {
		return err
	}
	defer done()
	raw, err := dom.encode()
	if err != nil {
		return err
	}
	dom.ref, err = ask(ctx, d.link, func(to daemon) (rpc.Domain, error) { return to.DomainDefineXMLFlags(raw, rpc.DomainDefineValidate) })
	if err != nil {
		return fmt.Errorf("define %s: %w", dom.def.Name, err)
	}
	return nil
}

// amend changes what is kept of a VM and nothing else, whether it runs or not.
func (d *Driver) amend(ctx context.Context, vm string, change func(*note)) error {
	done, err := d.exclusively(ctx)
	if err != nil {
		return err
	}
	defer done()
	dom, err := d.own(ctx, vm)
	if err != nil {
		return err
	}
	if dom == nil {
		return fmt.Errorf("VM %s has gone", vm)
	}
	change(dom.note)
	return d.keep(ctx, dom)
}

func (d *Driver) keep(ctx context.Context, dom *domain) error {
	raw, err := dom.note.bare()
	if err != nil {
		return err
	}
	err = tell(ctx, d.link, func(to daemon) error {
		return to.DomainSetMetadata(dom.ref, int32(rpc.DomainMetadataElement),
			rpc.OptString{raw}, rpc.OptString{prefix}, rpc.OptString{namespace}, rpc.DomainAffectConfig)
	})
	if err != nil {
		return fmt.Errorf("keep what is known of %s: %w", dom.def.Name, err)
	}
	return nil
}

// exclusively waits until no other change of a definition is under way.
func (d *Driver) exclusively(ctx context.Context) (done func(), err error) {
	select {
	case d.noting <- struct{}{}:
		return func() { <-d.noting }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
