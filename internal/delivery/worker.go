package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery/applier"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fleets"
	"github.com/fleetbroker/fleetbroker/internal/delivery/watches"
)

// Pauses after failures, of reaching a cluster and of changing it.
const (
	firstPause = 250 * time.Millisecond
	longPause  = time.Minute
)

// maxCommits is how many commits of the ledger with the same manifests are
// remembered: a GitOps tool lags by some.
const maxCommits = 256

// origin is why a unit is looked at.
type origin uint8

const (
	drift origin = iota // the cluster changed, or a try failed: confirm first
	fresh               // Deliver brought it
)

// worker serves one consumer cluster.
type worker struct {
	name    string
	options *Options
	log     *slog.Logger
	bump    func()
	ctx     context.Context
	stop    context.CancelFunc
	wake    chan struct{}
	peers   chan struct{} // wakes whoever looks after peerings

	own fleets.Set // of what this fleet applies there

	// desired and elder belong to the goroutine of run.
	desired  desiredObjects
	elder    fleets.Elder
	parented string // namespaces that the ApplySet's parent names

	mu       sync.Mutex
	adopted  bool // in this term: what was applied before the set had a name of its own is in it
	target   Desired
	sequence uint64 // grows with target
	loaded   uint64 // the sequence that desired holds
	applied  tree.Hash
	// commits of the ledger that have the target's manifests, newest last.
	commits  []tree.Hash
	dirty    map[key]origin
	inflight map[key]bool
	waiting  map[key]bool
	trouble  map[key]string
	blockers map[string][]string // what is left on Nodes that are drained
	unheld   map[string]string   // slices that their provider has forgotten, and since when
	conn     *conn
	gitops   *gitops         // nil in mode direct
	leading  context.Context // ends with the Lease; nil: not held
	wrote    time.Time       // when the Lease was last written as ours
	holder   string          // of the Lease, as last seen
	// record is the Lease as last looked at, renewed when another look found it
	// renewed; zero: never.
	record   resourcelock.LeaderElectionRecord
	renewed  time.Time
	problems problems // of the cluster as a whole
	down     bool     // it did not answer the last probe
	// holding: a pass writes, and news waits; held: there is some.
	holding, held bool
	// refused say what is not delivered, refusedOf of which contracts; older:
	// nothing is, because the ledger has manifests of an older rendering.
	refused   []string
	untold    []string // of refused, what the cluster has no event of yet
	refusedOf map[string]string
	older     bool
	differs   bool // the ledger has other manifests than are rendered
	// said is the reason logged last for which the cluster is not served; "": it is.
	said string
}

func newWorker(name string, options *Options, bump func()) *worker {
	ctx, stop := context.WithCancel(context.Background())
	own := fleets.Set{Fleet: options.Fleet, Namespace: options.Namespace}
	return &worker{
		name: name, options: options, log: options.Log.With("cluster", name), bump: bump,
		ctx: ctx, stop: stop, wake: make(chan struct{}, 1), peers: make(chan struct{}, 1),
		own: own, desired: desiredObjects{own: own},
		dirty: map[key]origin{}, inflight: map[key]bool{}, waiting: map[key]bool{}, trouble: map[key]string{}, unheld: map[string]string{},
		problems: problems{reach: notReachedYet},
	}
}

// notReachedYet is the problem of a cluster that nobody has tried to reach.
const notReachedYet = "not reached yet"

// problems are what is wrong with a cluster as a whole, each said and taken
// back by who finds it out.
type problems struct{ reach, manifests, lease, confirm string }

// first is the problem to show: the others may follow from it.
func (p problems) first() string { return cmp.Or(p.reach, p.manifests, p.lease, p.confirm) }

// set gives the worker a new target.
func (w *worker) set(want Desired) {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := w.target.alike(want)
	settled := w.applied == w.target.Commit
	if !maps.Equal(w.target.Peers, want.Peers) {
		wakeUp(w.peers)
	}
	for _, refused := range []map[string]string{w.target.Refused, want.Refused} {
		for namespace := range refused {
			if w.target.Refused[namespace] != want.Refused[namespace] {
				w.markLocked(key{kindOffloading, namespace, offloadingName})
				w.nudge()
			}
		}
	}
	w.target = want
	w.noteUnheld(want.Contracts)
	if !same {
		w.commits = nil
	}
	w.commits = append(w.commits[max(0, len(w.commits)-maxCommits):], want.Commit)
	if same && w.loaded == w.sequence { // another commit that does not concern this cluster
		if settled {
			w.applied = want.Commit
		}
		return
	}
	w.sequence++
	w.nudge()
}

func (w *worker) nudge() { wakeUp(w.wake) }

// wakeUp tells a loop that there is something to do, if it does not know yet.
func wakeUp(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (w *worker) mode() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.target.Mode, Direct)
}

