package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

var quiet = slog.New(slog.DiscardHandler)

// fleet is an authority and a running agents' port.
type fleet struct {
	t           *testing.T
	ca          *pki.Authority
	market      *recorder
	revocations *Revocations
	address     string
	metrics     *Metrics
	lines       logtest.Lines // of the agents' port

	mu  sync.Mutex
	now time.Time // stands still; zero is the real clock
}

// recorder is a market that says what the test wants it to.
type recorder struct {
	// hang, when set, is told of a report, which then waits until it is closed.
	hang    chan struct{}
	mu      sync.Mutex
	err     error
	reports []heard
	flavors []v1alpha1.Flavor
	demand  *v1alpha1.Demand
	asked   int // how often for offers
}

type heard struct {
	cluster    string
	generation wire.Generation
	flavors    []v1alpha1.Flavor
	full       bool
	honoured   uint64
}

func (m *recorder) Report(_ context.Context, r store.Report) error {
	if m.hang != nil {
		m.hang <- struct{}{}
		<-m.hang
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	one := heard{cluster: r.Cluster, generation: r.Generation}
	if r.Content != nil {
		if err := market.CheckDemand(r.Content.Demand); err != nil {
			return err
		}
		one.flavors, one.full, m.demand, one.honoured = r.Content.Flavors, true, r.Content.Demand, r.Content.Honoured
	}
	m.reports = append(m.reports, one)
	return m.err
}

func (*recorder) Pods() []wire.PodsReport {
	return []wire.PodsReport{{Cluster: "rome", Contracts: map[string]int64{"c": 2}}, {Cluster: "milan", Contracts: map[string]int64{"d": 0}}}
}

func (m *recorder) Offers(q market.Query) (tree.Tree, []v1alpha1.Flavor, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	var out []v1alpha1.Flavor
	for _, f := range m.flavors {
		if q.Provider == "" || q.Provider == f.Metadata.Namespace {
			out = append(out, f)
		}
	}
	return tree.Tree{Root: feed}, out, nil
}

// timesAsked is how often somebody looked at the offers.
func (m *recorder) timesAsked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// feed is the tree of every recorder.
var feed = tree.Hash{0xfe, 0xed}

func (m *recorder) take() []heard {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.reports
	m.reports = nil
	return out
}

// certify makes the fleet's authority, and the certificate of its broker.
func (f *fleet) certify() *pki.Files {
	f.t.Helper()
	t := f.t
	var err error
	if f.ca, err = pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now); err != nil {
		t.Fatal(err)
	}
	own, err := f.ca.Issue(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "broker")
	if err := own.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	files, err := pki.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, market: &recorder{}, revocations: new(Revocations), metrics: NewMetrics(), now: time.Now()}
	files := f.certify()
	handler := NewAgents(Agents{
		Reports: f.market, Market: f.market, Revocations: f.revocations, Metrics: f.metrics, Log: f.lines.Logger(), Now: f.clock,
		Enrolled: func(cluster string) bool { return cluster != "stranger" },
	})
	f.address = "https://" + run(t, Port{Name: "agents", Address: "127.0.0.1:0", TLS: AgentTLS(files, f.revocations, quiet), Handler: handler})
	return f
}

// run serves a port for as long as the test lasts.
func run(t *testing.T, port Port) string {
	t.Helper()
	servers, err := Listen(t.Context(), quiet, port)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- servers.Run(ctx, 5*time.Second) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return servers.Address(port.Name)
}

func (f *fleet) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now.IsZero() {
		return time.Now()
	}
	return f.now
}

