package sources

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Every is the shortest time between two reads of a source.
const Every = 30 * time.Second

// Options configure a Keeper.
type Options struct {
	// Dir holds the mirrors; empty: a temporary directory, which Close removes.
	Dir string
	// Hosts that sources may be on (--source-hosts).
	Hosts []string
	// Credentials of sources.
	Credentials Credentials
	// KnownHosts is the file with host keys of sources that bring none of their own;
	// empty: the machine's.
	KnownHosts string
	// Root is the root of trust, whose revocations hold for signers of sources too; may
	// be nil.
	Root *trust.Root
	// Accept names heads, by source, that replace the copy though it is no ancestor.
	Accept map[string]tree.Hash
	// Changed is called when there is something new to plan on. It must not block.
	Changed func()
	// Decides reports whether this replica decides; nil: it does. One that does not reads
	// only to stay warm, ten times less often, and does at once when it begins to decide.
	Decides func() bool
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Every is the time between two reads of a source (default Every), Idle that in which
	// a byte must come (default 20 s).
	Every, Idle time.Duration
	// Judging is how long the head of a source may be looked at once it is here (default
	// 2 min). A source whose head takes long is read less often: it is looked at for a
	// fifth of the time at the most.
	Judging time.Duration
	// Disk is how many bytes the mirrors of all sources may take (default DefaultDisk).
	Disk int64
	// Log of sources that freeze and thaw.
	Log *slog.Logger
}

// Keeper reads sources. Make it with New.
type Keeper struct {
	opts Options
	dir  string
	temp bool

	news chan struct{}
	room room

	mu sync.Mutex
	// followed: the fleet's entries are known.
	followed bool
	intents  bool               // must be signed
	all      map[string]*source // with those that are still read after their entry went
	// accept are heads that an operator accepts, by source, until they are copied.
	accept map[string]tree.Hash
	// version grows with each change of what Status says, but for ReadAt.
	version uint64
}

// source is what is known of one. Its fields are under the Keeper's lock but for
// reading.
type source struct {
	// reading is held while it is read.
	reading sync.Mutex

	active bool
	uses   int // how many read it, or will
	entry  v1alpha1.IntentSource
	number int // grows with each change of the entry
	// copied is what the ledger has of it, nil when nothing; stamp is that file's hash.
	copied *v1alpha1.SourceCopy
	stamp  tree.Hash
	newest *snapshot
	// held is a commit whose copy the fleet repo refused, until when it is left out.
	held  tree.Hash
	until time.Time
	// limit is what its server asked for.
	limit  limit
	status Status
	// hook is the secret of its webhooks, as of the last read; woken asks for a read.
	hook  []byte
	woken chan struct{}
}

// snapshot is what was read of a source and may be acted on.
type snapshot struct {
	// base is the commit of the copy that it follows, empty for none.
	base   string
	commit tree.Hash
	number int
	record *v1alpha1.SourceCopy
	// files to copy, by path in the source; nil: the copy is as it should be.
	files map[string][]byte
}

// Status is what is known of a source.
type Status = wire.SourceStatus

// New returns a Keeper that follows nothing yet.
func New(opts Options) (*Keeper, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Decides == nil {
		opts.Decides = func() bool { return true }
	}
	if opts.Changed == nil {
		opts.Changed = func() {}
	}
	opts.Every, opts.Idle, opts.Judging = cmp.Or(opts.Every, Every), cmp.Or(opts.Idle, idle), cmp.Or(opts.Judging, judging)
	k := &Keeper{opts: opts, dir: opts.Dir, news: make(chan struct{}, 1), all: map[string]*source{}, accept: maps.Clone(opts.Accept)}
	if k.dir == "" {
		dir, err := os.MkdirTemp("", "fleetbroker-sources-")
		if err != nil {
			return nil, fmt.Errorf("make a directory for mirrors of sources: %w", err)
		}
		k.dir, k.temp = dir, true
	}
	k.room = room{limit: cmp.Or(opts.Disk, DefaultDisk), used: map[string]int64{}}
	if err := k.room.measure(k.dir); err != nil {
		k.opts.Log.Warn("the disk that mirrors of sources take is not known yet", "error", err)
	}
	return k, nil
}

// Close removes what only this process needs. No read may be under way.
func (k *Keeper) Close() error {
	if !k.temp {
		return nil
	}
	return os.RemoveAll(k.dir)
}

