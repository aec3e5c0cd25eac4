package hostagent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"berth/services/agentapi"
)

// Kinds of PEM block.
const (
	blockKey         = "EC PRIVATE KEY"
	blockCertificate = "CERTIFICATE"
	blockRequest     = "CERTIFICATE REQUEST"
)

// identity is the agent's key and certificate, and the CA to check the console by.
type identity struct {
	key  *ecdsa.PrivateKey
	leaf *x509.Certificate
	cas  []*x509.Certificate
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}

// signingRequest is the PKCS#10 request for key, as PEM. Its subject is empty:
// the console names its agents itself.
func signingRequest(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return "", fmt.Errorf("make certificate request: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: blockRequest, Bytes: der})), nil
}

// newIdentity checks the console's answer before it is trusted and kept: the
// certificate must be for key, from one of the CAs, and for clients.
func newIdentity(key *ecdsa.PrivateKey, answer agentapi.Certificate, now time.Time) (*identity, error) {
	leaves, err := certificates([]byte(answer.Certificate))
	if err != nil {
		return nil, fmt.Errorf("certificate answered: %w", err)
	}
	cas, err := certificates([]byte(answer.CA))
	if err != nil {
		return nil, fmt.Errorf("CA answered: %w", err)
	}
	id := &identity{key: key, leaf: leaves[0], cas: cas}
	return id, id.check(now)
}

func (id *identity) check(now time.Time) error {
	if !id.key.PublicKey.Equal(id.leaf.PublicKey) {
		return errors.New("the certificate is for another key")
	}
	_, err := id.leaf.Verify(x509.VerifyOptions{
		Roots: id.pool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return fmt.Errorf("check own certificate: %w", err)
	}
	return nil
}

func (id *identity) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, ca := range id.cas {
		pool.AddCert(ca)
	}
	return pool
}

func (id *identity) certificate() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{id.leaf.Raw}, PrivateKey: id.key, Leaf: id.leaf}
}

// renewAt is when a third of the certificate's life is left.
func (id *identity) renewAt() time.Time {
	return id.leaf.NotAfter.Add(-id.leaf.NotAfter.Sub(id.leaf.NotBefore) / 3)
}

// encode writes key, certificate and CAs as one PEM text, so that they can be
// replaced together.
func (id *identity) encode() ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(id.key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	out := pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: der})
	for _, c := range append([]*x509.Certificate{id.leaf}, id.cas...) {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: c.Raw})...)
	}
	return out, nil
}

func decodeIdentity(text []byte) (*identity, error) {
	key, rest, err := decodeKey(text)
	if err != nil {
		return nil, err
	}
	certs, err := certificates(rest)
	if err != nil {
		return nil, err
	}
	return &identity{key: key, leaf: certs[0], cas: certs[1:]}, nil
}

func decodeKey(text []byte) (key *ecdsa.PrivateKey, rest []byte, err error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != blockKey {
		return nil, nil, errors.New("no private key where one should be")
	}
	key, err = x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("read key: %w", err)
	}
	return key, rest, nil
}

// certificates reads all certificates of a PEM text, at least one.
func certificates(text []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("no certificate in it")
	}
	return out, nil
}