// client holds a certificate; a nil request makes one without.
func (f *fleet) client(r *pki.Request, change func(*tls.Config)) *http.Client {
	f.t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(f.ca.CA())
	if r != nil {
		bundle, err := f.ca.Issue(*r)
		if err != nil {
			f.t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(bundle.Cert, bundle.Key)
		if err != nil {
			f.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if change != nil {
		change(config)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true}
	f.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// call sends a request and returns the answer's status and body.
func (f *fleet) call(client *http.Client, method, path string, body []byte, headers ...string) (int, http.Header, []byte) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.address+path, bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, data
}

// refused asks for something and returns nil when the handshake fails.
func (f *fleet) refused(client *http.Client) error {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.address+"/healthz", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil //nolint:nilerr // that is what is asked for
	}
	return errors.Join(fmt.Errorf("answered %d", answer.StatusCode), answer.Body.Close())
}

func reasonOf(t *testing.T, body []byte) string {
	t.Helper()
	var e wire.Error
	if err := json.Unmarshal(body, &e); err != nil || e.Error == "" {
		t.Fatalf("not an error of ours: %q (%v)", body, err)
	}
	return e.Reason
}

var paris = &pki.Request{Name: "paris"}

const h100 = `{"flavors":[{"metadata":{"name":"h100-pool"},"spec":{"capacity":{"cpu":"256","gpu":16},"used":{"gpu":"2"}}}]}`

func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReportReachesTheMarket(t *testing.T) {
	f := startFleet(t)
	client := f.client(paris, nil)
	status, headers, body := f.call(client, "PUT", wire.FlavorsPath("paris"), packed(t, []byte(h100)), wire.HeaderGeneration, "7.1", "Content-Encoding", "gzip")
	if status != http.StatusNoContent || headers.Get(wire.HeaderGeneration) != "7.1" {
		t.Fatalf("answered %d %s", status, body)
	}
	got := f.market.take()
	if len(got) != 1 || got[0].cluster != "paris" || got[0].generation != (wire.Generation{Epoch: 7, N: 1}) || !got[0].full {
		t.Fatalf("the market heard %+v", got)
	}
	flavor := got[0].flavors[0]
	if flavor.Ref() != "paris/h100-pool" || flavor.Kind != "Flavor" || flavor.Spec.Capacity["gpu"].Int64() != 16 || flavor.Spec.Capacity["cpu"].Int64() != 256000 {
		t.Errorf("the market heard %+v", flavor)
	}
	if status, _, body = f.call(client, "PUT", wire.FlavorsPath("paris"), nil, wire.HeaderGeneration, "7.1"); status != http.StatusNoContent {
		t.Fatalf("unchanged: answered %d %s", status, body)
	}
	if got := f.market.take(); len(got) != 1 || got[0].full || got[0].flavors != nil {
		t.Errorf("unchanged: the market heard %+v", got)
	}
	if status, _, body = f.call(client, "PUT", wire.FlavorsPath("paris"), []byte(`{"flavors":[]}`), wire.HeaderGeneration, "7.2"); status != http.StatusNoContent {
		t.Fatalf("empty list: answered %d %s", status, body)
	}
	if got := f.market.take(); len(got) != 1 || !got[0].full {
		t.Errorf("an empty list is a full report; the market heard %+v", got)
	}
}

// What the agent had carried out comes in a header, within the bounds of a number.
func TestAReportSaysWhatWasCarriedOut(t *testing.T) {
	f := startFleet(t)
	client := f.client(paris, nil)
	for n, tc := range []struct {
		header string
		status int
		want   uint64
	}{
		{"", http.StatusNoContent, 0},
		{"12", http.StatusNoContent, 12},
		{"9223372036854775807", http.StatusNoContent, 1<<63 - 1},
		{"9223372036854775808", http.StatusBadRequest, 0},
		{"-1", http.StatusBadRequest, 0},
		{"0x1", http.StatusBadRequest, 0},
		{strings.Repeat("9", 1000), http.StatusBadRequest, 0},
	} {
		headers := []string{wire.HeaderGeneration, fmt.Sprintf("7.%d", n+1)}
		if tc.header != "" {
			headers = append(headers, wire.HeaderHonoured, tc.header)
		}
		status, _, answer := f.call(client, "PUT", wire.FlavorsPath("paris"), []byte(`{"flavors":[]}`), headers...)
		got := f.market.take()
		if status != tc.status || (status == http.StatusNoContent) != (len(got) == 1) || len(got) == 1 && got[0].honoured != tc.want {
			t.Errorf("%.30q: answered %d %s, and the market heard %+v; want %d and %d", tc.header, status, answer, got, tc.status, tc.want)
		}
	}
}

// TestAReportCarriesDemand: what pods wait for comes beside the flavors, and a
// mistake in it refuses the whole report.
func TestAReportCarriesDemand(t *testing.T) {
	f := startFleet(t)
	client := f.client(paris, nil)
	body := `{"flavors":[],"demand":{"pending":[{"namespace":"vision","intents":["vision.train"],"requests":{"cpu":"2"},"pods":3}],"nodes":{"a":1}}}`
	if status, _, answer := f.call(client, "PUT", wire.FlavorsPath("paris"), []byte(body), wire.HeaderGeneration, "7.1"); status != http.StatusNoContent {
		t.Fatalf("answered %d %s", status, answer)
	}
	d := f.market.demand
	if d == nil || d.Nodes["a"] != 1 || len(d.Pending) != 1 || d.Pending[0].Pods != 3 || d.Pending[0].Requests[v1alpha1.CPU] != v1alpha1.AmountOf(2000) {
		t.Fatalf("the market heard of demand %+v", d)
	}
	f.market.take()
	bad := strings.Replace(body, `"pods":3`, `"pods":0`, 1)
	if status, _, answer := f.call(client, "PUT", wire.FlavorsPath("paris"), []byte(bad), wire.HeaderGeneration, "7.2"); status != http.StatusUnprocessableEntity {
		t.Fatalf("answered %d %s", status, answer)
	}
	if got := f.market.take(); len(got) != 0 {
		t.Errorf("the market heard %+v", got)
	}
}

func TestWhoMayReport(t *testing.T) {
	f := startFleet(t)
	cases := map[string]struct {
		who    pki.Request
		path   string
		body   string
		status int
		reason string
	}{
		"another cluster":      {*paris, wire.FlavorsPath("lyon"), h100, 403, "ForeignCluster"},
		"another's flavor":     {*paris, wire.FlavorsPath("paris"), strings.Replace(h100, `"h100-pool"`, `"h100-pool","namespace":"lyon"`, 1), 403, "ForeignFlavor"},
		"an operator":          {pki.Request{Name: "paris", Role: pki.Operator}, wire.FlavorsPath("paris"), h100, 403, "ForeignCluster"},
		"not enrolled":         {pki.Request{Name: "stranger"}, wire.FlavorsPath("stranger"), h100, 403, "NotEnrolled"},
		"other advertisement":  {*paris, "/api/v1/advertisements", `{"clusterID":"lyon"}`, 403, "ForeignCluster"},
		"unnamed advertiser":   {*paris, "/api/v1/advertisements", `{}`, 403, "ForeignCluster"},
		"not JSON":             {*paris, wire.FlavorsPath("paris"), `{`, 400, "BadReport"},
		"a negative quantity":  {*paris, wire.FlavorsPath("paris"), `{"flavors":[{"metadata":{"name":"a"},"spec":{"capacity":{"cpu":"-1"}}}]}`, 400, "BadReport"},
		"a number with a tail": {*paris, wire.FlavorsPath("paris"), h100 + "x", 400, "BadReport"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			method := "PUT"
			if strings.HasSuffix(tc.path, "advertisements") {
				method = "POST"
			}
			status, _, body := f.call(f.client(&tc.who, nil), method, tc.path, []byte(tc.body), wire.HeaderGeneration, "1.1")
			if status != tc.status || reasonOf(t, body) != tc.reason {
				t.Errorf("answered %d %s; want %d %s", status, body, tc.status, tc.reason)
			}
			if got := f.market.take(); len(got) != 0 {
				t.Errorf("the market heard %+v", got)
			}
		})
	}
}

// TestWhoIsNotEnrolledIsToldWhatBecomesOfIt: by whoever proposes clusters.
func TestWhoIsNotEnrolledIsToldWhatBecomesOfIt(t *testing.T) {
	asked := ""
	a := newAgents(Agents{
		Reports: &recorder{}, Market: &recorder{}, Broker: &listener{}, Log: quiet, Enrolled: func(string) bool { return false },
		NotEnrolled: func(cluster, role string) *wire.Refusal {
			asked = cluster + " " + role
			return &wire.Refusal{Status: 403, Body: wire.Error{Error: "proposed", Reason: "EnrollmentProposed"}}
		},
	})
	in := &inside{handler: a.routes()}
	for name, c := range map[string]struct{ method, path, body, want string }{
		"it sells":            {"PUT", wire.FlavorsPath("paris"), h100, "paris provider"},
		"it sells nothing":    {"PUT", wire.FlavorsPath("paris"), `{"flavors":[]}`, "paris consumer"},
		"nothing has changed": {"PUT", wire.FlavorsPath("paris"), "", "paris "},
		"nonsense":            {"PUT", wire.FlavorsPath("paris"), `{"flavors":`, "paris "},
		"too much":            {"PUT", wire.FlavorsPath("paris"), strings.Repeat(" ", maxReport+1), "paris "},
		"the first form":      {"POST", "/api/v1/advertisements", `{"clusterID":"paris"}`, "paris provider"},
		"it asks":             {"POST", "/api/v1/reservations", "{}", "paris consumer"},
		"it only listens":     {"GET", "/api/v1/instructions", "", "paris "},
		"for another":         {"PUT", wire.FlavorsPath("lyon"), h100, ""},
	} {
		asked = ""
		answer := in.send(c.method, c.path, []byte(c.body), wire.HeaderGeneration, "1.1")
		if asked != c.want || answer.Code != 403 || c.want != "" && reasonOf(t, answer.Body.Bytes()) != "EnrollmentProposed" {
			t.Errorf("%s: answered %d %s, asked about %q, want %q", name, answer.Code, answer.Body, asked, c.want)
		}
	}
}

func TestMarketsRefusalsReachTheAgent(t *testing.T) {
	f := startFleet(t)
	client := f.client(paris, nil)
	cases := map[string]struct {
		err          error
		status       int
		reason, last string
	}{
		"unknown base": {market.ErrUnknownBase, 412, wire.ReasonUnknownBase, ""},
		"stale epoch":  {&market.StaleEpochError{Last: wire.Generation{Epoch: 9, N: 4}}, 409, wire.ReasonStaleEpoch, "9.4"},
		"other":        {errors.New("flavor a: too many labels"), 422, "BadReport", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f.market.err = tc.err
			status, _, body := f.call(client, "PUT", wire.FlavorsPath("paris"), nil, wire.HeaderGeneration, "1.1")
			var e wire.Error
			if err := json.Unmarshal(body, &e); err != nil {
				t.Fatal(err)
			}
			if status != tc.status || e.Reason != tc.reason || e.Last != tc.last {
				t.Errorf("answered %d %+v", status, e)
			}
		})
	}
	for _, generation := range []string{"", "1", "0.1"} {
		if status, _, body := f.call(client, "PUT", wire.FlavorsPath("paris"), nil, wire.HeaderGeneration, generation); status != 400 || reasonOf(t, body) != "BadGeneration" {
			t.Errorf("generation %q: answered %d %s", generation, status, body)
		}
	}
	f.lines.Wants(t, "FB1149")
}

