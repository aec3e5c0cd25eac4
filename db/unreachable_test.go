package db_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"berth/db"
	"berth/db/dbtest"
	"berth/services"
)

// wire is a way to a server that a test can cut.
type wire struct {
	listener net.Listener
	mu       sync.Mutex
	open     []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l}
	t.Cleanup(w.cut)
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			w.mu.Lock()
			w.open = append(w.open, near, far)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(far, near) }()
			go func() { _, _ = io.Copy(near, far) }()
		}
	}()
	return w
}

func (w *wire) cut() {
	_ = w.listener.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		_ = c.Close()
	}
}

func TestADatabaseThatIsAwayIsUnavailable(t *testing.T) {
	u, err := url.Parse(dbtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, u.Host)
	u.Host = w.listener.Addr().String()
	d, err := db.Open(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.Zones(t.Context()); err != nil {
		t.Fatalf("over the wire: %v", err)
	}
	w.cut()
	for range 3 { // at first by the open connection, then by a new one
		_, err := d.Zones(t.Context())
		if services.KindOf(err) != services.KindUnavailable {
			t.Errorf("cut off: %v is of kind %v, want unavailable", err, services.KindOf(err))
		}
		err = d.Tx(t.Context(), func(tx *db.Tx) error { return nil })
		if services.KindOf(err) != services.KindUnavailable {
			t.Errorf("a transaction: %v is of kind %v, want unavailable", err, services.KindOf(err))
		}
	}
}