// Follow takes over which sources a fleet names and what the ledger has of them. It
// returns at once.
func (k *Keeper) Follow(policy *v1alpha1.FleetSpec, ledger tree.Tree) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed, had := !k.followed, len(k.all) > 0
	k.room.share(len(policy.Sources))
	k.followed, k.intents = true, policy.Verification.Intents == "signed" || policy.Verification.Mode == "signed"
	for _, s := range k.all {
		if s.active && policy.Source(s.entry.Name) == nil {
			s.active, s.newest, s.hook, changed = false, nil, nil, true
			k.drop(s)
		}
	}
	for i := range policy.Sources {
		e := policy.Sources[i]
		s := k.all[e.Name]
		if s == nil {
			s = &source{woken: make(chan struct{}, 1)}
			k.all[e.Name] = s
		}
		if !s.active || !same(&s.entry, &e) {
			if s.entry.URL != e.URL || s.entry.Ref() != e.Ref() {
				s.status, s.hook, s.limit = Status{}, nil, limit{}
			}
			s.active, s.entry, s.newest, changed = true, e, nil, true
			s.number++
		}
		s.entry.Forge = e.Forge
		if err := k.stand(s, ledger); err != nil {
			return err
		}
	}
	if changed {
		k.version++
		k.tell()
		if had || len(k.all) > 0 {
			k.opts.Changed() // a copy without an entry is to go
		}
	}
	return nil
}

// use keeps a source known until done is called. The caller holds the lock, and not for done.
func (k *Keeper) use(s *source) (done func()) {
	s.uses++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		s.uses--
		k.drop(s)
	}
}

// drop forgets a source without an entry that nobody reads: who reads one keeps others
// from its mirror. The caller holds the lock.
func (k *Keeper) drop(s *source) {
	if name := s.entry.Name; !s.active && s.uses == 0 && k.all[name] == s {
		delete(k.all, name)
	}
}

// tell has Run look at what is followed.
func (k *Keeper) tell() {
	select {
	case k.news <- struct{}{}:
	default:
	}
}

func same(a, b *v1alpha1.IntentSource) bool {
	cred := func(e *v1alpha1.IntentSource) string {
		if e.CredentialsRef == nil {
			return ""
		}
		return e.CredentialsRef.Name
	}
	return a.Name == b.Name && a.URL == b.URL && a.Ref() == b.Ref() && cred(a) == cred(b) && slices.Equal(a.Tenants, b.Tenants) && slices.Equal(a.Signers, b.Signers)
}

// stand takes over what a ledger has of a source. The caller holds the lock.
func (k *Keeper) stand(s *source, ledger tree.Tree) error {
	stamp := tree.Hash{}
	if !ledger.IsZero() {
		if e, err := ledger.Find(sourced.Dir(s.entry.Name) + "/" + v1alpha1.SourceFile); err == nil {
			stamp = e.Hash
		}
	}
	if stamp == s.stamp && !stamp.IsZero() {
		return nil
	}
	record, err := sourced.Record(ledger, s.entry.Name)
	if err != nil {
		return err
	}
	if stamp != s.stamp {
		k.version++
	}
	s.copied, s.stamp = record, stamp
	n := s.newest
	switch {
	case n == nil || !record.Of(&s.entry):
	case record.Commit == n.commit.String() && sameFiles(record.Files, n.record.Files):
		n.files = nil // it is copied
		delete(k.accept, s.entry.Name)
	case record.Commit != n.base && record.Commit != n.commit.String():
		s.newest = nil // another replica or an operator went on: the ledger's word counts
	}
	return nil
}

func sameFiles(a, b []v1alpha1.SourceCopyFile) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.SourceCopyFile) bool { return x.Path == y.Path && x.Hash == y.Hash })
}

// Over is a ledger's tree with the copies as they should be: those of what was read
// since, and none without an entry. It reads nothing from a network.
func (k *Keeper) Over(ledger tree.Tree) (tree.Tree, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.followed {
		return ledger, nil
	}
	gone, files := map[string]tree.Entry{}, map[string][]byte{}
	top, err := ledger.Sub(v1alpha1.SourcesRoot)
	if err != nil {
		return ledger, err
	}
	entries, err := top.Entries()
	if err != nil {
		return ledger, fmt.Errorf("list the copies of sources: %w", err)
	}
	for _, e := range entries {
		if s := k.all[e.Name]; s == nil || !s.active {
			gone[sourced.Dir(e.Name)] = tree.Entry{}
		}
	}
	for name, s := range k.all {
		n := s.newest
		if !s.active || n == nil || n.files == nil || n.number != s.number || s.leftOut(n.commit, k.opts.Now()) {
			continue
		}
		record, err := sourced.Record(ledger, name)
		if err != nil {
			return ledger, err
		}
		if record.Of(&s.entry) && record.Commit != n.base && record.Commit != n.commit.String() {
			continue // another replica went on: the next read judges by what it copied
		}
		if record.Of(&s.entry) && record.Commit == n.commit.String() && sameFiles(record.Files, n.record.Files) {
			continue // it was copied meanwhile
		}
		dir := sourced.Dir(name)
		gone[dir] = tree.Entry{}
		for p, data := range n.files {
			files[dir+"/"+p] = data
		}
	}
	if len(gone) == 0 {
		return ledger, nil
	}
	bare, err := tree.With(ledger, gone)
	if err != nil {
		return ledger, fmt.Errorf("lay copies of sources over the ledger: %w", err)
	}
	return tree.Overlay(bare, files)
}

