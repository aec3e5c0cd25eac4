package libvirt

import (
	"context"
	"errors"
	"fmt"
	"sync"

	rpc "github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket/dialers"
)

// daemon is libvirt as far as the driver uses it.
type daemon interface {
	ConnectListAllDomains(int32, rpc.ConnectListAllDomainsFlags) ([]rpc.Domain, uint32, error)
	DomainLookupByName(string) (rpc.Domain, error)
	DomainGetXMLDesc(rpc.Domain, rpc.DomainXMLFlags) (string, error)
	DomainGetState(rpc.Domain, uint32) (int32, int32, error)
	DomainDefineXMLFlags(string, rpc.DomainDefineFlags) (rpc.Domain, error)
	DomainSetMetadata(rpc.Domain, int32, rpc.OptString, rpc.OptString, rpc.OptString, rpc.DomainModificationImpact) error
	DomainUndefineFlags(rpc.Domain, rpc.DomainUndefineFlagsValues) error
	DomainCreate(rpc.Domain) error
	DomainShutdownFlags(rpc.Domain, rpc.DomainShutdownFlagValues) error
	DomainDestroyFlags(rpc.Domain, rpc.DomainDestroyFlagsValues) error
	DomainReboot(rpc.Domain, rpc.DomainRebootFlagValues) error
	DomainReset(rpc.Domain, uint32) error
	volumes
	LifecycleEvents(context.Context) (<-chan rpc.DomainEventLifecycleMsg, error)
	SubscribeEvents(context.Context, rpc.DomainEventID, rpc.OptDomain) (<-chan any, error)
	Disconnected() <-chan struct{}
	Disconnect() error
}

// dial connects to the daemon at a local socket.
func dial(socket, uri string) (daemon, error) {
	l := rpc.NewWithDialer(dialers.NewLocal(dialers.WithSocket(socket)))
	if err := l.ConnectToURI(rpc.ConnectURI(uri)); err != nil {
		return nil, fmt.Errorf("connect to libvirt at %s: %w", socket, err)
	}
	return l, nil
}

// link is a connection that comes back. Requests of the library take no context
// and last as long as libvirt likes, so each runs by itself and is left behind
// once its caller's time is up.
type link struct {
	dial func() (daemon, error)
	// running bounds the requests that are under way, those left behind among
	// them.
	running chan struct{}

	mu sync.Mutex
	to daemon // nil: not connected
}

const maxRequests = 64

func newLink(dial func() (daemon, error)) *link {
	return &link{dial: dial, running: make(chan struct{}, maxRequests)}
}

// get gives the connection, a new one where the last was lost.
func (l *link) get() (daemon, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != nil {
		select {
		case <-l.to.Disconnected():
			l.to = nil
		default:
			return l.to, nil
		}
	}
	to, err := l.dial()
	if err != nil {
		return nil, err
	}
	l.to = to
	return to, nil
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != nil {
		_ = l.to.Disconnect()
		l.to = nil
	}
}

// ask makes one request and returns when it is answered, or when ctx ends.
func ask[T any](ctx context.Context, l *link, request func(daemon) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	select {
	case l.running <- struct{}{}:
	default:
		return none, fmt.Errorf("libvirt has left %d requests unanswered", maxRequests)
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-l.running }()
		var a answer
		var to daemon
		if to, a.err = l.get(); a.err == nil {
			a.value, a.err = request(to)
		}
		done <- a
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		return none, fmt.Errorf("libvirt has not answered: %w", ctx.Err())
	}
}

// tell is ask where there is nothing to be told.
func tell(ctx context.Context, l *link, request func(daemon) error) error {
	_, err := ask(ctx, l, func(to daemon) (struct{}, error) { return struct{}{}, request(to) })
	return err
}

// is tells whether libvirt answered with that error.
func is(err error, number rpc.ErrorNumber) bool {
	e, ok := errors.AsType[rpc.Error](err)
	return ok && e.Code == uint32(number)
}
