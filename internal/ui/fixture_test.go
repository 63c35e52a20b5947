package ui_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// daemon is what the dashboard is told by: snapshots and commits that a test makes.
type daemon struct {
	mu      sync.Mutex
	snap    *view.Snapshot
	round   int
	commits map[tree.Hash]gitrepo.Commit
	trees   map[tree.Hash]tree.Tree
	files   map[string][]byte // of the inputs
	inputs  tree.Hash
	head    tree.Hash
	now     time.Time
	viewer  view.Viewer
	asks    func(*http.Request) view.Viewer // in place of viewer
	ui      *ui.UI
	stop    chan struct{}
}

func newDaemon(t testing.TB) *daemon {
	t.Helper()
	return newDaemonWith(t, func(*ui.Options) {})
}

// newDaemonWith is one with other options.
func newDaemonWith(t testing.TB, change func(*ui.Options)) *daemon {
	t.Helper()
	d := &daemon{commits: map[tree.Hash]gitrepo.Commit{}, trees: map[tree.Hash]tree.Tree{}, files: map[string][]byte{}, now: plantest.Start.Add(3 * time.Hour), viewer: view.Viewer{All: true}, stop: make(chan struct{})}
	o := ui.Options{
		State: func() *view.Snapshot { d.mu.Lock(); defer d.mu.Unlock(); return d.snap },
		Viewer: func(r *http.Request) view.Viewer {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.asks != nil {
				return d.asks(r)
			}
			return d.viewer
		},
		History:    d,
		CommitPage: func(commit string) string { return "https://git.example.org/acme/fleet/commit/" + commit },
		Stopping:   func(context.Context) <-chan struct{} { return d.stop },
		Now:        func() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return d.now },
		Log:        slog.New(slog.DiscardHandler),
	}
	o.Capacity = planned{}
	change(&o)
	d.ui = ui.New(o)
	return d
}

// Info implements ui.History.
func (d *daemon) Info(h tree.Hash) (gitrepo.Commit, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.commits[h]
	if !ok {
		return c, fmt.Errorf("no commit %s", h)
	}
	return c, nil
}

// Tree implements ui.History.
func (d *daemon) Tree(h tree.Hash) (tree.Tree, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.trees[h], nil
}

// input commits files to the inputs.
func (d *daemon) input(message, author string, at time.Time, files map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, text := range files {
		d.files[name] = []byte(text)
	}
	h := tree.BlobHash([]byte(fmt.Sprint("input", len(d.commits), message)))
	c := gitrepo.Commit{Hash: h, Message: message, Author: gitobj.Person{Name: author, When: at}, Committer: gitobj.Person{Name: author, When: at}}
	if !d.inputs.IsZero() {
		c.Parents = []tree.Hash{d.inputs}
	}
	d.commits[h], d.trees[h], d.inputs = c, tree.NewMemory().Build(d.files), h
}

// commit adds one to the ledger.
func (d *daemon) commit(message, author string, at time.Time) {
	h := tree.BlobHash([]byte(fmt.Sprint(len(d.commits), message)))
	c := gitrepo.Commit{Hash: h, Message: message, Author: gitobj.Person{Name: author, When: at}, Committer: gitobj.Person{Name: author, When: at}, Signed: true}
	if !d.head.IsZero() {
		c.Parents = []tree.Hash{d.head}
	}
	d.commits[h], d.head = c, h
}