func TestHandshake(t *testing.T) {
	f := startFleet(t)
	other, err := pki.InitCA(filepath.Join(t.TempDir(), "other"), "other", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Issue(pki.Request{Name: "paris"})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(foreign.Cert, foreign.Key)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]*http.Client{
		"no certificate":               f.client(nil, nil),
		"TLS 1.2":                      f.client(paris, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }),
		"certificate of another fleet": f.client(nil, func(c *tls.Config) { c.Certificates = []tls.Certificate{pair} }),
	}
	for name, client := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), "GET", f.address+"/healthz", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(r)
			if err == nil {
				answer.Body.Close()
				t.Fatalf("answered %d", answer.StatusCode)
			}
		})
	}
	if status, _, body := f.call(f.client(paris, nil), "GET", "/healthz", nil); status != 200 {
		t.Errorf("a good certificate: answered %d %s", status, body)
	}
}

// TestReplacedAuthorityReachesLivingConnections: whoever has a certificate of an
// authority that was taken out of ca.crt is refused on the connection that it has.
func TestReplacedAuthorityReachesLivingConnections(t *testing.T) {
	f := &fleet{t: t, market: &recorder{}, revocations: new(Revocations), metrics: NewMetrics()}
	f.certify()
	own, err := f.ca.Issue(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := own.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	files, err := pki.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.revocations.Authorities = files
	f.address = "https://" + run(t, Port{
		Name: "agents", Address: "127.0.0.1:0", TLS: AgentTLS(files, f.revocations, quiet),
		Handler: NewAgents(Agents{Reports: f.market, Market: f.market, Revocations: f.revocations, Log: quiet}),
	})
	client := f.client(paris, nil)
	ask := func(want int) string {
		t.Helper()
		status, _, body := f.call(client, "GET", "/healthz", nil)
		if status != want {
			t.Fatalf("answered %d %s, want %d", status, body, want)
		}
		return string(body)
	}
	other, err := pki.InitCA(filepath.Join(t.TempDir(), "other"), "other", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(pem ...[]byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, pki.CAFile), slices.Concat(pem...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask(200)
	replace(f.ca.CA(), other.CA()) // as for a while in a rotation
	ask(200)
	replace(other.CA())
	if body := ask(401); !strings.Contains(body, "UnknownAuthority") {
		t.Errorf("the replaced authority's certificate is refused by %s", body)
	}
}

func TestRevocationAndExpiryReachLivingConnections(t *testing.T) {
	f := startFleet(t)
	client, other := f.client(paris, nil), f.client(&pki.Request{Name: "lyon"}, nil)
	if status, _, _ := f.call(client, "GET", "/healthz", nil); status != 200 {
		t.Fatalf("before: answered %d", status)
	}
	if _, err := f.ca.Revoke("paris"); err != nil {
		t.Fatal(err)
	}
	crl, err := f.ca.CRL()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.revocations.Set(crl, f.ca.CA(), f.clock()); err != nil {
		t.Fatal(err)
	}
	client.CloseIdleConnections() // it was cut, and may not have heard of that yet
	if err := f.refused(client); err != nil {
		t.Errorf("revoked: %v", err)
	}
	if status, _, _ := f.call(other, "GET", "/healthz", nil); status != 200 {
		t.Errorf("another: answered %d", status)
	}
	if _, err := f.revocations.Set([]byte("broken"), f.ca.CA(), f.clock()); err == nil {
		t.Error("a broken list was taken")
	}
	if err := f.refused(client); err != nil {
		t.Errorf("a broken list let a revoked certificate in: %v", err)
	}
	f.mu.Lock()
	f.now = f.now.Add(366 * 24 * time.Hour)
	f.mu.Unlock()
	if status, _, body := f.call(other, "GET", "/healthz", nil); status != 401 || reasonOf(t, body) != "Expired" {
		t.Errorf("expired: answered %d %s", status, body)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	f := startFleet(t)
	bomb := packed(t, bytes.Repeat([]byte(" "), 64<<20)) // 64 KiB that make 64 MiB
	cases := map[string]struct {
		body     []byte
		encoding string
		status   int
		reason   string
	}{
		"bomb":             {bomb, "gzip", 413, "TooLarge"},
		"plain":            {bytes.Repeat([]byte(" "), maxReport+1), "", 413, "TooLarge"},
		"not gzip":         {[]byte("nonsense"), "gzip", 400, "BadBody"},
		"cut off":          {packed(t, []byte(h100))[:40], "gzip", 400, "BadBody"},
		"another encoding": {[]byte("x"), "br", 415, "UnsupportedEncoding"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			headers := []string{wire.HeaderGeneration, "1.1"}
			if tc.encoding != "" {
				headers = append(headers, "Content-Encoding", tc.encoding)
			}
			// An identity each: two of these are all that one may send.
			who := strings.ReplaceAll(name, " ", "-")
			status, _, body := f.call(f.client(&pki.Request{Name: who}, nil), "PUT", wire.FlavorsPath(who), tc.body, headers...)
			if status != tc.status || reasonOf(t, body) != tc.reason {
				t.Errorf("answered %d %s", status, body)
			}
		})
	}
	if got := f.market.take(); len(got) != 0 {
		t.Errorf("the market heard %d reports", len(got))
	}
}

func TestASlowReportDelaysNobodyElse(t *testing.T) {
	f := startFleet(t)
	slow, other := f.client(paris, nil), f.client(&pki.Request{Name: "lyon"}, nil)
	body, writer := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "PUT", f.address+wire.FlavorsPath("paris"), body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(wire.HeaderGeneration, "1.1")
	done := make(chan int, 1)
	go func() {
		answer, err := slow.Do(r)
		if err != nil {
			done <- 0
			return
		}
		defer answer.Body.Close()
		done <- answer.StatusCode
	}()
	fmt.Fprint(writer, h100[:10]) // now it is being read
	// Until then others' reports are taken; asked without pause, they would use up the
	// requests that the slow one needs, too.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		status, _, text := f.call(f.client(paris, nil), "PUT", wire.FlavorsPath("paris"), nil, wire.HeaderGeneration, "1.1")
		if status == 429 && reasonOf(t, text) == "Busy" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a second report of the same cluster: answered %d %s", status, text)
		}
	}
	if status, _, text := f.call(other, "PUT", wire.FlavorsPath("lyon"), nil, wire.HeaderGeneration, "1.1"); status != 204 {
		t.Errorf("another cluster's: answered %d %s", status, text)
	}
	fmt.Fprint(writer, h100[10:])
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if status := <-done; status != 204 {
		t.Errorf("the slow one: answered %d", status)
	}
}

func TestAdvertisementOfTheFirstForm(t *testing.T) {
	f := startFleet(t)
	client := f.client(paris, nil)
	if status, _, body := f.call(client, "GET", "/api/v1/advertisements/paris", nil); status != 404 || reasonOf(t, body) != "NotFound" {
		t.Errorf("before: answered %d %s", status, body)
	}
	ad := `{"clusterID":"paris","clusterName":"Paris","resources":{"capacity":{"cpu":"9","memory":"9Gi"},"allocatable":{"cpu":"8000m","memory":"8Gi","gpu":"2","storage":"100Gi"},"allocated":{"cpu":"1500m","memory":"1Gi"},"available":{"cpu":"6500m","memory":"7Gi"}},"timestamp":"2026-11-20T12:00:00Z"}`
	var last wire.Generation
	for range 2 {
		status, _, body := f.call(client, "POST", "/api/v1/advertisements", []byte(ad))
		var answer wire.AdvertisementAnswer
		if err := json.Unmarshal(body, &answer); err != nil || status != 200 || answer.Advertisement.ClusterName != "Paris" {
			t.Fatalf("answered %d %s (%v)", status, body, err)
		}
		got := f.market.take()
		if len(got) != 1 || !got[0].full || got[0].generation.Cmp(last) <= 0 {
			t.Fatalf("the market heard %+v after %v", got, last)
		}
		last = got[0].generation
		spec := got[0].flavors[0].Spec
		want := v1alpha1.Resources{"cpu": v1alpha1.AmountOf(8000), "memory": v1alpha1.AmountOf(8 << 30), "gpu": v1alpha1.AmountOf(2), "ephemeral-storage": v1alpha1.AmountOf(100 << 30)}
		if !spec.Capacity.Equal(want) || spec.Used["cpu"].Int64() != 1500 || spec.GPU.ResourceName != "nvidia.com/gpu" {
			t.Errorf("made the flavor %+v", spec)
		}
	}
	if status, _, body := f.call(client, "GET", "/api/v1/advertisements/paris", nil); status != 200 || !bytes.Contains(body, []byte(`"clusterName":"Paris"`)) {
		t.Errorf("answered %d %s", status, body)
	}
	if status, _, body := f.call(client, "GET", "/api/v1/advertisements/lyon", nil); status != 403 || reasonOf(t, body) != "ForeignCluster" {
		t.Errorf("another's: answered %d %s", status, body)
	}
}

func TestMarketIsShown(t *testing.T) {
	f := startFleet(t)
	f.market.flavors = []v1alpha1.Flavor{{Metadata: v1alpha1.Metadata{Name: "a", Namespace: "paris"}}, {Metadata: v1alpha1.Metadata{Name: "b", Namespace: "paris"}}}
	client := f.client(&pki.Request{Name: "ada", Role: pki.Operator}, nil)
	status, headers, body := f.call(client, "GET", "/market", nil)
	if status != 200 || headers.Get(wire.HeaderMarket) != feed.String() || strings.Count(string(body), "---\n") != 2 || !strings.Contains(string(body), "name: b\n") {
		t.Errorf("answered %d %v\n%s", status, headers, body)
	}
	_, headers, body = f.call(client, "GET", "/market", nil, "Accept", "application/json")
	var answer wire.MarketAnswer
	if err := json.Unmarshal(body, &answer); err != nil || answer.Market != feed.String() || len(answer.Flavors) != 2 || headers.Get("Content-Type") != "application/json" {
		t.Errorf("answered %s (%v)", body, err)
	}
}

// Who sees what of the market: prices are for those who plan, contracts' names,
// which name tenants, for operators; an agent sees what it reported itself.
func TestMarketByRole(t *testing.T) {
	f := startFleet(t)
	flavor := func(provider string) v1alpha1.Flavor {
		out := v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "h100", Namespace: provider}}
		out.Spec.Price = &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal("2.85")}}
		out.Spec.Held = map[string]v1alpha1.Resources{"nlp-secret-0-aaaa": {"gpu": v1alpha1.AmountOf(1)}}
		out.Spec.Refused = map[string]string{"nlp-secret-1-aaaa": "no"}
		out.Spec.Usage = map[string]v1alpha1.Resources{"nlp-secret-2-aaaa": {"gpu": v1alpha1.AmountOf(1)}}
		return out
	}
	f.market.flavors = []v1alpha1.Flavor{flavor("lyon"), flavor("paris")}
	for name, tc := range map[string]struct {
		who                    pki.Request
		lyon, holders, present bool
	}{
		"an operator": {pki.Request{Name: "ada", Role: pki.Operator}, true, true, true},
		"a reader":    {pki.Request{Name: "bo", Role: pki.Reader}, true, false, true},
		"paris":       {pki.Request{Name: "paris"}, false, true, true},
		"milan":       {pki.Request{Name: "milan"}, false, false, false},
	} {
		for _, accept := range []string{"application/yaml", "application/json"} {
			_, _, body := f.call(f.client(&tc.who, nil), "GET", "/market", nil, "Accept", accept)
			text := string(body)
			if strings.Contains(text, "lyon") != tc.lyon || strings.Contains(text, "nlp-secret") != tc.holders || strings.Contains(text, "2.85") != tc.present {
				t.Errorf("%s (%s) sees\n%s", name, accept, text)
			}
		}
	}
}

