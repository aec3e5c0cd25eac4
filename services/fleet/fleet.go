// Package fleet is the operator's half: agents and how they are trusted, hosts,
// cards, and the state that agents are to bring about.
//
// What a report says changes the books; what it leaves out frees nothing. An
// empty, broken, late, older or foreign report leaves every holding as it was
// and shows as a drift.
package fleet

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"berth/db"
	"berth/services"
	"berth/services/agentapi"
	"berth/services/compute"
)

// Machines follows what reports and operators mean for VMs.
type Machines interface {
	// Observe must be harmless when repeated; its errors are logged, and the
	// next report brings the same again.
	Observe(ctx context.Context, o compute.Observation) error
	// Fates tells what maintenance would do to the VMs of a host.
	Fates(ctx context.Context, host services.HostID) ([]compute.Fate, error)
	// TendHosts moves on what hosts' modes mean for VMs; it is harmless when repeated.
	TendHosts(ctx context.Context) error
	// ForceRelease takes a GPU from its account; wrong-state (conflict) where it can't be.
	ForceRelease(ctx context.Context, a services.Actor, id services.GPUID, reason string) error
}

// Service answers agents and operators.
type Service struct {
	db        *db.DB
	log       *slog.Logger
	machines  Machines
	authority *authority
	now       func() time.Time
	random    io.Reader
	trust     time.Duration
	prepare   time.Duration
	started   time.Time
}

// Options adjust a service; the zero value is right for production.
type Options struct {
	Log    *slog.Logger     // slog.Default()
	Now    func() time.Time // time.Now
	Random io.Reader        // crypto/rand.Reader
	// Trust is how long a full report vouches for a host; longer than the
	// agents' interval of reports, 10 s. 45 s.
	Trust time.Duration
	// Prepare is how long a card may take to be reset and scrubbed before an
	// operator is told that it failed. 3 min.
	Prepare time.Duration
}

// New makes a service, and the console's certificate authority on the first start.
func New(ctx context.Context, d *db.DB, machines Machines, o Options) (*Service, error) {
	s := &Service{db: d, log: o.Log, machines: machines, now: o.Now, random: o.Random, trust: o.Trust, prepare: o.Prepare}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.random == nil {
		s.random = rand.Reader
	}
	if s.trust == 0 {
		s.trust = 45 * time.Second
	}
	if s.prepare == 0 {
		s.prepare = 3 * time.Minute
	}
	s.started = s.now()
	var err error
	s.authority, err = loadAuthority(ctx, d, s.now())
	return s, err
}

// Agent is a program on a host as the books have it.
type Agent = db.Agent

// Unreadable flags an agent whose message can't be read at all.
func (s *Service) Unreadable(ctx context.Context, a Agent, detail string) {
	s.note(ctx, a.ID, "broken-report", "report", detail)
}

// Refusal is an error that an agent is told of, with the code of agentapi.Refusal.
type Refusal struct {
	Code    string
	Message string
}

func refuse(code, message string) *Refusal { return &Refusal{Code: code, Message: message} }

// Error gives the code and the sentence.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Unauthorized reports whether the agent is not let in, rather than misunderstood.
func (r *Refusal) Unauthorized() bool { return r.Code != agentapi.RefusalBadRequest }

const tokenPrefix = "berth-enrol-v1"

// NewToken makes a one-time token for an agent of a zone. The token also pins
// the console's authority, so that the agent knows whom it talks to.
func (s *Service) NewToken(ctx context.Context, zone string, life time.Duration) (string, error) {
	token, hash, err := s.drawToken(ctx, zone)
	if err != nil {
		return "", err
	}
	now := s.now()
	return token, s.db.InsertToken(ctx, hash, zone, services.ActorConsole, now, now.Add(life))
}

// drawToken makes a token for a zone and the hash that is kept of it.
func (s *Service) drawToken(ctx context.Context, zone string) (token string, hash []byte, err error) {
	if err := s.checkZone(ctx, zone); err != nil {
		return "", nil, err
	}
	secret := make([]byte, 20)
	if _, err := io.ReadFull(s.random, secret); err != nil {
		return "", nil, fmt.Errorf("draw enrolment token: %w", err)
	}
	text := hex.EncodeToString(secret)
	return strings.Join([]string{tokenPrefix, text, s.authority.fingerprint()}, "."), hashSecret(text), nil
}

func (s *Service) checkZone(ctx context.Context, zone string) error {
	zones, err := s.db.Zones(ctx)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(zones))
	for _, z := range zones {
		if z.ID == zone {
			return nil
		}
		names = append(names, z.ID)
	}
	return services.NoneOf("zone", zone, names...)
}

func hashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// Enrol exchanges a token for a client certificate. Until the agent has
// reported, its token may be used again: the first answer may have been lost.
func (s *Service) Enrol(ctx context.Context, r agentapi.EnrolRequest) (agentapi.Certificate, error) {
	parts := strings.Split(r.Token, ".")
	if len(parts) != 3 || parts[0] != tokenPrefix {
		return agentapi.Certificate{}, refuse(agentapi.RefusalBadRequest, "token is none of this console; make one with 'berth enrol'")
	}
	var answer agentapi.Certificate
	err := s.db.Tx(ctx, func(tx *db.Tx) error {
		token, err := s.lockToken(ctx, tx, parts[1])
		if err != nil {
			return err
		}
		id := token.Agent
		if id == "" {
			if id, err = services.NewID[services.AgentID](s.random); err != nil {
				return err
			}
		}
		cert, hash, expires, err := s.authority.signAgent(id, r.CSR, s.now())
		if err != nil {
			return err
		}
		answer = s.certificate(id, cert, expires)
		if token.Agent != "" {
			return s.replaceCertificate(ctx, tx, id, nil, hash, expires)
		}
		if err := tx.InsertAgent(ctx, db.Agent{
			ID: id, Zone: token.Zone, CertificateHash: hash, ExpiresAt: expires,
			Version: clip(r.Agent.Version), Driver: clip(r.Agent.Driver), CreatedAt: s.now(),
		}); err != nil {
			return err
		}
		return tx.UseToken(ctx, hashSecret(parts[1]), id)
	})
	if err == nil {
		s.log.InfoContext(ctx, "agent enrolled", "agent", answer.AgentID)
	}
	return answer, err
}

func (s *Service) lockToken(ctx context.Context, tx *db.Tx, secret string) (db.Token, error) {
	token, ok, err := tx.LockToken(ctx, hashSecret(secret))
	switch {
	case err != nil:
		return token, err
	case !ok:
		return token, refuse(agentapi.RefusalUnauthorized, "token is unknown; make one with 'berth enrol'")
	case token.RevokedAt != nil:
		return token, refuse(agentapi.RefusalUnauthorized, "token was withdrawn by an operator; make another with 'berth enrol'")
	case s.now().After(token.ExpiresAt):
		return token, refuse(agentapi.RefusalTokenExpired, "token expired at "+token.ExpiresAt.UTC().Format(time.RFC3339)+"; make another with 'berth enrol'")
	case token.Agent == "":
		return token, nil
	}
	a, _, err := tx.Agent(ctx, token.Agent)
	if err == nil && (a.ReportedAt != nil || a.RevokedAt != nil) {
		err = refuse(agentapi.RefusalTokenUsed, "token was used by "+string(token.Agent)+"; make another with 'berth enrol'")
	}
	return token, err
}

func (s *Service) replaceCertificate(ctx context.Context, tx *db.Tx, id services.AgentID, former, hash []byte, expires time.Time) error {
	ok, err := tx.SetAgentCertificate(ctx, id, former, hash, expires)
	if err == nil && !ok {
		err = refuse(agentapi.RefusalRevoked, "this agent was revoked; ask an operator")
	}
	return err
}

func (s *Service) certificate(id services.AgentID, cert string, expires time.Time) agentapi.Certificate {
	return agentapi.Certificate{AgentID: string(id), Certificate: cert, CA: s.authority.pem, ExpiresAt: expires}
}

// Authenticate finds the agent of a client certificate that TLS has verified;
// its CertificateHash is that certificate's.
func (s *Service) Authenticate(ctx context.Context, cert *x509.Certificate) (db.Agent, error) {
	a, ok, err := s.db.Agent(ctx, services.AgentID(cert.Subject.CommonName))
	if err != nil {
		return a, err
	}
	hash := sha256.Sum256(cert.Raw)
	switch {
	case !ok:
		return a, refuse(agentapi.RefusalUnauthorized, "this console knows no such agent; enrol again")
	case a.RevokedAt != nil:
		return a, refuse(agentapi.RefusalRevoked, "this agent was revoked; ask an operator")
	case subtle.ConstantTimeCompare(hash[:], a.CertificateHash) != 1 && subtle.ConstantTimeCompare(hash[:], a.FormerHash) != 1:
		return a, refuse(agentapi.RefusalUnauthorized, "this certificate was replaced by a newer one; enrol again")
	}
	a.CertificateHash = hash[:]
	return a, nil
}

// Renew gives an agent, as Authenticate found it, a new certificate. The one it
// came with stays good until the next renewal, or until it expires, so that a
// lost answer locks nobody out.
func (s *Service) Renew(ctx context.Context, a db.Agent, r agentapi.RenewRequest) (agentapi.Certificate, error) {
	cert, hash, expires, err := s.authority.signAgent(a.ID, r.CSR, s.now())
	if err != nil {
		return agentapi.Certificate{}, err
	}
	err = s.db.Tx(ctx, func(tx *db.Tx) error { return s.replaceCertificate(ctx, tx, a.ID, a.CertificateHash, hash, expires) })
	return s.certificate(a.ID, cert, expires), err
}

const maxWord = 100

// clip shortens a word of an agent's for the books.
func clip(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
	if len(text) > maxWord {
		text = strings.ToValidUTF8(text[:maxWord], "")
	}
	return text
}