// show makes a builder's world the newest round.
func (d *daemon) show(b *plantest.Builder, notices ...view.Notice) {
	plan := b.Plan()
	w := b.W
	f := &fleet.Fleet{Name: w.FleetName, Policy: w.Fleet, Clusters: w.Clusters, Tenants: w.Tenants, Intents: slices.Clone(w.Intents)}
	slices.SortFunc(f.Intents, func(a, b *model.Intent) int {
		return strings.Compare(a.Metadata.Namespace+"/"+a.Metadata.Name, b.Metadata.Namespace+"/"+b.Metadata.Name)
	})
	var states []wire.ContractState
	for c := range w.Ledger.Contracts() {
		if c.Status.Phase.Held() {
			states = append(states, wire.ContractState{
				Name: c.Metadata.Name, Tenant: c.Metadata.Namespace, Intent: c.Spec.Intent.Name, Consumer: c.Spec.Consumer, Provider: c.Spec.Provider, Flavor: c.Spec.Flavor,
				Phase: c.Status.Phase, Reason: c.Status.Reason, Message: c.Status.Message, Since: c.Status.Since,
			})
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.round++
	d.snap = &view.Snapshot{
		Notices: notices, Inputs: d.inputs, Ledger: d.head, Fleet: f, Contracts: w.Ledger, World: &w, Plan: plan, States: states,
		Heard:   func(string) time.Time { return plantest.Start.Add(2*time.Hour + 59*time.Minute + 40*time.Second) },
		Version: fmt.Sprint(d.round),
	}
	d.ui.Changed()
}

// look makes the viewer another.
func (d *daemon) look(v view.Viewer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.viewer = v
}

// get is the answer to a path.
func (d *daemon) get(t testing.TB, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	d.ui.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

// small is a fleet with something of everything: two tenants, three providers, work that
// runs, that waits, and that is refused.
func small() *plantest.Builder {
	b := plantest.New()
	b.W.FleetName = "acme"
	b.Provider("paris", "berlin", "milan").Consumer("rome")
	b.Offer("paris/h100-pool", plantest.Cards("nvidia-h100", 16, "80Gi"), plantest.Costs("2.85"), plantest.In("eu-west-3", "eu-west-3a"))
	b.Offer("berlin/a100-pool", plantest.Cards("nvidia-a100", 32, "40Gi"), plantest.Costs("1.40"), plantest.In("eu-central-1", "eu-central-1a"))
	b.Offer("milan/l4-pool", plantest.Cards("nvidia-l4", 24, "24Gi"), plantest.Costs("0.55"), plantest.In("eu-south-1", "eu-south-1b"))
	b.Offer("milan/cpu", plantest.In("eu-south-1", "eu-south-1a"))
	quota := int64(32)
	b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) {
		s.Budget = &v1alpha1.TenantBudget{Monthly: plantest.Money("20000")}
		s.Quota = &v1alpha1.TenantQuota{GPU: &quota}
		s.Members = []string{"team-vision"}
	})
	b.Tenant("nlp", "rome", func(s *v1alpha1.TenantSpec) { s.Members = []string{"team-nlp", "research"} })
	b.Intent("vision/train", plantest.Wants(8, "nvidia-h100"))
	b.Intent("vision/serve", plantest.Wants(2, "nvidia-l4"), plantest.Times(3))
	b.Intent("nlp/embed", plantest.Wants(4, "nvidia-a100"), plantest.For(72*time.Hour))
	b.Round()
	b.Deliver()
	b.Tick(time.Hour).Round()
	b.Intent("nlp/giant", plantest.Wants(16, "nvidia-h100"))
	b.Intent("nlp/cheap", plantest.Wants(4, "nvidia-h100"), plantest.AtMost("1"))
	b.Round()
	b.Tick(time.Hour)
	return b
}

// commits are a small history of the small fleet.
func (d *daemon) history(b *plantest.Builder) {
	at := plantest.Start.Time
	for c := range b.W.Ledger.Contracts() {
		d.commit(fmt.Sprintf("place %s/%s on %s/%s\n\nContract: %s - -> Reserved\nInputs: 0123456789abcdef0123456789abcdef01234567\nPlan: sha256:00\n", c.Metadata.Namespace, c.Spec.Intent.Name, c.Spec.Provider, c.Spec.Flavor, c.Metadata.Name), "fleetbroker", at)
		at = at.Add(7 * time.Minute)
		d.commit(fmt.Sprintf("%s is active\n\nContract: %s Reserved -> Active\n", c.Metadata.Name, c.Metadata.Name), "fleetbroker", at)
		at = at.Add(7 * time.Minute)
	}
	d.input("A fleet", "Bo", plantest.Start.Time, map[string]string{"fleet.yaml": "1", "clusters/paris.yaml": "1", "clusters/rome.yaml": "1", "tenants/vision.yaml": "1", "tenants/nlp.yaml": "1", "flavors/paris/h100.yaml": "1", "prices/eu.yaml": "1"})
	d.input("vision trains", "Ada", plantest.Start.Time, map[string]string{"intents/vision/train.yaml": "1"})
	d.input("nlp and vision ask for more", "Mallory", plantest.Start.Add(time.Minute), map[string]string{"intents/vision/train.yaml": "2", "intents/nlp/giant.yaml": "2"})
	d.input("vision's quota", "Bo", plantest.Start.Add(time.Hour), map[string]string{"tenants/vision.yaml": "2"})
	all := "everything was seen well again\n\n"
	for c := range b.W.Ledger.Contracts() {
		all += "Contract: " + c.Metadata.Name + " Degraded -> Active\n"
	}
	d.commit(all, "fleetbroker", at)
}

// big is a fleet of so many contracts and flavors.
func big(contracts, flavors int) *plantest.Builder {
	b := plantest.New()
	b.W.FleetName = "big"
	b.Consumer("rome")
	for i := range flavors {
		provider := fmt.Sprintf("provider-%03d", i/10)
		b.Provider(provider)
		b.Offer(fmt.Sprintf("%s/flavor-%02d", provider, i%10), plantest.Cards([]string{"nvidia-h100", "nvidia-a100", "nvidia-l4", "amd-mi300x"}[i%4], 64, "80Gi"), plantest.Costs("2.85"), plantest.In(fmt.Sprintf("region-%d", i%12), "a"))
	}
	const tenants = 50
	for i := range tenants {
		b.Tenant(fmt.Sprintf("tenant-%02d", i), "rome", func(s *v1alpha1.TenantSpec) {
			s.Budget = &v1alpha1.TenantBudget{Monthly: plantest.Money("500000")}
		})
	}
	var ch ledger.Changes
	for i := range contracts {
		tenant, intent := fmt.Sprintf("tenant-%02d", i%tenants), fmt.Sprintf("job-%04d", i/10)
		first := v1alpha1.FirstSeen{At: plantest.Start, Commit: "0123456789abcdef0123456789abcdef01234567", Author: "Ada L. <ada@example.org>"}
		flavor := i % flavors
		c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: ledger.ContractName(tenant, intent, first, int32(i), 0, 0), Namespace: tenant}}
		c.Spec.Intent = v1alpha1.ContractIntent{Name: intent, Path: "intents/" + tenant + "/" + intent + ".yaml", Commit: first.Commit, Author: first.Author, Replica: int32(i)}
		c.Spec.Consumer, c.Spec.Provider, c.Spec.Flavor = "rome", fmt.Sprintf("provider-%03d", flavor/10), fmt.Sprintf("flavor-%02d", flavor%10)
		c.Spec.Slice = c.Metadata.Name
		c.Spec.Resources = plantest.Amounts("cpu=8 memory=64Gi pods=50 nvidia.com/gpu=4")
		c.Spec.GPUs = &v1alpha1.ContractGPU{Count: 4, Model: "nvidia-h100", ResourceName: "nvidia.com/gpu"}
		c.Spec.Price = v1alpha1.ContractPrice{Hourly: *plantest.Money("11.40"), List: *plantest.Money("12.09"), Currency: "EUR", Class: v1alpha1.OnDemand}
		c.Spec.Term.Start = plantest.Start
		c.Status = v1alpha1.ContractStatus{Phase: v1alpha1.PhaseActive, Since: plantest.Start, History: []v1alpha1.PhaseChange{{Phase: v1alpha1.PhaseReserved, At: plantest.Start}, {Phase: v1alpha1.PhaseActive, At: plantest.Start}}}
		ch.Contracts = append(ch.Contracts, model.Change{After: c})
	}
	b.W.Ledger = b.W.Ledger.With(ch)
	return b
}

