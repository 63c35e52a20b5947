package spread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
)

func clusterNames(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("c%03d", i)
	}
	return out
}

// Ranks are a permutation, clusters are balanced, and a replica that goes moves its own
// clusters and no other.
func TestRank(t *testing.T) {
	live, first := []string{"a", "b", "c", "d"}, map[string]string{}
	count := map[string]int{}
	for _, name := range clusterNames(1000) {
		seen := map[int]bool{}
		for _, r := range live {
			at := rank(name, r, live)
			if seen[at] || at < 0 || at >= len(live) {
				t.Fatalf("%s: rank %d of %s", name, at, r)
			}
			if seen[at] = true; at == 0 {
				first[name] = r
				count[r]++
			}
		}
	}
	for _, r := range live {
		if count[r] < 200 || count[r] > 300 {
			t.Errorf("%s has %d of 1000 clusters", r, count[r])
		}
	}
	for name, r := range first {
		for _, other := range []string{"a", "b", "c"} {
			if rank(name, other, []string{"a", "b", "c"}) == 0 && r != "d" && other != r {
				t.Errorf("%s moved from %s to %s when d went", name, r, other)
			}
		}
	}
}

// world is several replicas with one store and clusters whose Leases they take.
type world struct {
	t        *testing.T
	clock    *testingclock.FakeClock
	replicas map[string]*replica
	leases   map[string]string        // by cluster
	stored   map[string]wire.Observed // by cluster
	desired  map[string]delivery.Desired
	beyond   map[string]map[string]bool // clusters that a replica does not reach
	cut      bool
	watchers map[string]int           // the most at a time, by cluster, since it was cleared
	rounds   bool                     // each replica makes a round before each look
	gaps     map[string]time.Duration // for how long nobody delivers, by cluster
	gap      time.Duration            // the longest that there was
	serves   string                   // what each cluster admits by
}

type replica struct {
	spread *Deliverer
	w      *world
	name   string
	own    map[string]delivery.Desired
	dead   bool
	away   bool // the fleet repo does not answer it
	maps   map[string]map[string]v1alpha1.ConsumerObservation
	fails  bool // to tell the store
}

func newWorld(t *testing.T, clusters int) *world {
	w := &world{t: t, clock: testingclock.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)), replicas: map[string]*replica{},
		leases: map[string]string{}, stored: map[string]wire.Observed{}, desired: map[string]delivery.Desired{}, beyond: map[string]map[string]bool{}, watchers: map[string]int{}, gaps: map[string]time.Duration{}}
	for _, name := range clusterNames(clusters) {
		w.desired[name] = delivery.Desired{Cluster: &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: name}}, Contracts: []*v1alpha1.Contract{{Metadata: v1alpha1.Metadata{Name: "k"}}}}
	}
	return w
}

func (w *world) start(names ...string) {
	for _, name := range names {
		r := &replica{w: w, name: name, maps: map[string]map[string]v1alpha1.ConsumerObservation{}}
		r.spread = over(r, w.clock, nil)
		r.spread.Join(store{r}, name)
		w.replicas[name] = r
	}
	for _, name := range names { // all are known to live by now
		w.replicas[name].spread.Deliver(w.desired)
		w.replicas[name].spread.look(w.t.Context())
	}
}

// kill ends a replica without a word: its Leases run out.
func (w *world) kill(name string) { w.replicas[name].dead = true }