// run connects, serves, and connects again, until the worker is stopped.
func (w *worker) run() {
	pause := newPause()
	for w.ctx.Err() == nil {
		began := w.options.Clock.Now()
		err := w.session()
		if w.ctx.Err() != nil {
			return
		}
		if errors.Is(err, errCredentials) || errors.Is(err, errMode) {
			w.log.Info("connects again", "error", err)
			continue
		}
		w.setProblem(err)
		w.unserved(err)
		if w.options.Clock.Since(began) > longPause {
			pause = newPause()
		}
		select {
		case <-w.ctx.Done():
		case <-w.options.Clock.After(pause.Step()):
		}
	}
}

func newPause() *wait.Backoff {
	return &wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 20, Cap: longPause}
}

// Reasons that end a session.
var (
	errCredentials = errors.New("the way to the cluster changed")
	errMode        = errors.New("the mode of delivery changed")
)

// session serves the cluster over one connection and returns why it ended.
func (w *worker) session() error {
	w.mu.Lock()
	target := w.target
	w.mu.Unlock()
	config, err := w.options.Access.RESTConfig(w.ctx, target.Cluster)
	if err != nil {
		return err
	}
	c, err := connect(w.ctx, w.name, config, w.options)
	if err != nil {
		return fmt.Errorf("connect to cluster %s: %w", w.name, err)
	}
	ctx, end := context.WithCancelCause(w.ctx)
	c.foreign, c.bounds.Over = w.foreign, end
	// What the libraries log is said by Status in fewer words.
	quiet := klog.NewContext(ctx, logr.Discard())
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer end(nil)
	for k, inf := range c.informers {
		if _, err := inf.AddEventHandler(w.handler(c, k)); err != nil {
			return err
		}
		tasks.Go(func() { inf.RunWithContext(quiet) })
	}
	mode := w.mode()
	tool := newGitops(mode, c, w.bump)
	if tool != nil {
		for _, inf := range tool.informers {
			tasks.Go(func() { inf.RunWithContext(quiet) })
			tasks.Go(func() {
				cache.WaitForCacheSync(ctx.Done(), inf.HasSynced)
				w.bump() // that there is nothing is news, too
			})
		}
	}
	w.begin(c, tool)
	defer w.finish()
	tasks.Go(func() { w.awaitSync(ctx, c) })
	tasks.Go(func() { w.probe(ctx, c, config, end) })
	tasks.Go(func() { w.peer(ctx, config) })
	tasks.Go(func() { w.watchDrains(ctx, c) })
	if mode == Direct {
		// The Lease is given up only after the last write: not with ctx.
		leaseCtx, giveUp := context.WithCancel(context.WithoutCancel(quiet))
		defer giveUp()
		tasks.Go(func() { w.elect(leaseCtx, c) })
	}
	w.serve(ctx, c, func() bool { return w.mode() == mode })
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errMode
}

// serve makes passes until the context ends or the mode changes.
func (w *worker) serve(ctx context.Context, c *conn, same func() bool) {
	pause := newPause()
	var retry <-chan time.Time
	ticker := w.options.Clock.NewTicker(writtenFor)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			w.lapse(c)
			continue
		case <-w.wake:
		case <-retry:
		}
		if !same() {
			return
		}
		retry = nil
		if err := w.pass(ctx, c); err != nil {
			retry = w.options.Clock.After(pause.Step())
		} else {
			pause = newPause()
		}
	}
}

// begin and finish frame a session.
func (w *worker) begin(c *conn, tool *gitops) {
	w.mu.Lock()
	w.conn, w.gitops, w.down, w.problems, w.parented = c, tool, false, problems{}, ""
	w.mu.Unlock()
	w.bump()
}

func (w *worker) finish() {
	w.mu.Lock()
	w.conn, w.gitops, w.leading = nil, nil, nil
	w.mu.Unlock()
	w.bump()
}