// aJob is the ID of a simulation that is done already.
const aJob = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// planned has one simulation that is done, so that pages can be looked at; those that run
// are of real jobs (capacity_test.go).
type planned struct{ ui.Capacity }

func (planned) Of(context.Context, string) ([]scenario.Job, []string) {
	return []scenario.Job{doneJob()}, nil
}

func (planned) Job(_ context.Context, _, id string) (scenario.Job, error) {
	if id != aJob {
		return scenario.Job{}, scenario.ErrNone
	}
	return doneJob(), nil
}

func doneJob() scenario.Job {
	as := scenario.Figures{
		Arrived: 40, Placed: 38, NeverPlaced: 2, WaitP50: 0, WaitP90: 5400, WaitMax: 90_000, Cost: *plantest.Money("18231.50"), HourlyEnd: *plantest.Money("61.2"), HourlyPeak: *plantest.Money("80"),
		GPUs: 72, GPUMean: 0.61, GPUIdle: 20, Providers: []scenario.Use{{Name: "paris", Size: "16 GPUs nvidia-h100", Mean: 0.9, Cost: *plantest.Money("12000")}, {Name: "milan", Size: "24 GPUs", Mean: 0.2}},
		Flavors: []scenario.Use{{Name: "paris/h100-pool", Size: "16 GPUs nvidia-h100", Mean: 0.9}}, Tenants: []scenario.Share{{Tenant: "vision", Arrived: 30, WaitP90: 100, Cost: *plantest.Money("11000"), AskedHours: 5000, GotHours: 4800}},
		Never: []scenario.Never{{N: 2, Tenant: "nlp", Asks: "16 GPUs (nvidia-h100), 8 CPU, 64Gi memory", Why: "most offers have too few GPUs"}},
	}
	changed := as
	changed.Arrived, changed.NeverPlaced, changed.Cost, changed.GPUMean, changed.Providers, changed.Never = 60, 22, *plantest.Money("24000"), 0.8, as.Providers[:1], []scenario.Never{{N: 22, Tenant: "nlp", Asks: as.Never[0].Asks, Why: as.Never[0].Why}}
	c := scenario.Change{Days: 14, Growth: "1.5", Without: []string{"milan"}}
	return scenario.Job{
		ID: aJob, State: scenario.Done, Change: c, Words: c.Words(), Started: plantest.Start, Ended: plantest.Start, Progress: 100, Ledger: "0123", From: plantest.Start, To: plantest.Start,
		Rows: 40, Left: 3, AsIs: &as, Changed: &changed,
	}
}
