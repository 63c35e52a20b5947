package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/accepted"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/cachedir"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
)

// The refs that a fleet repository has beside its branches.
const (
	acceptedInputsRef = "refs/fleetbroker/accepted/inputs"
	acceptedLedgerRef = "refs/fleetbroker/accepted/ledger"
	// MarketPrefix is where market snapshots are chained, one ref a UTC day.
	MarketPrefix = "refs/fleetbroker/market/"
)

// Identity is who commits, and whom to take for one of us.
type Identity struct {
	Name, Email string
	// Signer signs commits; nil: unsigned.
	Signer Signer
	// Trusted are the keys whose signature makes a commit ours. Empty, unless
	// Signed: our committer and a Plan trailer do, which stops accidents only.
	Trusted Keys
	// Signed: nothing but a signature by Trusted makes a commit ours.
	Signed bool
	// Policy are the keys of people of a trust root.
	Policy Keys
	// Fleet is the fleet's id, Root the digest of the trust root; empty: none.
	Fleet, Root string
}

// Observer is told what the write-back does, for metrics. Methods must return
// at once.
type Observer interface {
	// CommitDone reports one call of Commit: how long it took and how it ended
	// (`committed`, `unchanged`, `replan`, `busy`, `refused`, `unknown`,
	// `rewritten`, `error`).
	CommitDone(took time.Duration, items int, outcome string)
	// PushConflict reports one push that lost against another writer.
	PushConflict()
	// LocalTrouble reports that the local copy could not be read or written.
	// Work goes on with a new copy, or in memory.
	LocalTrouble(err error)
}

// Options configure a Repo.
type Options struct {
	// Dir is the state directory; empty: everything in memory.
	Dir string
	// State is told whether files of Dir could be written; nil: LocalTrouble of the
	// Observer is told of failures.
	State *statefile.Health
	// Inputs and Ledger are the branches read and written; they may be equal.
	Inputs, Ledger string
	Identity       Identity
	// InputPaths are the top-level names that people write. Default: those of
	// the fleet repository's layout.
	InputPaths []string
	// Generated are the path prefixes that only the daemon writes. Default:
	// contracts/, manifests/, requests/, sources/. Commit refuses to write elsewhere.
	Generated []string
	// Now is the clock, Sleep waits (returning early with the context's error),
	// Rand gives numbers in [0, 1). Defaults: the real ones.
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	Rand  func() float64
	// Observer may be nil.
	Observer Observer
	// Tries bounds how often one Commit pushes again after losing against
	// another writer. Default 10. Backoff is the full jitter's first ceiling,
	// doubled each time up to 32-fold. Default 50 ms.
	Tries   int
	Backoff time.Duration
	// SettleTimeout bounds each attempt to learn, after a failed push, what
	// became of it, also when the caller's context has ended. Default 10 s.
	SettleTimeout time.Duration
	// StopGrace is how long a push of the ledger that is under way may go on after
	// the caller's context has ended: whoever waits for its answer then gets one.
	// Default 5 s.
	StopGrace time.Duration
	// MaxPacks is the number of local packs beyond which the next Fetch clones
	// again. Default 50.
	MaxPacks int
	// MaxBlob bounds every file read, in bytes. Default 16 MiB.
	MaxBlob int64
	// Bounds of a commit's tree; a larger one says nothing. Default:
	// tree.DefaultBounds.
	Bounds tree.Bounds
	// FlushBytes is how much may lie in memory before it is written out as one
	// pack. Default 32 MiB.
	FlushBytes int
}

