package fleet_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"berth/db"
	"berth/db/dbtest"
	"berth/services"
	"berth/services/agentapi"
	"berth/services/catalog"
	"berth/services/compute"
	"berth/services/fleet"
)

const (
	zone = "eu-west-2a"
	l40  = "26b5"
)

// world is a fleet on a real Postgres, with a clock that the test moves.
type world struct {
	*testing.T
	db       *db.DB
	raw      *sql.DB // for what only Postgres knows of rows
	fleet    *fleet.Service
	time     time.Time
	observed []compute.Observation
	fates    map[services.HostID][]compute.Fate
	tended   int
	released []services.GPUID
}

// Observe notes what the fleet hands on.
func (w *world) Observe(_ context.Context, o compute.Observation) error {
	w.observed = append(w.observed, o)
	return nil
}

// Fates gives what the test says.
func (w *world) Fates(_ context.Context, host services.HostID) ([]compute.Fate, error) {
	return w.fates[host], nil
}

// TendHosts counts.
func (w *world) TendHosts(context.Context) error {
	w.tended++
	return nil
}

// ForceRelease notes which GPU was taken.
func (w *world) ForceRelease(_ context.Context, _ services.Actor, id services.GPUID, _ string) error {
	w.released = append(w.released, id)
	return nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	url := dbtest.New(t)
	w := &world{T: t, time: time.Now().Truncate(time.Millisecond)}
	var err error
	w.db, err = db.Open(t.Context(), url)
	w.must(err)
	t.Cleanup(func() { _ = w.db.Close() })
	w.raw, err = sql.Open("postgres", url)
	w.must(err)
	t.Cleanup(func() { _ = w.raw.Close() })
	w.change(func(tx *db.Tx) error { return tx.AddReference(t.Context(), catalog.Published()) })
	w.fleet, err = fleet.New(t.Context(), w.db, w, fleet.Options{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return w.time }})
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) change(f func(*db.Tx) error) {
	w.Helper()
	w.must(w.db.Tx(w.Context(), f))
}

// request is a certificate request under a fresh key.
func (w *world) request() string {
	w.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.must(err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	w.must(err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func (w *world) certificate(c agentapi.Certificate) *x509.Certificate {
	w.Helper()
	block, _ := pem.Decode([]byte(c.Certificate))
	if block == nil {
		w.Fatalf("%q is no PEM", c.Certificate)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	w.must(err)
	return cert
}

func (w *world) enrol(token string) (agentapi.Certificate, error) {
	return w.fleet.Enrol(w.Context(), agentapi.EnrolRequest{Token: token, CSR: w.request(), Agent: agentapi.Agent{Version: "1", Driver: "played"}})
}

// agent enrols an agent, and gives what plays it.
func (w *world) agent() *agent {
	w.Helper()
	token, err := w.fleet.NewToken(w.Context(), zone, time.Hour)
	w.must(err)
	c, err := w.enrol(token)
	w.must(err)
	return &agent{w: w, id: services.AgentID(c.AgentID), epoch: 1}
}

// agent plays a program on some hosts.
type agent struct {
	w        *world
	id       services.AgentID
	epoch    int64
	sequence int64
}

// report sends a full report of hosts.
func (a *agent) report(hosts ...agentapi.HostReport) agentapi.ReportAnswer {
	a.w.Helper()
	answer, err := a.send(func(r *agentapi.Report) { r.Hosts = hosts })
	a.w.must(err)
	if !answer.Accepted {
		a.w.Fatalf("the report was not taken: %s", answer.Reason)
	}
	return answer
}

// send sends the next report, changed by the caller.
func (a *agent) send(change func(*agentapi.Report)) (agentapi.ReportAnswer, error) {
	a.w.Helper()
	a.sequence++
	a.w.time = a.w.time.Add(time.Millisecond)
	r := agentapi.Report{Epoch: a.epoch, Sequence: a.sequence, Agent: agentapi.Agent{Version: "1", Driver: "played"}}
	change(&r)
	row, _, err := a.w.db.Agent(a.w.Context(), a.id)
	a.w.must(err)
	return a.w.fleet.Report(a.w.Context(), row, r)
}

// hostOf is a host with L40 cards of these serials.
func hostOf(name string, serials ...string) agentapi.HostReport {
	h := agentapi.HostReport{Name: name, Generation: "v7", VCores: 64, MemoryMiB: 1 << 20}
	for i, s := range serials {
		group := i
		h.Cards = append(h.Cards, agentapi.CardReport{
			Key: s, Serial: s, VendorID: "10de", DeviceID: l40, PCIAddress: fmt.Sprintf("0000:%02x:00.0", 0x3b+i), IOMMUGroup: &group,
		})
	}
	return h
}

// card is the books' row of a card.
func (w *world) card(serial string) db.Card {
	w.Helper()
	rows, err := w.db.CardsOf(w.Context(), nil, []string{"serial:10de:" + serial})
	w.must(err)
	if len(rows) != 1 {
		w.Fatalf("card %s is %d times in the books", serial, len(rows))
	}
	return rows[0]
}

// drifts are the kinds of all drifts, in order.
func (w *world) drifts() []string {
	w.Helper()
	rows, err := w.db.Drifts(w.Context())
	w.must(err)
	kinds := []string{}
	for _, d := range rows {
		kinds = append(kinds, d.Kind+" "+d.Subject)
	}
	slices.Sort(kinds)
	return kinds
}

// hold lets an account hold a card by a GPU.
func (w *world) hold(serial string) services.GPUID {
	w.Helper()
	id := services.GPUID("fgpu-00000001")
	c := w.card(serial)
	w.change(func(tx *db.Tx) error {
		if err := tx.InsertAccount(w.Context(), "acc-00000001", "Alpha", w.time); err != nil {
			return err
		}
		return tx.InsertGPU(w.Context(), db.GPU{
			ID: id, Account: "acc-00000001", Kind: services.GPUFlexible, Name: "held", Model: "nvidia-l40", Region: "eu-west-2", Zone: zone,
			Card: c.ID, State: services.GPUAllocated, StateSince: w.time,
		})
	})
	return id
}

// free counts the cards that are on offer.
func (w *world) free() int {
	w.Helper()
	rows, err := w.db.Inventory(w.Context())
	w.must(err)
	n := 0
	for _, r := range rows {
		n += r.Free
	}
	return n
}

// traces tells the transaction that last wrote each card, and counts events.
func (w *world) traces() string {
	w.Helper()
	var s string
	w.must(w.raw.QueryRowContext(w.Context(), `
		select string_agg(key || ' ' || cast(xmin as text), ', ' order by key) || '; events ' || (select count(*) from events) from cards`).Scan(&s))
	return s
}

// refused gives the code that a refusal carries.
func refused(err error) string {
	if r, ok := errors.AsType[*fleet.Refusal](err); ok {
		return r.Code
	}
	return fmt.Sprint(err)
}

func parse(c *tls.Certificate) (*x509.Certificate, error) {
	return x509.ParseCertificate(c.Certificate[0])
}