func TestRefusalsOfTheMuxAreJSON(t *testing.T) {
	f := startFleet(t)
	client := f.client(paris, nil)
	if status, _, body := f.call(client, "GET", "/api/v1/reservations", nil); status != 404 || reasonOf(t, body) != "NotFound" {
		t.Errorf("unknown route: answered %d %s", status, body)
	}
	status, headers, body := f.call(client, "DELETE", "/api/v1/advertisements", nil)
	if status != 405 || reasonOf(t, body) != "MethodNotAllowed" || headers.Get("Allow") != "POST" {
		t.Errorf("wrong method: answered %d %s %v", status, body, headers)
	}
}

func TestReportsAreCounted(t *testing.T) {
	f := startFleet(t)
	client := f.client(paris, nil)
	f.call(client, "PUT", wire.FlavorsPath("paris"), []byte(h100), wire.HeaderGeneration, "1.1")
	f.call(client, "PUT", wire.FlavorsPath("paris"), []byte("{"), wire.HeaderGeneration, "1.2")
	text := scrape(t, f.metrics)
	for _, want := range []string{`fleetbroker_advert_total{cluster="paris",result="accepted"} 1`, `fleetbroker_advert_total{cluster="paris",result="rejected"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestTheMarketIsWrittenOnceForEachOfItsStates(t *testing.T) {
	var c rendered
	one, err := c.of("a", []v1alpha1.Flavor{{Metadata: v1alpha1.Metadata{Name: "one", Namespace: "paris"}}})
	if err != nil || !bytes.Contains(one, []byte("name: one")) {
		t.Fatalf("%s %v", one, err)
	}
	if again, err := c.of("a", nil); err != nil || &again[0] != &one[0] {
		t.Errorf("the same state was written again: %s %v", again, err)
	}
	if two, err := c.of("b", []v1alpha1.Flavor{{Metadata: v1alpha1.Metadata{Name: "two", Namespace: "paris"}}}); err != nil || !bytes.Contains(two, []byte("name: two")) {
		t.Errorf("another state: %s %v", two, err)
	}
}
