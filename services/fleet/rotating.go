package fleet

import (
	"crypto/tls"
	"sync"
	"time"
)

// rotating keeps a certificate and makes a new one when its time has come.
type rotating struct {
	make func() (cert *tls.Certificate, until time.Time, err error)
	now  func() time.Time

	mu    sync.Mutex
	cert  *tls.Certificate
	until time.Time
}

func (r *rotating) get() (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cert != nil && r.now().Before(r.until) {
		return r.cert, nil
	}
	cert, until, err := r.make()
	if err != nil {
		return nil, err
	}
	r.cert, r.until = cert, until
	return cert, nil
}
