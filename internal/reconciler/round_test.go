package reconciler

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// clusters is a Delivery that remembers what it was told. Everything that it
// was told stands there at once.
type clusters struct {
	desired map[string]delivery.Desired
	told    int
	// admission is what the clusters serve (spread.Deliverer.Admission), and how often it changed.
	admission map[string]string
	changed   int
}

func (c *clusters) Admission() map[string]string { return c.admission }

func (c *clusters) Deliver(d map[string]delivery.Desired) { c.desired, c.told = d, c.told+1 }

func (c *clusters) Observe() (v1alpha1.ConsumerObservations, uint64) {
	all := v1alpha1.ConsumerObservations{}
	for name, d := range c.desired {
		out := map[string]v1alpha1.ConsumerObservation{}
		all[name] = out
		slices := map[string]bool{}
		_ = d.Tree.Walk(func(name string, _ tree.Entry) error {
			slices[strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], "-slice.yaml")] = true
			return nil
		})
		for _, ct := range d.Contracts {
			o := v1alpha1.ConsumerObservation{Reachable: true, Slice: v1alpha1.Absent, VirtualNode: v1alpha1.Absent, Node: v1alpha1.Absent}
			if slices[ct.Metadata.Name] {
				o.Slice = v1alpha1.Present
			}
			out[ct.Metadata.Name] = o
		}
	}
	return all, uint64(c.told + c.changed)
}

// story is a reconciler on a repository in memory, and time that stands still
// until it is moved.
type story struct {
	t        *testing.T
	remote   *memremote.Remote
	clusters *clusters
	r        *Reconciler
	at       time.Time
	ledger   string
	root     *trust.Root    // nil: none
	signer   gitrepo.Signer // of the daemon
	bounds   tree.Bounds    // of trees; zero: the default
	pushes   *pushbudget.Budget
	leads    func() bool
	tracer   *tracing.Tracer // nil: off
	lines    logtest.Lines   // what it logs
}

var ada = gitobj.Person{Name: "Ada L.", Email: "ada@example.org", When: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}

const ground = `apiVersion: fleetbroker.io/v1alpha1
kind: Tenant
metadata: {name: vision}
spec: {consumers: [rome]}
`

func newStory(t *testing.T, ledger string) *story {
	t.Helper()
	s := &story{t: t, remote: memremote.New(), clusters: &clusters{}, at: ada.When.Add(time.Minute), ledger: ledger}
	s.push(map[string]string{
		"fleet.yaml":              "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  writeBack: {inputs: main, branch: " + ledger + ", author: {name: fleetbroker, email: broker@example.org}}\n",
		"clusters/rome.yaml":      "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer]}\n",
		"clusters/paris.yaml":     "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider]}\n",
		"tenants/vision.yaml":     ground,
		"flavors/paris/h100.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"64\", memory: 512Gi, gpu: 8}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"2.50\"}}\n",
	})
	s.start()
	return s
}

// start makes a daemon that knows nothing, as after a crash.
func (s *story) start() {
	s.t.Helper()
	now := func() time.Time { return s.at }
	repo, err := gitrepo.Open(context.Background(), s.pushes.Remote(s.remote, s.ledger), gitrepo.Options{
		Inputs: "main", Ledger: s.ledger, Bounds: s.bounds, Now: now, Rand: func() float64 { return 0.5 },
		Sleep: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.r = New(Options{Repo: repo, Ledger: s.ledger, Market: market.New(market.Options{Now: now}), Delivery: s.clusters, Now: now, Root: s.root, Signer: s.signer, Pushes: s.pushes, Leads: s.leads, Tracer: s.tracer, Traces: traced.NewKeeper(s.tracer, ""), Log: s.lines.Logger()})
}

func (s *story) push(files map[string]string) {
	s.t.Helper()
	puts := map[string][]byte{}
	for name, content := range files {
		puts[name] = []byte(content)
	}
	if _, err := s.remote.Commit("main", ada, "Ask", gitobj.Change{Puts: puts}); err != nil {
		s.t.Fatal(err)
	}
}

func intentOf(name string, gpus string) string {
	return "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: " + name + ", namespace: vision}\nspec:\n  resources: {cpu: \"4\", memory: 16Gi, pods: \"4\", gpu: \"H100:" + gpus + "\"}\n"
}

// rest makes rounds, each asking the remote first, until one has nothing to
// do, and returns the subjects that were committed.
func (s *story) rest() []string {
	s.t.Helper()
	var out []string
	for range 20 {
		s.at = s.at.Add(time.Minute)
		s.r.Reread()
		o, err := s.r.Round(context.Background())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, c := range o.Committed {
			out = append(out, c.Commit.Subject())
		}
		if len(o.Committed) == 0 && !o.Again {
			return out
		}
	}
	s.t.Fatalf("the reconciler does not come to rest: %q", out)
	return nil
}

func (s *story) expect(got []string, want ...string) {
	s.t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.t.Errorf("committed\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

const (
	placed  = "place vision/train on paris/h100 (4x nvidia-h100, 10.00 EUR/h)"
	peering = "peering vision/train on paris/h100: nothing is granted yet"
)

func TestRoundPlacesDeliversAndRests(t *testing.T) {
	for name, branch := range map[string]string{"TwoBranches": "ledger", "OneBranch": "main"} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, branch)
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			s.expect(s.rest(), placed, peering)
			if s.clusters.told == 0 || s.clusters.desired["rome"].Tree.IsZero() {
				t.Error("rome was not told")
			}
			s.r.Reread()
			o, err := s.r.Round(context.Background())
			if err != nil || o.Plan != nil || o.Again {
				t.Errorf("a round in which nothing had changed planned: %+v, %v", o, err)
			}
			s.start()
			s.expect(s.rest()) // a restart finds only keeps
		})
	}
}