// refusedFor is how long a copy that the fleet repo refused is left out, unless its
// source changes.
const refusedFor = 10 * time.Minute

// Refused says that the fleet repo took no commit with the copies of some sources.
func (k *Keeper) Refused(names []string, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		s := k.all[name]
		if s == nil || s.newest == nil {
			continue
		}
		s.held, s.until = s.newest.commit, k.opts.Now().Add(refusedFor)
		k.version++
		s.status.Since, s.status.Frozen = k.opts.Now(), escape.Reason("the fleet repo refuses a commit with its copy: "+why.Error())
		k.opts.Log.Warn("source is frozen: its copy on the ledger stays in force", "source", name, "error", s.status.Frozen)
	}
}

// leftOut: the copy of a commit was refused a short while ago.
func (s *source) leftOut(commit tree.Hash, now time.Time) bool {
	return s.held == commit && now.Before(s.until)
}

// Run reads the sources until the context ends.
func (k *Keeper) Run(ctx context.Context) {
	running := map[*source]context.CancelFunc{}
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		k.mu.Lock()
		for s, stop := range running {
			if !s.active {
				stop()
				delete(running, s)
			}
		}
		for _, s := range k.all {
			if !s.active || running[s] != nil {
				continue
			}
			of, cancel := context.WithCancel(ctx)
			running[s] = cancel
			done := k.use(s)
			wg.Go(func() {
				k.follow(of, s)
				done()
				k.tell() // its mirror may go
			})
		}
		k.mu.Unlock()
		k.sweep()
		select {
		case <-tidy.C:
		case <-ctx.Done():
			for _, stop := range running {
				stop()
			}
			return
		case <-k.news:
		}
	}
}

// ReadAll reads each source once, for a round that is made by hand, and reports
// whether there are any.
func (k *Keeper) ReadAll(ctx context.Context) bool {
	k.mu.Lock()
	var list []*source
	for _, s := range k.all {
		if s.active {
			list = append(list, s)
			defer k.use(s)()
		}
	}
	k.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range list {
		wg.Go(func() { k.read(ctx, s) })
	}
	wg.Wait()
	return len(list) > 0
}

// Status is what is known of each source, by name.
func (k *Keeper) Status() []Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []Status
	for name, s := range k.all {
		if !s.active {
			continue
		}
		st := s.status
		st.Name, st.URL, st.Tenants = name, s.entry.URL, s.entry.Tenants
		if s.copied.Of(&s.entry) {
			st.Copied = s.copied.Commit
		}
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b Status) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// mirrorOf is where the mirror of a source is: another one for another URL.
func (k *Keeper) mirrorOf(e *v1alpha1.IntentSource) string {
	sum := sha256.Sum256([]byte(e.URL))
	return filepath.Join(k.dir, e.Name+"-"+hex.EncodeToString(sum[:8]))
}

// read reads a source and notes what came of it. It returns how long the head was looked
// at.
func (k *Keeper) read(ctx context.Context, s *source) time.Duration {
	s.reading.Lock()
	defer s.reading.Unlock()
	k.mu.Lock()
	if s.limit.holds(k.opts.Now()) {
		k.mu.Unlock()
		return 0
	}
	q := question{entry: s.entry, number: s.number, copied: s.copied, accept: k.accept[s.entry.Name], intents: k.intents}
	if n := s.newest; n != nil && n.number == s.number {
		q.last = n.commit
	}
	k.mu.Unlock()
	found, err := k.look(ctx, &q)
	if ctx.Err() != nil {
		return q.judged
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !s.active || s.number != q.number {
		return q.judged // its entry is another one now, and is read by it
	}
	now, was := k.opts.Now(), s.status
	switch held := s.limit.err(now); {
	case held != nil:
		err = held
	case !q.head.IsZero():
		s.limit = limit{}
	}
	defer func() {
		if is := s.status; is.Head != was.Head || is.Frozen != was.Frozen || is.ReadAt.IsZero() != was.ReadAt.IsZero() || !slices.Equal(is.Ignored, was.Ignored) {
			k.version++
		}
	}()
	if !q.head.IsZero() {
		s.status.Head, s.status.ReadAt = q.head.String(), now
	}
	if err != nil {
		why := escape.Reason(err.Error())
		if s.status.Frozen == "" {
			s.status.Since = now
		}
		if s.status.Frozen != why {
			k.opts.Log.Warn("source is frozen: its copy on the ledger stays in force", "source", q.entry.Name, "error", why)
		}
		s.status.Frozen = why
		return q.judged
	}
	if s.leftOut(found.commit, now) {
		s.newest = found
		return q.judged
	}
	if s.status.Frozen != "" {
		k.opts.Log.Info("source is read again", "source", q.entry.Name, "commit", found.commit.Short())
	}
	s.status.Frozen, s.status.Since, s.status.Ignored = "", time.Time{}, q.ignored
	s.newest = found
	if found.files != nil && found.commit != q.last {
		k.opts.Changed()
	}
	return q.judged
}
