package reconciler

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
)

// standing is what the remote has acknowledged and nobody foreign has written:
// the only thing that clusters are ever told. It is immutable but for its lazy
// index and for what was made of it for each cluster: an agent may ask hundreds of
// times a second.
type standing struct {
	id       string // of the fleet
	commit   tree.Hash
	at       v1alpha1.Time // of the commit
	seq      uint64        // of the commit, 0 where it has none
	fleet    *fleet.Fleet
	ledger   *ledger.Ledger
	requests func() requestIndex
	traces   *traced.Keeper
	told     sync.Map // of *instructed, by cluster
	held     sync.Map // of wire.Quantities, by cluster
}

// requestIndex finds the intents that came through the API.
type requestIndex struct {
	byCluster map[string][]*model.Intent
	byName    map[string]*model.Intent
}

// indexRequests goes through a fleet once. A name that two files claim is the
// first one's; the reader has frozen both.
func indexRequests(f *fleet.Fleet) requestIndex {
	out := requestIndex{byCluster: map[string][]*model.Intent{}, byName: map[string]*model.Intent{}}
	for _, it := range f.Intents {
		if !isRequest(it.Path) {
			continue
		}
		by := it.Metadata.Annotations[v1alpha1.AnnotationRequestedBy]
		out.byCluster[by] = append(out.byCluster[by], it)
		if out.byName[it.Metadata.Name] == nil {
			out.byName[it.Metadata.Name] = it
		}
	}
	return out
}

// isRequest tells by its path an intent that came through the API.
func isRequest(path string) bool { return strings.HasPrefix(path, ledger.RequestsRoot+"/") }

// listeners are those who wait for news of a cluster.
type listeners struct {
	mu   sync.Mutex
	wait map[string]chan struct{}
}

// of is closed when there may be news of a cluster.
func (l *listeners) of(cluster string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wait == nil {
		l.wait = map[string]chan struct{}{}
	}
	ch := l.wait[cluster]
	if ch == nil {
		ch = make(chan struct{})
		l.wait[cluster] = ch
	}
	return ch
}

// tell wakes those who wait for news of the clusters, or everybody.
func (l *listeners) tell(everybody bool, clusters map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, ch := range l.wait {
		if everybody || clusters[name] {
			close(ch)
			delete(l.wait, name)
		}
	}
}

// stand makes fleet and ledger what clusters are told, and wakes the clusters
// to which that is news. Waking all of them at each commit would cost a fleet
// of a thousand agents more than the commit.
func (r *Reconciler) stand(in *inputs) {
	r.opts.Traces.Follow(r.opts.Repo, in.heads.Ledger.Commit.Hash, in.ledger.Contracts())
	last := r.standing.Load()
	if last != nil && last.fleet == in.fleet && last.ledger == in.ledger && last.commit == in.heads.Ledger.Commit.Hash {
		return // a commit that changes no file has a number of its own
	}
	f := in.fleet
	seq, err := r.opts.Repo.Sequence(in.heads.Ledger.Commit.Hash)
	if err != nil { // agents go by the commit's time then
		r.opts.Log.Warn("number of the ledger's newest commit", "error", err)
	}
	next := &standing{
		id: r.deliver.id, traces: r.opts.Traces, seq: seq,
		commit: in.heads.Ledger.Commit.Hash, at: v1alpha1.TimeOf(in.heads.Ledger.Commit.When()), fleet: f, ledger: in.ledger,
		requests: sync.OnceValue(func() requestIndex { return indexRequests(f) }),
	}
	r.standing.Store(next)
	if last == nil {
		r.listeners.tell(true, nil)
		return
	}
	touched := map[string]bool{}
	for tenant, name := range in.ledger.Differs(last.ledger) {
		for _, c := range slices.Concat(in.ledger.ByIntent(tenant, name), last.ledger.ByIntent(tenant, name)) {
			touched[c.Spec.Provider], touched[c.Spec.Consumer] = true, true
		}
		for _, it := range slices.Concat(intentsCalled(f, intentKey{tenant, name}), intentsCalled(last.fleet, intentKey{tenant, name})) {
			if isRequest(it.Path) {
				touched[it.Metadata.Annotations[v1alpha1.AnnotationRequestedBy]] = true
			}
		}
	}
	// An endpoint or an id in Liqo of one cluster stands in the lists of others.
	everybody := f != last.fleet && !maps.Equal(f.Clusters, last.fleet.Clusters)
	r.listeners.tell(everybody, touched)
}