// Who removed an intent stands in the release, over a restart too.
func TestReleaseNamesWhoRemovedTheIntent(t *testing.T) {
	for name, between := range map[string]func(*story){"Running": func(*story) {}, "Restarted": (*story).start} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, "ledger")
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			s.rest()
			grace := gitobj.Person{Name: "Grace H.", Email: "grace@example.org", When: s.at}
			gone, err := s.remote.Commit("main", grace, "Done", gitobj.Change{Deletes: []string{"intents/vision/train.yaml"}})
			if err != nil {
				t.Fatal(err)
			}
			between(s)
			got := s.rest()
			want := "release vision/train from paris/h100 (the intent was removed by Grace H. in " + gone.Short() + ")"
			if len(got) == 0 || got[0] != want {
				t.Errorf("committed %q, want first %q", got, want)
			}
		})
	}
}

// An agent's word that a provider holds nothing counts by its cause: once the agent
// says that it had carried out instructions of the commit that ends the contract, or
// later ones that the ledger has, however often it reports before. An agent that does not
// say what it carried out has to report twice after the slice was seen gone: the report of
// a grant may have been lost (invariant 11).
func TestReleaseWaitsForTheProvidersWord(t *testing.T) {
	const before, ending, later, ahead = -1, 0, 1, 1000 // of the commit that ends the contract
	for name, tc := range map[string]struct {
		class    string
		honoured []int64 // of the reports after the slice was seen gone
		want     []string
	}{
		"carried out":                    {"fleetbroker", []int64{ending}, []string{"released"}},
		"carried out later ones":         {"fleetbroker", []int64{later}, []string{"released"}},
		"carried out earlier ones":       {"fleetbroker", []int64{before}, nil},
		"carried out earlier ones twice": {"fleetbroker", []int64{before, before, before}, nil},
		"carried out at last":            {"fleetbroker", []int64{before, before, ending}, []string{"released"}},
		"more than the ledger has":       {"fleetbroker", []int64{ahead}, nil},
		"more, and twice":                {"fleetbroker", []int64{ahead, ahead}, []string{"released"}},
		"Liqo grants":                    {"default", []int64{later}, nil},
		"Liqo grants, twice":             {"default", []int64{later, later}, []string{"released"}},
	} {
		t.Run(name, func(t *testing.T) { releasedBy(t, tc.class, tc.honoured, tc.want) })
	}
}

