package handed_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/daemon"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/internal/simulate/handed"
	"github.com/fleetbroker/fleetbroker/internal/simulate/jobs"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// registry says who lives, as a test has it. Each replica sees it with its own name.
type registry struct {
	mu    sync.Mutex
	lives map[string]string // addresses by name
}

func (r *registry) Live() ([]string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.lives)), false
}

func (r *registry) Address(replica string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lives[replica]
}

func (r *registry) set(replica, address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lives[replica] = address; address == "" {
		delete(r.lives, replica)
	}
}

// held is a fleet whose replicas came and went: n of them, each for some hours.
func held(n int) (*view.Snapshot, time.Time) {
	b := plantest.New()
	b.Provider("paris", "milan").Consumer("rome")
	b.Offer("paris/h100", plantest.Cards("nvidia-h100", 64, "80Gi"), plantest.Costs("2.85"))
	b.Tenant("vision", "rome")
	var ch ledger.Changes
	for i := range n {
		first := v1alpha1.FirstSeen{At: plantest.Start, Commit: strings.Repeat("0a", 20), Author: "Ada"}
		intent := fmt.Sprint("job-", i)
		c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: ledger.ContractName("vision", intent, first, 0, 0, 0), Namespace: "vision"}}
		c.Spec.Intent = v1alpha1.ContractIntent{Name: intent, Path: "intents/vision/" + intent + ".yaml", Commit: first.Commit, Author: first.Author}
		c.Spec.Consumer, c.Spec.Provider, c.Spec.Flavor, c.Spec.Slice = "rome", "paris", "h100", c.Metadata.Name
		c.Spec.Resources = plantest.Amounts("cpu=8 memory=64Gi nvidia.com/gpu=2")
		c.Spec.GPUs = &v1alpha1.ContractGPU{Count: 2, Model: "nvidia-h100", ResourceName: "nvidia.com/gpu"}
		c.Spec.Price = v1alpha1.ContractPrice{Hourly: *plantest.Money("5.70"), List: *plantest.Money("5.70"), Currency: "EUR", Class: v1alpha1.OnDemand}
		begun := v1alpha1.TimeOf(plantest.Start.Add(time.Duration(i) * 7 * time.Minute))
		c.Spec.Term.Start = begun
		c.Status = v1alpha1.ContractStatus{Phase: v1alpha1.PhaseReleased, Since: v1alpha1.TimeOf(begun.Add(time.Duration(2+i%5) * time.Hour))}
		ch.Contracts = append(ch.Contracts, model.Change{After: c})
	}
	b.W.Ledger = b.W.Ledger.With(ch)
	w := b.W
	return &view.Snapshot{
		Fleet: &fleet.Fleet{Name: w.FleetName, Policy: w.Fleet, Clusters: w.Clusters, Tenants: w.Tenants}, Contracts: w.Ledger, World: &w, Plan: b.Plan(),
		Heard: func(string) time.Time { return plantest.Start.Time }, Version: "1",
	}, plantest.Start.Add(time.Duration(n)*7*time.Minute + 12*time.Hour)
}

// site is an authority, and replicas of one daemon whose ports are real.
type site struct {
	t   *testing.T
	ca  *pki.Authority
	all *registry
}

func (s *site) files(q pki.Request) *pki.Files {
	s.t.Helper()
	bundle, err := s.ca.Issue(q)
	if err != nil {
		s.t.Fatal(err)
	}
	dir := s.t.TempDir()
	if err := bundle.WriteDir(dir); err != nil {
		s.t.Fatal(err)
	}
	out, err := pki.OpenFiles(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// replica is one, with how often another one asked it.
type replica struct {
	operators string
	agents    *httptest.Server
	asked     atomic.Int32
}

func (s *site) replica(name string, snap *view.Snapshot, now time.Time) *replica {
	s.t.Helper()
	log, revoked := slog.New(slog.DiscardHandler), new(server.Revocations)
	files := s.files(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}})
	revoked.Authorities = files
	peers := &daemon.Peers{Registry: s.all, Replica: name, Files: files}
	own := jobs.New(jobs.Options{Now: func() time.Time { return now }, Log: log, Replica: peers.Name()})
	s.t.Cleanup(own.Close)
	var board *ui.UI
	planner := handed.New(own, peers, func(who, token string) bool { return board.Given(who, token) })
	board = ui.New(ui.Options{
		State: func() *view.Snapshot { return snap },
		Viewer: func(r *http.Request) view.Viewer {
			c := server.CallerOf(r)
			return view.Viewer{Name: c.Name, Identity: c.Identity, All: c.All}
		},
		Capacity: planner, Replica: peers.Name(), Now: func() time.Time { return now }, Log: log,
	})
	guard, err := server.NewGuard(nil, revoked, time.Now, log)
	if err != nil {
		s.t.Fatal(err)
	}
	out := &replica{}
	operators := httptest.NewUnstartedServer(server.NewOperators(server.Operators{Metrics: server.NewMetrics(), Dashboard: board, Guard: guard}))
	operators.TLS = server.GuardTLS(files, log)
	operators.StartTLS()
	s.t.Cleanup(operators.Close)
	out.agents = httptest.NewUnstartedServer(server.NewAgents(server.Agents{Revocations: revoked, Log: log, Handed: map[string]http.Handler{
		wire.HandedSimulationsPath: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out.asked.Add(1)
			planner.ServeHTTP(w, r)
		}),
	}}))
	out.agents.TLS = server.AgentTLS(files, revoked, log)
	out.agents.StartTLS()
	s.t.Cleanup(out.agents.Close)
	out.operators = operators.URL
	s.all.set(name, out.agents.Listener.Addr().String())
	return out
}