// awaitSync starts over once everything that is there has been read.
func (w *worker) awaitSync(ctx context.Context, c *conn) {
	ticker := w.options.Clock.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if ok, _ := c.synced(); ok {
			w.served()
			w.restart()
			w.bump()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// restart has every unit looked at, those of unwanted objects too.
func (w *worker) restart() {
	w.mu.Lock()
	w.loaded, w.parented = 0, ""
	w.mu.Unlock()
	w.nudge()
}

// probe asks from time to time whether the cluster answers and whether the way
// to it is still the same.
func (w *worker) probe(ctx context.Context, c *conn, config *rest.Config, end context.CancelCauseFunc) {
	ticker := w.options.Clock.NewTicker(w.options.ProbeInterval)
	defer ticker.Stop()
	was, down := true, false
	for {
		ask := down
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			ask = ask || c.silentFor() >= w.options.ProbeInterval
		case <-c.doubt:
			if down { // known, and this may be the probe itself
				continue
			}
			ask = true
		}
		w.mu.Lock()
		cluster := w.target.Cluster
		w.mu.Unlock()
		if now, err := w.options.Access.RESTConfig(ctx, cluster); err == nil && !sameWay(now, config) {
			end(errCredentials)
			return
		}
		var err error
		if ask {
			err = c.probe(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		down = err != nil
		w.mu.Lock()
		w.down = down
		w.problems.reach = ""
		if err != nil {
			w.problems.reach = explain(err).Error()
		}
		// A broken watch shows here, too: nobody else would say that the
		// caches are no longer fed.
		reachable := w.reachable()
		w.mu.Unlock()
		if reachable != was {
			w.log.Info("cluster reachability changed", "reachable", reachable, "error", err)
			w.nudge()
		}
		if reachable != was || !reachable { // why it is not may have changed
			w.bump()
		}
		was = reachable
	}
}

// sameWay reports whether two configurations reach a cluster alike.
func sameWay(a, b *rest.Config) bool {
	return a.Host == b.Host && a.BearerToken == b.BearerToken && a.Username == b.Username && a.Password == b.Password &&
		a.ServerName == b.ServerName && string(a.CAData) == string(b.CAData) && string(a.CertData) == string(b.CertData) && string(a.KeyData) == string(b.KeyData) && reflect.DeepEqual(a.ExecProvider, b.ExecProvider)
}

func (w *worker) setProblem(err error) {
	w.mu.Lock()
	w.problems.reach = err.Error()
	w.down = true
	w.mu.Unlock()
	w.bump()
}

// Status is how delivery to one cluster stands.
type Status struct {
	// Mode of delivery.
	Mode string
	// Reachable: it answered last time, and what is there has been read.
	Reachable bool
	// Leading: this daemon holds the cluster's Lease. Elsewhere: another one was
	// seen to hold it, and what is pending is for that one to apply.
	Leading, Elsewhere bool
	// Renewed: the Lease was seen to be renewed, so that its holder lives, or
	// died less than the Lease's duration ago. One that was just looked at for
	// the first time may be a dead daemon's.
	Renewed bool
	// Commit whose manifests are all applied; zero when there is none.
	Commit tree.Hash
	// Pending is how many contracts and other objects are not as wanted yet.
	Pending int
	// Problem of the cluster as a whole, "" when there is none: one that is not
	// reachable without a problem has only just been connected to.
	Problem string
	// Troubles of single objects.
	Troubles  []string
	Admission string // as wire.Observed has it
	// Refused is how much is not delivered: files of the ledger's tree or of what is
	// rendered, and namespaces of Desired.Refused.
	Refused int
}

func (w *worker) status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Status{
		Mode: w.target.Mode, Reachable: w.reachable(), Leading: w.leads(), Commit: w.applied,
		Elsewhere: w.holder != "" && w.holder != w.options.Identity,
		Renewed:   !w.renewed.IsZero() && w.options.Clock.Since(w.renewed) < w.options.LeaseDuration,
		Pending:   len(w.dirty) + len(w.inflight) + len(w.waiting), Problem: w.problems.first(), Refused: len(w.refused),
	}
	if s.Mode == "" {
		s.Mode = Direct
	}
	if w.conn != nil {
		s.Admission = cmp.Or(w.conn.gvrs[kindMutating].Version, wire.AdmissionNone)
	}
	if s.Problem == notReachedYet { // it passes: nobody has given the cluster up
		s.Problem = ""
	}
	if w.conn != nil && s.Problem == "" {
		if _, s.Problem = w.conn.synced(); s.Problem == watches.Reading {
			s.Problem = ""
		}
	}
	if w.speaks() {
		for _, k := range sortedKeys(w.trouble) {
			s.Troubles = append(s.Troubles, w.trouble[k])
		}
		for _, text := range w.refused[:min(len(w.refused), maxToldRefusals)] {
			if !slices.Contains(s.Troubles, text) { // an offloading says it by itself, too
				s.Troubles = append(s.Troubles, text)
			}
		}
	}
	if w.gitops != nil {
		s.Pending = 0 // another one applies
		for _, v := range w.verdicts() {
			if v.Trouble != "" && !slices.Contains(s.Troubles, v.Trouble) {
				s.Troubles = append(s.Troubles, v.Trouble)
			}
		}
		slices.Sort(s.Troubles)
	}
	return s
}

// leads reports whether the Lease is ours, and has been renewed in time: one who
// hung does not know yet that it lost it. Called with mu held.
func (w *worker) leads() bool {
	return w.leading != nil && w.leading.Err() == nil && w.options.Clock.Since(w.wrote) < w.options.LeaseDuration
}

// speaks reports whether it is this daemon that changes the cluster, and so tells
// what stands in a contract's way. Called with mu held.
func (w *worker) speaks() bool {
	return cmp.Or(w.target.Mode, Direct) != Direct || w.leads()
}

// verdicts are the GitOps tool's, by tenant; called with mu held.
func (w *worker) verdicts() map[string]applier.Verdict {
	out := map[string]applier.Verdict{}
	if w.gitops == nil {
		return out
	}
	known := func(commit string) bool {
		return slices.ContainsFunc(w.commits, func(h tree.Hash) bool { return h.String() == commit })
	}
	for _, c := range w.target.Contracts {
		if tenant := c.Metadata.Namespace; out[tenant] == (applier.Verdict{}) {
			out[tenant] = w.gitops.of(w.name, tenant, known)
		}
	}
	return out
}

// reachable is called with mu held.
func (w *worker) reachable() bool {
	if w.conn == nil || w.down {
		return false
	}
	ok, _ := w.conn.synced()
	return ok
}
