package handlers_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"berth/services/agentapi"
)

// host is an agent with one machine, which does at once what the console
// wants, whenever the test says so.
type host struct {
	w        *world
	zone     string
	client   *http.Client
	key      *ecdsa.PrivateKey
	cert     agentapi.Certificate
	epoch    int64
	sequence int64
	cards    []string // PCI device ids
}

// PCI device ids of the models.
const (
	l40  = "26b5"
	h100 = "2331"
	a100 = "20b5"
)

// addHost enrols an agent and lets it report for the first time.
func (w *world) addHost(zone string, cards ...string) *host {
	w.t.Helper()
	h := w.enrol(zone)
	h.cards = cards
	h.work()
	return h
}

func (w *world) enrol(zone string) *host {
	w.t.Helper()
	token, err := w.fleet.NewToken(w.t.Context(), zone, time.Hour)
	w.must(err)
	h := &host{w: w, zone: zone, client: stranger(), epoch: 1}
	h.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.must(err)
	status, body := h.call(http.MethodPost, agentapi.PathEnrol, agentapi.EnrolRequest{
		Token: token, CSR: h.request(), Agent: agentapi.Agent{Version: "1", Driver: "played"},
	})
	if status != http.StatusOK {
		w.t.Fatalf("enrol: %d %s", status, body)
	}
	w.must(json.Unmarshal(body, &h.cert))
	h.use(h.cert)
	return h
}

// stranger is an agent's client before it knows whom to trust.
func stranger() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as the tests' own console
	}}
}

// request is a certificate request with the host's key.
func (h *host) request() string {
	h.w.t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, h.key)
	h.w.must(err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// use makes the host show a certificate from now on.
func (h *host) use(c agentapi.Certificate) {
	h.w.t.Helper()
	block, _ := pem.Decode([]byte(c.Certificate))
	pool := x509.NewCertPool()
	if block == nil || !pool.AppendCertsFromPEM([]byte(c.CA)) {
		h.w.t.Fatalf("no PEM in %+v", c)
	}
	h.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{{Certificate: [][]byte{block.Bytes}, PrivateKey: h.key}},
	}}}
	h.w.t.Cleanup(h.client.CloseIdleConnections)
}

func (h *host) call(method, path string, in any) (int, []byte) {
	h.w.t.Helper()
	body, err := json.Marshal(in)
	h.w.must(err)
	return h.send(method, path, body)
}

func (h *host) send(method, path string, body []byte) (int, []byte) {
	h.w.t.Helper()
	req, err := http.NewRequest(method, h.w.agents.URL+path, bytes.NewReader(body))
	h.w.must(err)
	resp, err := h.client.Do(req)
	h.w.must(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	h.w.must(err)
	return resp.StatusCode, answer
}

// desired asks for what is wanted; wait is as in the query.
func (h *host) desired(since int64, wait string) (int, agentapi.Desired) {
	h.w.t.Helper()
	status, body := h.send(http.MethodGet, agentapi.PathDesired+"?since="+strconv.FormatInt(since, 10)+"&wait="+wait, nil)
	var d agentapi.Desired
	if status == http.StatusOK {
		h.w.must(json.Unmarshal(body, &d))
	}
	return status, d
}

// work brings about what is wanted, and reports it.
func (h *host) work() {
	h.w.t.Helper()
	_, d := h.desired(0, "0s")
	status, body := h.call(http.MethodPost, agentapi.PathReport, h.report(d))
	if status != http.StatusOK {
		h.w.t.Fatalf("report: %d %s", status, body)
	}
}

// report is what the host would report had it reached d.
func (h *host) report(d agentapi.Desired) agentapi.Report {
	h.sequence++
	m := agentapi.HostReport{Name: "host-" + h.zone, Generation: "v7", VCores: 256, MemoryMiB: 1 << 20, Findings: []agentapi.Finding{}}
	orders := map[string]int64{}
	for _, wanted := range d.Hosts {
		for _, c := range wanted.Cards {
			orders[c.Key] = c.CleanOrder
		}
		for _, v := range wanted.VMs {
			m.VMs = append(m.VMs, obeyed(v, d.Revision))
		}
	}
	for i, device := range h.cards {
		key := fmt.Sprintf("%s-%d", h.zone, i)
		m.Cards = append(m.Cards, agentapi.CardReport{
			Key: key, Serial: key, VendorID: "10de", DeviceID: device, PCIAddress: fmt.Sprintf("%04x:%02x:00.0", i/128, 0x3b+i%128), CleanedOrder: orders[key],
		})
	}
	return agentapi.Report{
		Epoch: h.epoch, Sequence: h.sequence, Revision: d.Revision, Agent: agentapi.Agent{Version: "1", Driver: "played"},
		Hosts: []agentapi.HostReport{m},
	}
}

func obeyed(v agentapi.DesiredVM, revision int64) agentapi.VMReport {
	r := agentapi.VMReport{
		ID: v.ID, Revision: revision, Power: v.Power, Run: v.Run, Reboots: v.Reboots, Devices: []string{}, VCores: v.VCores, MemoryMiB: v.MemoryMiB,
	}
	if v.Power == agentapi.PowerStopped {
		r.StoppedBy = agentapi.StoppedByConsole
	}
	for _, d := range v.Devices {
		r.Devices = append(r.Devices, d.Key)
	}
	return r
}