// person asks with a certificate.
type person struct {
	t      *testing.T
	client *http.Client
}

func (s *site) person(name string, role pki.Role) *person {
	s.t.Helper()
	m, err := s.files(pki.Request{Name: name, Role: role}).Load()
	if err != nil {
		s.t.Fatal(err)
	}
	return &person{s.t, &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{m.Pair}, RootCAs: m.Authorities}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (p *person) ask(of *replica, method, path, token, body string) (status int, text string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, of.operators+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-CSRF-Token", token)
	answer, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

func (p *person) list(of *replica) ui.CapacityAnswer {
	p.t.Helper()
	var got struct{ Data ui.CapacityAnswer }
	if status, text := p.ask(of, "GET", "/api/ui/capacity", "", ""); status != http.StatusOK || json.Unmarshal([]byte(text), &got) != nil {
		p.t.Fatalf("%d %s", status, text)
	}
	return got.Data
}

func (p *person) begin(of *replica, token, body string) string {
	p.t.Helper()
	var got struct{ Data ui.CapacityJobAnswer }
	if status, text := p.ask(of, "POST", "/api/ui/capacity", token, body); status != http.StatusAccepted || json.Unmarshal([]byte(text), &got) != nil {
		p.t.Fatalf("%d %s", status, text)
	}
	return got.Data.Job.ID
}

// ended is a job once it runs no more, as a replica tells.
func (p *person) ended(of *replica, id string) scenario.Job {
	p.t.Helper()
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); <-time.After(50 * time.Millisecond) {
		var got struct{ Data ui.CapacityJobAnswer }
		if status, text := p.ask(of, "GET", "/api/ui/capacity/"+id, "", ""); status != http.StatusOK || json.Unmarshal([]byte(text), &got) != nil {
			p.t.Fatalf("%d %s", status, text)
		}
		if got.Data.Job.State != scenario.Running {
			return got.Data.Job
		}
	}
	p.t.Fatal("the simulation does not end")
	return scenario.Job{}
}

// refused holds that an answer is a refusal with a reason.
func (p *person) refused(what string, of *replica, method, path, token string, status int, reason string) {
	p.t.Helper()
	if got, text := p.ask(of, method, path, token, "{}"); got != status || !strings.Contains(text, `"reason":"`+reason+`"`) {
		p.t.Errorf("%s: %d %s, want %d %s", what, got, text, status, reason)
	}
}

func open(t *testing.T, held *view.Snapshot, now time.Time) (s *site, a, b *replica) {
	t.Helper()
	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s = &site{t: t, ca: ca, all: &registry{lives: map[string]string{}}}
	return s, s.replica("broker-0", held, now), s.replica("broker-1", held, now)
}

// TestPlanner_AnyReplicaAnswers: a page of one replica begins a simulation at another one;
// the first one shows how far it is, what came of it, and cancels it, for who began it and
// for nobody else.
func TestPlanner_AnyReplicaAnswers(t *testing.T) {
	snap, now := held(4000) // long enough to be cancelled
	s, a, b := open(t, snap, now)
	ada, bo, reader := s.person("ada", pki.Operator), s.person("bo", pki.Operator), s.person("rita", pki.Reader)
	token, his := ada.list(a).Token, bo.list(a).Token
	id := ada.begin(b, token, `{"days": 90, "growth": "2"}`)
	if of, ok := scenario.ReplicaOf(id); !ok || of != "broker-1" {
		t.Fatalf("%s names no replica", id)
	}
	at, page := "/api/ui/capacity/"+id, "/ui/capacity/"+id
	if status, text := ada.ask(a, "GET", page, "", ""); status != http.StatusOK || !strings.Contains(text, "demand × 2") || !strings.Contains(text, page+"/cancel") {
		t.Errorf("the page of the other replica: %d %s", status, text)
	}
	for name, of := range map[string]*replica{"its own": b, "the other": a} {
		if got := ada.list(of); len(got.Jobs) != 1 || got.Jobs[0].ID != id || !got.Running || len(got.Silent) != 0 {
			t.Errorf("%s lists %+v", name, got)
		}
	}
	bo.refused("another person's", a, "GET", at, "", 404, "NotFound")
	bo.refused("another person cancels it", a, "DELETE", at, his, 404, "NotFound")
	ada.refused("without a token", a, "DELETE", at, "", 403, "BadToken")
	ada.refused("with another's token", a, "DELETE", at, his, 403, "BadToken")
	ada.refused("with another's token, at the other replica", b, "DELETE", at, his, 403, "BadToken")
	ada.refused("with a made-up token", a, "DELETE", at, "1.x.broker-1", 403, "BadToken")
	before := b.asked.Load()
	for _, path := range []string{at, "/api/ui/capacity"} {
		reader.refused("a reader", a, "GET", path, "", 403, "Forbidden")
	}
	reader.refused("a reader cancels", a, "DELETE", at, token, 403, "Forbidden")
	if b.asked.Load() != before {
		t.Error("what a reader may not see was asked of the other replica")
	}
	if status, text := ada.ask(a, "DELETE", at, token, ""); status != http.StatusNoContent {
		t.Fatalf("cancel: %d %s", status, text)
	}
	if job := ada.ended(b, id); job.State != scenario.Cancelled {
		t.Errorf("after it was cancelled by the other replica: %+v", job)
	}
	if job := ada.ended(a, ada.begin(b, token, `{"days": 1, "growth": "2"}`)); job.State != scenario.Done || job.Changed == nil || job.Changed.Arrived != 2*job.AsIs.Arrived || job.AsIs.Arrived == 0 {
		t.Errorf("the result by the other replica: %+v", job)
	}
}

// TestPlanner_SaysWhoIsGone: a replica that does not answer is named, and so is one that
// lives no more; nothing else is asked than replicas.
func TestPlanner_SaysWhoIsGone(t *testing.T) {
	snap, now := held(50)
	s, a, b := open(t, snap, now)
	ada := s.person("ada", pki.Operator)
	token := ada.list(b).Token
	id := ada.begin(b, token, `{"days": 1}`)
	at, job := "/api/ui/capacity/"+id, ada.ended(a, id)
	ada.refused("another ID there", a, "GET", "/api/ui/capacity/"+strings.Repeat("A", 26)+".broker-1", "", 404, "NotFound")
	for _, bad := range []string{"x.broker-1", job.ID + "/", strings.Repeat("A", 26) + ".Broker", strings.Repeat("A", 26) + ".10.0.0.1:1"} {
		ada.refused(bad, a, "GET", "/api/ui/capacity/"+bad, "", 404, "NotFound")
	}

	b.agents.Close()
	ada.refused("it does not answer", a, "GET", at, "", 503, wire.ReasonUnavailable)
	ada.refused("its token", a, "DELETE", at, token, 403, "BadToken")
	own := ada.list(a)
	if len(own.Jobs) != 0 || !slices.Equal(own.Silent, []string{"broker-1"}) {
		t.Errorf("the list while it does not answer: %+v", own)
	}
	ada.refused("cancel while it does not answer", a, "DELETE", at, own.Token, 503, wire.ReasonUnavailable)
	if _, text := ada.ask(a, "GET", "/ui/capacity", "", ""); !strings.Contains(text, "Without the simulations of broker-1") {
		t.Errorf("the page does not say who is silent: %s", text)
	}

	s.all.set("broker-1", "")
	ada.refused("it is gone", a, "GET", at, "", 410, "ReplicaGone")
	ada.refused("cancel when it is gone", a, "DELETE", at, own.Token, 410, "ReplicaGone")
	if _, text := ada.ask(a, "GET", "/ui/capacity/"+id, "", ""); !strings.Contains(text, "broker-1") || !strings.Contains(text, "lives no more") {
		t.Errorf("the page does not say who is gone: %s", text)
	}
	if got := ada.list(a); len(got.Silent) != 0 {
		t.Errorf("the list when it is gone: %+v", got)
	}
}

// slow is a replica that answers when its requests end.
type slow struct{ under, most atomic.Int32 }

func (*slow) Name() string     { return "broker-0" }
func (*slow) Others() []string { return nil }
func (*slow) Lost(string) bool { return false }
func (s *slow) Ask(ctx context.Context, _, _ string, _, _ any, _ int64) error {
	n := s.under.Add(1)
	defer s.under.Add(-1)
	for m := s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestPlanner_Bounds: however many ask for what a silent replica has, few wait for it at a
// time, and none for long.
func TestPlanner_Bounds(t *testing.T) {
	peer := &slow{}
	p := handed.New(jobs.New(jobs.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)}), peer, nil)
	begun := time.Now()
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if _, err := p.Job(t.Context(), "ada", strings.Repeat("A", 26)+".broker-1"); err == nil || !strings.Contains(err.Error(), "broker-1") {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); peer.most.Load() != 4 || took > 30*time.Second {
		t.Errorf("%d at a time, %s in all", peer.most.Load(), took)
	}
}
