package db

import (
	"context"
	"time"
)

// Authority is the console's certificate authority.
type Authority struct {
	CertificatePEM string `db:"certificate_pem"`
	KeyPEM         string `db:"key_pem"`
}

// EnsureAuthority keeps the first authority that any replica made and gives it.
func (s Store) EnsureAuthority(ctx context.Context, made Authority, now time.Time) (Authority, error) {
	if _, err := s.exec(ctx, "insert authority", `
		insert into authorities (id, certificate_pem, key_pem, created_at) values (1, $1, $2, $3) on conflict do nothing`,
		made.CertificatePEM, made.KeyPEM, now); err != nil {
		return Authority{}, err
	}
	var a Authority
	err := s.one(ctx, &a, "find authority", `select certificate_pem, key_pem from authorities where id = 1`)
	return a, err
}