func (o *Options) setDefaults() error {
	if o.Inputs == "" || o.Ledger == "" {
		return errors.New("open repository: the branches of inputs and ledger must both be named")
	}
	if o.InputPaths == nil {
		o.InputPaths = []string{"fleet.yaml", "clusters", "tenants", "flavors", "prices", "intents", "bases", "pki", "overlays"}
	}
	if o.Generated == nil {
		o.Generated = []string{"contracts/", "manifests/", "requests/", "sources/"}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	if o.Tries <= 0 {
		o.Tries = 10
	}
	if o.Backoff <= 0 {
		o.Backoff = 50 * time.Millisecond
	}
	if o.SettleTimeout <= 0 {
		o.SettleTimeout = 10 * time.Second
	}
	if o.StopGrace <= 0 {
		o.StopGrace = 5 * time.Second
	}
	if o.MaxPacks <= 0 {
		o.MaxPacks = 50
	}
	if o.MaxBlob <= 0 {
		o.MaxBlob = 16 << 20
	}
	if o.Bounds == (tree.Bounds{}) {
		o.Bounds = tree.DefaultBounds
	}
	if o.FlushBytes <= 0 {
		o.FlushBytes = 32 << 20
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

type nobody struct{}

func (nobody) CommitDone(time.Duration, int, string) {}
func (nobody) PushConflict()                         {}
func (nobody) LocalTrouble(error)                    {}

// Repo is a local copy of one remote repository and the way to write to it.
type Repo struct {
	remote    Remote
	opts      Options
	inputsRef string
	ledgerRef string
	store     *store
	vetter    *tree.Vetter
	graph     *ancestry.Graph
	identity  atomic.Pointer[Identity]

	// mu serialises the verbs; what follows is under it.
	mu       sync.Mutex
	cache    *cachedir.Dir        // nil: memory
	whole    map[string]tree.Hash // refs whose closure the cache holds on disk
	refs     map[string]tree.Hash // the remote's, as last read; nil: never
	accepted Accepted
	unsaved  bool  // accepted is newer than its file
	damaged  error // why the file of accepted heads cannot be read; nil when it can
	pending  []attempt
	settled  []Settled
	alarms   map[string]string      // accepted refs that the trust root does not bear out, and why
	refused  map[string]refusedHead // branches whose heads are not taken in
	market   marketTip
	// tips are the market refs as last seen (knownTips), wrongMarkets those that
	// another account moved; from marketKeep on none is pruned.
	tips         map[string]tree.Hash
	wrongMarkets map[string]wrongMarket
	marketKeep   string
	marks        map[tree.Hash]mark // numbers and roots at ledger heads; under one identity
	offers       []madeOffer        // commits offered since the start, newest last
	// ourOffer and foreignOffer are what the branch of offers was at without a note,
	// and whose that is.
	ourOffer, foreignOffer tree.Hash
	// diskRetry is when a disk that failed is tried again, probeDue when the state
	// directory is; unwritable: it could not be written then.
	diskRetry, probeDue time.Time
	unwritable          bool
	cacheDamage         error // why the cache is damaged that is about to be replaced
	// strayRetry is when refs in the way of ours are deleted again, after it failed.
	strayRetry time.Time
	// letGo is the operator's word of rewritten histories (nil: none), unreached those of
	// its entries that were looked for, named up to which head the ledger was searched for
	// what Dropping is asked, and namedThere what was found.
	letGo      letgo.Source
	unreached  map[letgo.Entry]bool
	named      tree.Hash
	namedThere []droppedHead
	// recorded is what the ledger noted of the inputs when it was last looked at.
	recorded recorded
	// descends remembers pairs (accepted, head) found in order.
	descends map[[2]tree.Hash]bool
}

// Open opens the local copy. It does not use the network; the first Fetch
// clones what is missing. A state directory that cannot be used is replaced by
// memory, and said so to the Observer.
func Open(_ context.Context, remote Remote, opts Options) (*Repo, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	r := &Repo{
		remote: remote, opts: opts,
		inputsRef: Branch(opts.Inputs), ledgerRef: Branch(opts.Ledger),
		store: newStore(nil, opts.MaxBlob), vetter: tree.NewVetter(opts.Bounds), whole: map[string]tree.Hash{}, descends: map[[2]tree.Hash]bool{}, marks: map[tree.Hash]mark{},
	}
	r.graph = ancestry.New(r.parents)
	r.identity.Store(&opts.Identity)
	if opts.Dir != "" {
		statefile.RemoveTemporary(opts.Dir, statefile.Unfinished(acceptedFile))
		statefile.RemoveTemporary(opts.Dir, statefile.Temporary)
	}
	r.accepted, r.damaged = accepted.Read(opts.Dir)
	if opts.Dir == "" {
		return r, nil
	}
	r.probe()
	if c, refs := cachedir.Open(opts.Dir, opts.Now(), opts.Observer.LocalTrouble); c != nil {
		r.cache, r.whole = c, refs
		r.store.disk = c.Disk
	}
	return r, nil
}

// CachedInputs is the inputs' tree as the local copy last had it whole, without
// asking the remote: of a daemon's former life, or of this one.
func (r *Repo) CachedInputs() (tree.Tree, bool) {
	r.mu.Lock()
	h := r.whole[r.inputsRef]
	r.mu.Unlock()
	if h.IsZero() || !r.store.has(h) {
		return tree.Tree{}, false
	}
	t, err := r.Tree(h)
	return t, err == nil
}

// SetIdentity changes who commits and whom to trust, as the fleet's files say.
func (r *Repo) SetIdentity(id Identity) {
	r.identity.Store(&id)
}

// Close writes the local copy out and releases it. The Repo must not be used
// afterwards; closing it again does nothing.
func (r *Repo) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trySaveAccepted()
	if r.cache == nil {
		return nil
	}
	r.tryFlush()
	c := r.cache
	r.cache = nil
	return c.Close()
}

// flush writes recent objects to disk and notes what the disk now holds whole.
func (r *Repo) flush() error {
	if r.cache == nil {
		return nil
	}
	if err := r.store.flush(); err != nil {
		return fmt.Errorf("write the local copy: %w", err)
	}
	whole := map[string]tree.Hash{}
	for _, ref := range r.tracked() {
		if h := r.refs[ref]; !h.IsZero() && r.store.has(h) {
			whole[ref] = h
		}
	}
	if len(whole) == 0 {
		return nil
	}
	r.whole = whole
	if err := r.cache.WriteHeads(whole); err != nil {
		return fmt.Errorf("write the local copy: %w", err)
	}
	return nil
}

// tracked are the refs whose objects the local copy holds.
func (r *Repo) tracked() []string {
	if r.inputsRef == r.ledgerRef {
		return []string{r.inputsRef, acceptedInputsRef, acceptedLedgerRef, offeredRef}
	}
	return []string{r.inputsRef, r.ledgerRef, acceptedInputsRef, acceptedLedgerRef, offeredRef}
}

// Tree is the tree of a commit that the local copy holds.
func (r *Repo) Tree(commit tree.Hash) (tree.Tree, error) {
	if commit.IsZero() {
		return tree.Tree{}, nil
	}
	c, err := r.store.commit(commit)
	if err != nil {
		return tree.Tree{}, fmt.Errorf("read commit %s: %w", commit.Short(), err)
	}
	return tree.Tree{Store: r.store, Root: c.Tree}, nil
}
