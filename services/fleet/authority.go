package fleet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
)

// Lives of what the console's own authority signs.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	agentLife     = 30 * 24 * time.Hour
	serverLife    = 90 * 24 * time.Hour
	clockSkew     = 5 * time.Minute
)

// authority is the console's certificate authority. Its key lies in the
// database, so that every replica signs with the same.
type authority struct {
	cert *x509.Certificate
	pem  string
	key  *ecdsa.PrivateKey
}

// loadAuthority gives the authority of the database, and makes it on the first start.
func loadAuthority(ctx context.Context, d *db.DB, now time.Time) (*authority, error) {
	made, err := makeAuthority(now)
	if err != nil {
		return nil, err
	}
	kept, err := d.EnsureAuthority(ctx, made, now)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(kept.CertificatePEM), []byte(kept.KeyPEM))
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read certificate authority: key is a %T", pair.PrivateKey)
	}
	return &authority{cert: pair.Leaf, pem: kept.CertificatePEM, key: key}, nil
}

func makeAuthority(now time.Time) (db.Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return db.Authority{}, fmt.Errorf("make key of certificate authority: %w", err)
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Berth agents"}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := sign(t, t, &key.PublicKey, key)
	if err != nil {
		return db.Authority{}, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return db.Authority{}, fmt.Errorf("encode key of certificate authority: %w", err)
	}
	return db.Authority{CertificatePEM: encodePEM("CERTIFICATE", der), KeyPEM: encodePEM("EC PRIVATE KEY", keyDER)}, nil
}

func sign(t, parent *x509.Certificate, public any, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}
	t.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, t, parent, public, key)
	return der, services.Wrap("sign certificate", err)
}

func encodePEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// fingerprint is what enrolment tokens pin: SHA-256 of the authority's certificate.
func (a *authority) fingerprint() string { return fmt.Sprintf("%x", sha256.Sum256(a.cert.Raw)) }

// signAgent certifies an agent's key. Of the request only the key and the proof
// of having it count.
func (a *authority) signAgent(id services.AgentID, csrPEM string, now time.Time) (certPEM string, hash []byte, expires time.Time, err error) {
	block, _ := pem.Decode([]byte(csrPEM))
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return "", nil, expires, refuse(agentapi.RefusalBadRequest, "csr is no PEM certificate request")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || csr.CheckSignature() != nil {
		return "", nil, expires, refuse(agentapi.RefusalBadRequest, "csr can't be read, or is not signed with its own key")
	}
	expires = now.Add(agentLife)
	der, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: string(id)}, NotBefore: now.Add(-clockSkew), NotAfter: expires,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return "", nil, expires, err
	}
	sum := sha256.Sum256(der)
	return encodePEM("CERTIFICATE", der), sum[:], expires, nil
}

// server makes a certificate for the agents' listener under some names and addresses.
func (a *authority) server(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key of agents' listener: %w", err)
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Berth console"}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(serverLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	der, err := sign(t, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}, nil
}

// TLS is the configuration of the agents' listener: it answers under the names,
// and checks client certificates by the authority where one is shown. A
// certificate of its own is renewed long before its end.
func (s *Service) TLS(names []string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(s.authority.cert)
	c := &rotating{make: func() (*tls.Certificate, time.Time, error) {
		now := s.now()
		cert, err := s.authority.server(names, now)
		return cert, now.Add(serverLife / 2), err
	}, now: s.now}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get() },
	}
}