func releasedBy(t *testing.T, class string, honoured []int64, want []string) {
	t.Helper()
	s := newStory(t, "ledger")
	f := v1alpha1.Flavor{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: "h100", Namespace: "paris"},
		Spec: v1alpha1.FlavorSpec{
			Class:    class,
			Capacity: v1alpha1.Resources{"cpu": v1alpha1.AmountOf(64000), "memory": v1alpha1.AmountOf(1 << 39), "gpu": v1alpha1.AmountOf(8)},
			GPU:      &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-h100", Memory: v1alpha1.MemorySize{Amount: v1alpha1.AmountOf(80 << 30)}, ResourceName: "nvidia.com/gpu"},
		},
	}
	say := func(full bool) {
		t.Helper()
		var list []v1alpha1.Flavor
		if full {
			list = []v1alpha1.Flavor{f}
		}
		if err := s.r.opts.Market.Report("paris", wire.Generation{Epoch: 1, N: 1}, list, full); err != nil {
			t.Fatal(err)
		}
	}
	say(true)
	s.push(map[string]string{
		"intents/vision/train.yaml": intentOf("train", "4"),
		// Facts of what is reported: with a capacity it would be an offer of its own.
		"flavors/paris/h100.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  labels: {racks: two}\n",
	})
	round := func() []string {
		t.Helper()
		var out []string
		for range 10 {
			s.at = s.at.Add(2 * time.Second)
			s.r.Reread()
			o, err := s.r.Round(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range o.Committed {
				out = append(out, strings.Fields(c.Commit.Subject())[0])
			}
		}
		return out
	}
	s.expect(round(), "place", "peering")
	if _, err := s.remote.Commit("main", ada, "Done", gitobj.Change{Deletes: []string{"intents/vision/train.yaml"}}); err != nil {
		t.Fatal(err)
	}
	s.expect(round(), "release", "drained")
	log, err := s.remote.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	var began int64
	for _, c := range log {
		if strings.HasPrefix(c.Message, "release ") {
			began, _ = strconv.ParseInt(strings.TrimPrefix(gitobj.Trailers(c.Message, "Ledger")[0], "ledger "), 10, 64)
		}
	}
	if began < 2 {
		t.Fatalf("the release is number %d of the ledger", began)
	}
	var got []string
	for _, n := range honoured {
		say(false)
		s.r.opts.Market.SetHonoured("paris", uint64(began+n))
		got = append(got, round()...)
	}
	s.expect(got, want...)
}

// Nothing may be applied, and nobody told, before the remote has the commit.
func TestNothingIsDeliveredBeforeTheRemoteHasIt(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.remote.Fault = func(op memremote.Op) (bool, error) {
		if op.Kind == memremote.Push {
			return false, errors.New("the line is down")
		}
		return true, nil
	}
	if _, err := s.r.Round(context.Background()); err == nil {
		t.Fatal("a round whose push failed says that it went well")
	}
	if d := s.clusters.desired["rome"]; !d.Tree.IsZero() || len(d.Contracts) > 0 {
		t.Errorf("rome was told of %v before the remote had it", d.Contracts)
	}
	s.remote.Fault = nil
	s.expect(s.rest(), placed, peering)
}

// A push whose answer is lost has landed: the contract is found again, and not
// placed twice.
func TestLostAnswerIsNoSecondContract(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	lost := false
	s.remote.Fault = func(op memremote.Op) (bool, error) {
		switch {
		case op.Kind == memremote.Push && !lost:
			lost = true
			return true, errors.New("the line is down")
		case lost && op.Kind == memremote.Refs:
			return false, errors.New("the line is still down")
		}
		return true, nil
	}
	if _, err := s.r.Round(context.Background()); err == nil {
		t.Fatal("a round that cannot know whether its push landed says that it went well")
	}
	s.remote.Fault = nil
	s.expect(s.rest(), peering)
}

// What is refused for one intent does not hold up the others.
func TestRefusalOfOneIntent(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{
		"intents/vision/train.yaml": intentOf("train", "4"),
		"intents/vision/evil.yaml":  intentOf("evil", "2"),
	})
	s.remote.Hook = func(_ string, paths []string) error {
		for _, p := range paths {
			if strings.Contains(p, "/evil/") {
				return errors.New("policy says no")
			}
		}
		return nil
	}
	s.at = s.at.Add(time.Minute)
	o, err := s.r.Round(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Refused) != 1 || o.Refused[0].Key != "vision/evil" {
		t.Errorf("refused: %+v, want vision/evil alone", o.Refused)
	}
	if len(o.Committed) != 1 || o.Committed[0].Commit.Subject() != placed {
		t.Errorf("committed: %+v", o.Committed)
	}
	if v := s.r.View(); len(v.Refused) != 1 || !strings.Contains(v.Refused[0].Cause.Error(), "policy says no") {
		t.Error("nothing tells an operator of the refusal")
	}
	s.lines.Wants(t, "FB1135")
}