// pass lets time pass, in which every replica looks at whose clusters are.
func (w *world) pass(d time.Duration) {
	for range int(d / lookEvery) {
		w.clock.Step(lookEvery)
		for _, r := range w.replicas {
			if w.rounds && !r.dead {
				r.spread.Deliver(w.desired)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(w.replicas)) {
			if r := w.replicas[name]; !r.dead {
				r.spread.look(w.t.Context())
			}
		}
		for _, name := range slices.Sorted(maps.Keys(w.replicas)) {
			r := w.replicas[name]
			for cluster := range r.own {
				if !r.dead && w.leases[cluster] == "" && !w.beyond[name][cluster] {
					w.leases[cluster] = name
				}
			}
		}
		for cluster, holder := range w.leases {
			if r := w.replicas[holder]; r != nil && r.dead {
				w.leases[cluster] = "" // it ran out; that takes its time, which does not matter here
			}
		}
		for cluster := range w.desired {
			w.watchers[cluster] = max(w.watchers[cluster], w.watching(cluster))
			if w.gaps[cluster] += lookEvery; w.leases[cluster] != "" {
				w.gaps[cluster] = 0
			}
			w.gap = max(w.gap, w.gaps[cluster])
		}
	}
}

func (w *world) watching(cluster string) (n int) {
	for _, r := range w.replicas {
		if _, is := r.own[cluster]; is && !r.dead {
			n++
		}
	}
	return n
}

// Deliver implements Local, as the others do.
func (r *replica) Deliver(own map[string]delivery.Desired) {
	for name := range r.own {
		if _, still := own[name]; !still && r.w.leases[name] == r.name {
			r.w.leases[name] = "" // it is given up
		}
	}
	r.own = maps.Clone(own)
}

func (r *replica) Observe() (v1alpha1.ConsumerObservations, uint64) {
	out := v1alpha1.ConsumerObservations{}
	for name := range r.own {
		if r.maps[name] == nil {
			r.maps[name] = map[string]v1alpha1.ConsumerObservation{"k": {Reachable: true, NodeReady: true, Slice: v1alpha1.Absent, Message: "by " + r.name}}
		}
		out[name] = r.maps[name]
	}
	return out, 1
}

func (r *replica) Status() map[string]delivery.Status {
	out := map[string]delivery.Status{}
	for name := range r.own {
		out[name] = delivery.Status{Reachable: !r.w.beyond[r.name][name], Leading: r.w.leases[name] == r.name, Admission: r.w.serves}
	}
	return out
}

func (r *replica) Differing() map[string]bool { return map[string]bool{} }

func (r *replica) Changed() <-chan struct{} { return nil }

// store is what replicas share, as one of them has it.
type store struct{ *replica }

func (r store) Observe(_ context.Context, cluster string, report wire.Observed) error {
	if r.fails || r.w.cut {
		return errors.New("the store is out of reach")
	}
	if err := report.Check(); err != nil {
		r.w.t.Errorf("%s says of %s what cannot be said: %v", r.name, cluster, err)
	}
	next, _ := wire.ParseGeneration(report.Generation)
	if was, is := r.w.stored[cluster]; is {
		if last, _ := wire.ParseGeneration(was.Generation); next.Cmp(last) < 0 {
			return &wire.StaleEpochError{Last: last}
		}
	}
	r.w.stored[cluster] = report
	for _, other := range r.w.replicas {
		if other != r.replica && !other.dead {
			if err := other.spread.Told(r.name, cluster, report); err != nil {
				r.w.t.Error(err)
			}
		}
	}
	return nil
}

func (r store) Beats(name string) bool {
	other := r.w.replicas[name]
	return other != nil && !other.dead
}

func (r store) Deliverers() ([]string, bool) {
	var out []string
	for name, other := range r.w.replicas {
		if !other.dead && !other.away {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, r.w.cut
}

// balanced checks that each cluster has one watcher, who leads, and is seen by all.
func (w *world) balanced(when string) {
	w.t.Helper()
	for cluster := range w.desired {
		if n := w.watching(cluster); n != 1 || w.leases[cluster] == "" {
			w.t.Errorf("%s: %s is watched by %d and delivered to by %q", when, cluster, n, w.leases[cluster])
		}
		for name, r := range w.replicas {
			if r.dead {
				continue
			}
			all, _ := r.spread.Observe()
			if o := all.Of(cluster, "k"); !o.Reachable || !o.NodeReady || o.Message != "by "+w.leases[cluster] {
				w.t.Errorf("%s: %s sees %+v in %s, where %s delivers", when, name, o, cluster, w.leases[cluster])
			}
		}
	}
}

func TestSpread_EachClusterIsOneReplicas(t *testing.T) {
	w := newWorld(t, 60)
	w.start("a", "b", "c")
	w.pass(2 * time.Minute)
	w.balanced("at the start")
	live := []string{"a", "b", "c"}
	for cluster, holder := range w.leases {
		if rank(cluster, holder, live) != 0 {
			t.Errorf("%s is delivered to by %s, which is not the first", cluster, holder)
		}
	}
	clear(w.watchers)
	w.pass(5 * time.Minute)
	for cluster, n := range w.watchers {
		if n != 1 {
			t.Errorf("%s was watched by %d at a time", cluster, n)
		}
	}
	// Who says the same keeps the map, and the number stays.
	r := w.replicas["a"]
	before, n := r.spread.Observe()
	w.pass(time.Minute)
	if after, m := r.spread.Observe(); n != m || len(after) != len(before) {
		t.Errorf("nothing changed, and the number grew from %d to %d", n, m)
	}
}

// The clusters of a replica that dies are taken over, and are unreachable until then,
// not gone; those of others stay where they are.
func TestSpread_ADeadReplicasClustersAreTakenOver(t *testing.T) {
	w := newWorld(t, 40)
	w.start("a", "b", "c")
	w.pass(2 * time.Minute)
	before := maps.Clone(w.leases)
	w.kill("b")
	for range 80 * time.Second / lookEvery {
		w.pass(lookEvery)
		for _, name := range []string{"a", "c"} {
			all, _ := w.replicas[name].spread.Observe()
			for cluster := range w.desired {
				if o := all.Of(cluster, "k"); before[cluster] == "b" && !o.Reachable && (o.Slice == v1alpha1.Absent || !strings.Contains(o.Message, "no replica has reported")) {
					t.Fatalf("%s says of %s: %+v", name, cluster, o)
				}
			}
		}
	}
	w.balanced("b is dead")
	for cluster, holder := range before {
		if holder != "b" && w.leases[cluster] != holder {
			t.Errorf("%s moved from %s to %s", cluster, holder, w.leases[cluster])
		}
	}
}

// A replica that the fleet repo does not answer any more hands its clusters to those that
// it answers: it would apply what was once, and what others see as gone they could not
// believe of it.
func TestSpread_WhoIsCutOffFromTheFleetRepoHandsItsClustersOver(t *testing.T) {
	w := newWorld(t, 12)
	w.start("a", "b", "c")
	w.pass(2 * time.Minute)
	before := maps.Clone(w.leases)
	w.replicas["b"].away = true
	w.pass(15 * time.Minute)
	w.balanced("b is cut off from the fleet repo")
	had := 0
	for cluster, holder := range before {
		if now := w.leases[cluster]; holder == "b" && now == "b" || holder != "b" && now != holder {
			t.Errorf("%s, of %s before, is %s's", cluster, holder, now)
		}
		if holder == "b" {
			had++
		}
	}
	if had == 0 {
		t.Fatal("b had no cluster")
	}
}

// To a replica that joins clusters move one at a time, at most a tenth of the holder's
// a minute, and none in which something is being released.
func TestSpread_MovesAreGraceful(t *testing.T) {
	w := newWorld(t, 60)
	drains := ""
	w.start("a")
	w.pass(time.Minute)
	for cluster := range w.desired {
		if rank(cluster, "b", []string{"a", "b"}) == 0 && (drains == "" || cluster < drains) {
			drains = cluster
		}
	}
	d := w.desired[drains]
	d.Contracts = []*v1alpha1.Contract{{Metadata: v1alpha1.Metadata{Name: "k"}, Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseReleasing}}}
	w.desired[drains] = d
	w.start("b")
	w.replicas["a"].spread.Deliver(w.desired)
	for minute := range 20 {
		before := maps.Clone(w.leases)
		clear(w.watchers)
		held := len(w.replicas["a"].own)
		w.pass(time.Minute)
		moves := 0
		for cluster, holder := range w.leases {
			if before[cluster] != holder {
				moves++
			}
		}
		if moves > max(1, held/10)+1 { // one of the minute before may land in this
			t.Errorf("minute %d: %d of %d clusters moved", minute, moves, held)
		}
	}
	if w.leases[drains] != "a" {
		t.Errorf("%s, which drains, moved to %s", drains, w.leases[drains])
	}
	d.Contracts = []*v1alpha1.Contract{{Metadata: v1alpha1.Metadata{Name: "k"}}}
	w.desired[drains] = d
	for _, r := range w.replicas {
		r.spread.Deliver(w.desired)
	}
	w.pass(2 * time.Minute)
	w.balanced("all have moved")
	for cluster, holder := range w.leases {
		if rank(cluster, holder, []string{"a", "b"}) != 0 {
			t.Errorf("%s is still delivered to by %s", cluster, holder)
		}
	}
}

// A cluster that is handed over is another's at once, also where the replica that does so
// makes one round after the other: it says that it hands over whenever it does.
func TestSpread_HandsOverAtOnce(t *testing.T) {
	w := newWorld(t, 20)
	w.rounds = true
	w.start("a")
	w.pass(time.Minute)
	w.start("b")
	w.gap = 0
	w.pass(20 * time.Minute)
	w.balanced("all have moved")
	if w.gap > 3*lookEvery {
		t.Errorf("a cluster had nobody who delivers for %s", w.gap)
	}
}

// A cluster that its replica does not reach is delivered to by the next one, which
// keeps it.
func TestSpread_WhoDoesNotReachAClusterLosesIt(t *testing.T) {
	w := newWorld(t, 10)
	const lost = "c003"
	first, second := "a", "b"
	if rank(lost, "a", []string{"a", "b"}) != 0 {
		first, second = "b", "a"
	}
	w.beyond[first] = map[string]bool{lost: true}
	w.start("a", "b")
	w.pass(3 * time.Minute)
	if w.leases[lost] != second {
		t.Fatalf("%s is delivered to by %q; want %s", lost, w.leases[lost], second)
	}
	w.balanced("taken by the next")
	w.pass(30 * time.Minute)
	if w.leases[lost] != second {
		t.Errorf("%s went back to %s, which does not reach it", lost, w.leases[lost])
	}
}

// Without the store nothing moves, and a replica that never had it tries all.
func TestSpread_CutOffNothingMoves(t *testing.T) {
	w := newWorld(t, 20)
	w.start("a", "b")
	w.pass(time.Minute)
	w.cut = true
	before := maps.Clone(w.leases)
	w.pass(10 * time.Minute)
	if !maps.Equal(before, w.leases) {
		t.Errorf("moved while cut off: %v, were %v", w.leases, before)
	}
	w.start("c")
	w.pass(30 * time.Second)
	if n := len(w.replicas["c"].own); n != 0 {
		t.Errorf("a replica that has just started takes %d clusters", n)
	}
	w.pass(time.Minute)
	if n := len(w.replicas["c"].own); n != 20 || !maps.Equal(before, w.leases) {
		t.Errorf("after a minute it tries %d clusters, Leases %v", n, w.leases)
	}
}

// A word of an earlier term says nothing after one of a later, whoever's clock is ahead.
func TestSpread_AnEarlierTermsWordIsNotTaken(t *testing.T) {
	w := newWorld(t, 1)
	w.start("a")
	r := w.replicas["a"]
	p := r.spread.places["c000"]
	p.mine, p.own, r.own = false, wire.Generation{}, nil
	word := func(epoch uint64, text string) {
		report := wire.Observed{Generation: wire.Generation{Epoch: epoch, N: 1}.String(), Leading: true, Contracts: map[string]v1alpha1.ConsumerObservation{"k": {Reachable: true, Message: text}}}
		if err := r.spread.Observed("c000", report); err != nil {
			t.Fatal(err)
		}
	}
	says := func() string {
		all, _ := r.spread.Observe()
		return all.Of("c000", "k").Message
	}
	future := uint64(w.clock.Now().Add(time.Hour).UnixNano())
	word(future, "later")
	word(future-1, "earlier")
	if got := says(); got != "later" {
		t.Errorf("it goes by %q", got)
	}
	// Who takes the cluster next is above it, whatever its own clock says.
	w.clock.Step(fresh)
	r.spread.look(t.Context())
	w.leases["c000"] = "a"
	r.spread.look(t.Context())
	if !p.mine || p.own.Epoch <= future {
		t.Errorf("mine %t, term %d after one of %d", p.mine, p.own.Epoch, future)
	}
}

// A word whose epoch is ahead, in the store or heard, keeps what who leads sees from the
// others for one look; and is forgotten with its object.
func TestSpread_GoesAboveAnEpochAhead(t *testing.T) {
	w := newWorld(t, 1)
	w.start("a", "b")
	w.pass(3 * time.Minute)
	holder := w.replicas[w.leases["c000"]]
	other := w.replicas["a"]
	if holder == other {
		other = w.replicas["b"]
	}
	ahead := wire.Generation{Epoch: uint64(w.clock.Now().Add(time.Hour).UnixNano()), N: 7}
	forged := wire.Observed{Generation: ahead.String(), Contracts: map[string]v1alpha1.ConsumerObservation{"k-c000": {Message: "forged"}}}
	w.stored["c000"] = forged
	if err := other.spread.Told("x", "c000", forged); err != nil {
		t.Fatal(err)
	}
	w.pass(tellEvery + 2*lookEvery)
	if got, err := wire.ParseGeneration(w.stored["c000"].Generation); err != nil || got.Epoch <= ahead.Epoch {
		t.Errorf("the store has %v, %v", got, err)
	}
	if p := other.spread.places["c000"]; p.word == nil || p.by != holder.name || p.last.Epoch <= ahead.Epoch {
		t.Errorf("the other goes by %v of %s", p.last, p.by)
	}
	other.spread.Forgotten("c000")
	early := wire.Observed{Generation: "7.1", Leading: true}
	if err := other.spread.Told("x", "c000", early); err != nil {
		t.Fatal(err)
	}
	if p := other.spread.places["c000"]; p.by != "x" {
		t.Error("the word after the object was deleted is not taken")
	}
}

// Two that start at the same moment, each before it knows of the other, both try all:
// who gets no Lease lets go when it hears who has it, whoever's term is the later.
func TestSpread_WhoStartsAtOnceLetsGo(t *testing.T) {
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		w := newWorld(t, 20)
		for _, name := range order {
			w.start(name) // the first knows of no other
			w.clock.Step(time.Millisecond)
		}
		for _, r := range w.replicas {
			for name := range w.desired {
				p := r.spread.places[name]
				p.mine = true
				p.own = wire.Generation{Epoch: uint64(w.clock.Now().UnixNano())}
			}
			r.own = maps.Clone(w.desired)
			w.clock.Step(time.Millisecond)
		}
		w.pass(20 * time.Minute)
		w.balanced("both had tried all")
	}
}
