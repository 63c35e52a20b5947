package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

const (
	// agentPatience is how long an agent's word counts. It tells at least every
	// ten seconds.
	agentPatience = 30 * time.Second
	// maxSent bounds one file for an agent, in bytes.
	maxSent = 4 << 20
)

// ErrNotDelivered says that a cluster is not delivered to by its own agent.
var ErrNotDelivered = errors.New("the cluster's mode of delivery is not agent")

// remote is a consumer whose own agent applies what is wanted and tells what it
// sees: a worker of another process.
type remote struct {
	name    string
	options *Options
	bump    func()
	stop    context.CancelFunc
	heard   chan struct{} // the agent has spoken

	mu      sync.Mutex
	want    Desired
	derived derived         // what want renders to
	sent    *wire.Manifests // want in the agent's words; nil: to be made
	changed chan struct{}   // closed once want is another
	report  *wire.Observed  // the agent's newest word
	// refused say what of the ledger is not given to it, refusedOf of which contracts.
	refused   []string
	refusedOf map[string]string
	at        time.Time // of report
	began     time.Time
}

func newRemote(name string, options *Options, bump func()) *remote {
	return &remote{name: name, options: options, bump: bump, heard: make(chan struct{}, 1), changed: make(chan struct{}), began: options.Clock.Now()}
}

// run tells when an agent falls silent, until the context ends.
func (r *remote) run(ctx context.Context) {
	timer := r.options.Clock.NewTimer(agentPatience)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.heard:
			timer.Reset(agentPatience)
		case <-timer.C():
			r.bump()
		}
	}
}

func (r *remote) set(want Desired) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.want, r.sent = want, nil
	close(r.changed)
	r.changed = make(chan struct{})
}