func TestForeignEditIsUndoneByName(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	head := s.remote.Head("ledger")
	before, err := s.remote.Tree(head)
	if err != nil {
		t.Fatal(err)
	}
	mallory := gitobj.Person{Name: "Mallory", Email: "mallory@example.org", When: s.at}
	if _, err := s.remote.Commit("ledger", mallory, "More for me", gitobj.Change{Puts: map[string][]byte{"contracts/vision/zz/mine/mine.yaml": []byte("kind: Contract\n")}}); err != nil {
		t.Fatal(err)
	}
	got := s.rest()
	if len(got) != 1 || !strings.HasPrefix(got[0], "undo edits of generated files by Mallory") || !strings.Contains(got[0], "contracts/vision/zz/mine/mine.yaml") {
		t.Errorf("committed %q, want one commit that names who edited what", got)
	}
	after, err := s.remote.Tree(s.remote.Head("ledger"))
	if err != nil {
		t.Fatal(err)
	}
	if after.Root != before.Root {
		t.Error("the ledger is not what it was before the foreign edit")
	}
	s.lines.Wants(t, "FB1122")
}

// Somebody sets the ledger's tree back by a commit on top. Nothing is confirmed by
// that before it is undone: a daemon that lags behind may know just that tree, and
// would make anew what was released.
func TestForeignEditConfirmsNothing(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	if _, err := s.r.Confirm(t.Context(), "rome"); err != nil {
		t.Fatal(err)
	}
	mallory := gitobj.Person{Name: "Mallory", Email: "mallory@example.org", When: s.at}
	if _, err := s.remote.Commit("ledger", mallory, "Roll back", gitobj.Change{Puts: map[string][]byte{"manifests/rome/extra.yaml": []byte("kind: Namespace\n")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.r.Confirm(t.Context(), "rome"); err == nil || !strings.Contains(err.Error(), "edits of generated files by Mallory") {
		t.Errorf("confirmed by a foreign ledger: %v", err)
	}
	s.rest()
	if _, err := s.r.Confirm(t.Context(), "rome"); err != nil {
		t.Errorf("after it was undone: %v", err)
	}
}

func TestRewrittenHistoryStopsEverything(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	told := s.clusters.told
	if _, err := s.remote.Rewrite("ledger", tree.Hash{}, ada, "Start over", gitobj.Change{Puts: map[string][]byte{"README": []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	s.r.Reread()
	_, err := s.r.Round(context.Background())
	var rewritten *gitrepo.ErrRewritten
	if !errors.As(err, &rewritten) {
		t.Fatalf("got %v, want ErrRewritten", err)
	}
	if v := s.r.View(); !v.Stopped || s.r.Ready() == nil {
		t.Errorf("the daemon says it is ready: %+v", v.Trouble)
	}
	if s.clusters.told != told {
		t.Error("clusters were told of a rewritten history")
	}
	if _, err := s.r.Confirm(context.Background(), "rome"); err == nil {
		t.Error("drift would be corrected on a rewritten history")
	}
}

// An outage that changes nothing leaves nothing behind.
func TestReadyAgainAfterAnOutage(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	s.remote.Fault = func(memremote.Op) (bool, error) { return false, errors.New("the remote is away") }
	s.r.Reread()
	if _, err := s.r.Round(context.Background()); err == nil || s.r.Ready() == nil {
		t.Errorf("the remote is away: the round ends with %v, readiness with %v", err, s.r.Ready())
	}
	s.remote.Fault = nil
	s.expect(s.rest())
	if err := s.r.Ready(); err != nil {
		t.Errorf("the remote is back, and the daemon still says: %v", err)
	}
}

func TestShadowWritesNothing(t *testing.T) {
	s := newStory(t, "ledger")
	s.r.opts.Shadow = true
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest())
	if p := s.r.View().Plan; p == nil || len(p.Contracts) != 1 {
		t.Errorf("a shadow must still plan: %+v", p)
	}
	if !s.remote.Head("ledger").IsZero() {
		t.Error("a shadow wrote")
	}
	if mode := s.clusters.desired["rome"].Mode; mode != delivery.None {
		t.Errorf("a shadow delivers by mode %q", mode)
	}
}

func TestOldMarketSnapshotsAreDeleted(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	first := gitrepo.MarketDay(s.at)
	if s.remote.AllRefs()[first].IsZero() {
		t.Fatalf("no market snapshot of the day: %v", s.remote.AllRefs())
	}
	s.at = s.at.Add(29 * 24 * time.Hour)
	s.push(map[string]string{"intents/vision/more.yaml": intentOf("more", "1")})
	s.rest()
	if s.remote.AllRefs()[first].IsZero() {
		t.Error("a snapshot within retention.market (30 days) was deleted")
	}
	s.at = s.at.Add(2 * 24 * time.Hour)
	s.push(map[string]string{"intents/vision/another.yaml": intentOf("another", "1")})
	s.rest()
	if !s.remote.AllRefs()[first].IsZero() {
		t.Error("a snapshot past retention.market is still there")
	}
}