// end wakes who waits for manifests that will not come.
func (r *remote) end() {
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// manifests are what the agent shall apply; the channel is closed once that may
// be something else.
func (r *remote) manifests() (wire.Manifests, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent == nil {
		sent, err := r.packed()
		if err != nil {
			return wire.Manifests{}, nil, fmt.Errorf("read the manifests of cluster %s at %s: %w", r.name, r.want.Commit.Short(), err)
		}
		r.sent = sent
	}
	return *r.sent, r.changed, nil
}

// packed is what a consumer shall have in an agent's words: what its contracts
// render to. mu is held.
func (r *remote) packed() (*wire.Manifests, error) {
	want := r.want
	now, _, err := r.derived.next(r.name, want)
	if err != nil {
		return nil, err
	}
	files, err := now.all(r.name)
	if err != nil {
		return nil, err
	}
	r.derived = *now
	if err := r.noteRefused(); err != nil {
		return nil, err
	}
	out := &wire.Manifests{Root: want.Tree.Root.String(), Cluster: want.Cluster, Files: map[string]string{}, Contracts: []*v1alpha1.Contract{}, Peers: map[string]wire.Peer{}}
	for name, text := range files {
		out.Files[name] = string(text)
	}
	if out.Overlay, err = texts(want.Overlay); err != nil {
		return nil, err
	}
	for _, c := range want.Contracts {
		out.Contracts = append(out.Contracts, &v1alpha1.Contract{TypeMeta: c.TypeMeta, Metadata: c.Metadata, Spec: c.Spec})
	}
	for name, p := range want.Peers {
		out.Peers[name] = wire.Peer(p)
	}
	out.Refused = want.Refused
	// Marshalling plain values cannot fail, and equal ones give equal bytes.
	text, _ := json.Marshal(out)
	out.Version = fmt.Sprintf("%x", sha256.Sum256(text))[:32]
	out.Commit, out.Traces = want.Commit.String(), tracing.Texts(want.Traces)
	return out, nil
}

// noteRefused says what of the ledger's tree is not given to the agent; the error
// is that nothing is, until the ledger has our rendering. mu is held.
func (r *remote) noteRefused() error {
	var refused []string
	if len(r.derived.differs) > 0 && r.want.Wait != "" {
		return fmt.Errorf("%s: nothing is touched until the ledger has what is rendered", r.want.Wait)
	}
	refused, r.refusedOf = r.derived.refusals(r.name)
	refused = append(refused, conflicts(r.want.Refused)...)
	if !slices.Equal(refused, r.refused) {
		for _, text := range newOnes(r.refused, refused) {
			r.options.Log.WarnContext(tracing.LineOf(text, r.refusedOf, r.want.Traces), "not delivered", "cluster", r.name, "reason", text)
		}
	}
	r.refused = refused
	return nil
}

func texts(t tree.Tree) (map[string]string, error) {
	out := map[string]string{}
	if t.IsZero() {
		return out, nil
	}
	err := t.Walk(func(name string, e tree.Entry) error {
		if e.Kind == tree.Dir {
			return nil
		}
		content, err := t.Store.File(e.Hash, maxSent)
		out[name] = string(content)
		return err
	})
	return out, err
}

// Unpacked is what an agent was given to apply, to be applied from where it runs.
func Unpacked(m wire.Manifests) Desired {
	want := Desired{Cluster: m.Cluster, Mode: Direct, Contracts: m.Contracts, Peers: map[string]Peer{}}
	want.Commit, _ = tree.ParseHash(m.Commit) // for people
	want.Tree, want.Overlay = treeOf(m.Files), treeOf(m.Overlay)
	want.Given = true
	want.Root, _ = tree.ParseHash(m.Root) // what is no hash is confirmed by nobody
	want.Refused, want.Traces = refusedHere(m), tracing.ParseTexts(m.Traces)
	for name, p := range m.Peers {
		want.Peers[name] = Peer(p)
	}
	return want
}

func treeOf(files map[string]string) tree.Tree {
	if len(files) == 0 {
		return tree.Tree{}
	}
	contents := make(map[string][]byte, len(files))
	for name, text := range files {
		contents[name] = []byte(text)
	}
	return tree.NewMemory().Build(contents)
}

// hear takes the agent's word.
func (r *remote) hear(report wire.Observed) {
	r.mu.Lock()
	r.report, r.at = &report, r.options.Clock.Now()
	r.mu.Unlock()
	wakeUp(r.heard)
	r.bump()
}

// silent says since when nothing was heard of the agent, "" when it speaks;
// called with mu held.
func (r *remote) silent() string {
	switch {
	case r.report == nil:
		return "the agent of cluster " + r.name + " has not reported yet what it sees there"
	case r.options.Clock.Since(r.at) >= agentPatience:
		return fmt.Sprintf("the agent of cluster %s has reported nothing since %s", r.name, r.at.UTC().Format(time.RFC3339))
	}
	return ""
}

// observe is what the agent says about each contract. What it does not see
// counts as absent only if it goes by the newest manifests.
func (r *remote) observe() map[string]v1alpha1.ConsumerObservation {
	r.mu.Lock()
	defer r.mu.Unlock()
	silent := r.silent()
	away := silent
	if r.report == nil && r.options.Clock.Since(r.began) < agentPatience { // who has just started has heard nobody
		away = ""
	}
	out := make(map[string]v1alpha1.ConsumerObservation, len(r.want.Contracts))
	for _, c := range r.want.Contracts {
		name := c.Metadata.Name
		if silent != "" {
			out[name] = v1alpha1.ConsumerObservation{Message: away}
			continue
		}
		o, told := r.report.Contracts[name]
		o = o.Apart()
		if !told {
			o = v1alpha1.ConsumerObservation{Reachable: true}
		}
		if o.Message == "" {
			o.Message = r.refusedOf[name]
		}
		if r.report.Root != r.want.Tree.Root.String() {
			for _, p := range []*v1alpha1.Presence{&o.Slice, &o.VirtualNode, &o.Node} {
				if *p == v1alpha1.Absent {
					*p = v1alpha1.Unknown
				}
			}
		}
		out[name] = o
	}
	return out
}

func (r *remote) status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{Mode: Agent, Problem: r.silent(), Pending: 1, Refused: len(r.refused)}
	if s.Problem != "" {
		return s
	}
	s.Reachable, s.Problem, s.Pending, s.Admission = true, r.report.Problem, r.report.Pending, r.report.Admission
	s.Troubles = slices.Concat(r.report.Troubles, r.refused[:min(len(r.refused), maxToldRefusals)])
	switch newest := r.report.Root == r.want.Tree.Root.String(); {
	case newest && r.report.Applied:
		s.Commit = r.want.Commit
	case !newest:
		s.Pending++
	}
	return s
}

// remote finds a cluster that its own agent delivers to.
func (d *Deliverer) remote(cluster string) (*remote, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.remotes[cluster]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("cluster %s: %w", cluster, ErrNotDelivered)
}

// Manifests are what the agent of a cluster shall apply there; the channel is
// closed once that may be something else. ErrNotDelivered: it is not its task.
func (d *Deliverer) Manifests(cluster string) (wire.Manifests, <-chan struct{}, error) {
	r, err := d.remote(cluster)
	if err != nil {
		return wire.Manifests{}, nil, err
	}
	return r.manifests()
}

// Root is the hash of those manifests as the remote has them now: an agent asks
// for it before it acts, as a worker here does.
func (d *Deliverer) Root(ctx context.Context, cluster string) (string, error) {
	r, err := d.remote(cluster)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	err = nil
	if r.sent == nil { // the agent may not act by what is no longer so
		if r.sent, err = r.packed(); err != nil {
			r.sent = nil
		}
	}
	root := r.want.Tree.Root
	r.mu.Unlock()
	if err != nil {
		return "", err
	}
	if d.options.Confirm == nil {
		return root.String(), nil
	}
	root, err = d.options.Confirm(ctx, cluster)
	return root.String(), err
}

// Observed takes what the agent of a cluster sees there.
func (d *Deliverer) Observed(cluster string, report wire.Observed) error {
	r, err := d.remote(cluster)
	if err != nil {
		return err
	}
	r.hear(report)
	return nil
}
