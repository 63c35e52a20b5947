package ledger

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// maxFile bounds a generated file; the largest (a month's spend of a tenant
// with 20,000 contracts) stays below it.
const maxFile = 8 << 20

// Problem is a file of the ledger that could not be read.
type Problem struct {
	// Path of the file or directory.
	Path string
	// Err says why.
	Err error
}

// Error makes a Problem an error.
func (p Problem) Error() string { return p.Path + ": " + p.Err.Error() }

// Problems are the files that could not be read, by path.
func (l *Ledger) Problems() []Problem { return slices.Clone(l.problems) }

// Broken is an error when files of the ledger could not be read. Such a ledger
// must not be written over or acted on: what it lacks is still reserved.
func (l *Ledger) Broken() error {
	if len(l.problems) == 0 {
		return nil
	}
	more := ""
	if n := len(l.problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Errorf("the ledger cannot be read whole: %w%s; nothing is decided until it is: restore the file from git history, or revert the commit that changed it", l.problems[0], more)
}

// Read is the ledger that lies in a repository's root tree. Directories that
// are as they were in prev (which may be nil) are taken from it without being
// read, so that reading after a small commit costs what the commit changed. The
// problems are those of the whole ledger, whether read now or before; the error
// is the store's.
func Read(ctx context.Context, t tree.Tree, prev *Ledger) (*Ledger, []Problem, error) {
	if prev == nil || prev.ambiguous() {
		prev = Empty()
	}
	root, odd, err := contractsOf(t)
	if err != nil {
		return nil, nil, fmt.Errorf("read the ledger: %w", err)
	}
	if !root.IsZero() && root.Root == prev.hash {
		return prev, prev.Problems(), nil
	}
	r := &reader{ctx: ctx, editor: edit(prev), problems: odd}
	next, err := r.read(root, prev)
	if err == nil && next.ambiguous() && prev.total > 0 {
		// What was carried over cannot be trusted: read it all again.
		r = &reader{ctx: ctx, editor: edit(Empty())}
		next, err = r.read(root, Empty())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the ledger: %w", err)
	}
	return next, next.Problems(), nil
}

// contractsOf is the directory of all contracts, the empty tree when there is
// none. What is no directory is a problem. It does not ask by path, because an
// object that is missing from the store must not look like a fleet without
// contracts.
func contractsOf(t tree.Tree) (tree.Tree, []Problem, error) {
	entries, err := t.Entries()
	if err != nil {
		return tree.Tree{}, nil, err
	}
	for _, e := range entries {
		if e.Name != Root {
			continue
		}
		if e.Kind != tree.Dir {
			return tree.Tree{}, []Problem{{Root, fmt.Errorf("is not a directory: %s", kindText(e.Kind))}}, nil
		}
		return tree.Tree{Store: t.Store, Root: e.Hash}, nil, nil
	}
	return tree.Tree{}, nil, nil
}

// ambiguous reports whether two files claim one contract's name. The name
// index then shows only one of them, and cannot be carried on.
func (l *Ledger) ambiguous() bool { return l.names.Len() != l.total }

type reader struct {
	ctx context.Context
	*editor
	problems []Problem // of the root directory itself
	// arrived are contracts that are still to be indexed. All that left is taken
	// out of the indexes first: a renamed intent's contract leaves one directory
	// and arrives in another, and whichever is read first, it must be there.
	arrived []*v1alpha1.Contract
}

func (r *reader) read(root tree.Tree, prev *Ledger) (*Ledger, error) {
	entries, err := root.Entries()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var aside []v1alpha1.SetAsidePiece
	for _, e := range entries {
		name := Root + "/" + e.Name
		if e.Name == SetAsideFile && e.Kind == tree.File {
			if aside, err = readSetAside(root.Store, e.Hash); err == nil {
				continue
			}
			mistake, failure := verdict(err)
			if failure != nil {
				return nil, fmt.Errorf("%s: %w", name, failure)
			}
			r.problems = append(r.problems, Problem{name, mistake})
			continue
		}
		if e.Kind != tree.Dir {
			r.problems = append(r.problems, stray(name, e)...)
			continue
		}
		seen[e.Name] = true
		if old := prev.tenants[e.Name]; old != nil && old.hash == e.Hash {
			continue
		}
		if err := r.readTenant(e.Name, tree.Tree{Store: root.Store, Root: e.Hash}); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range sortedKeys(prev.tenants) {
		if !seen[name] {
			r.dropTenant(name)
		}
	}
	for _, c := range r.arrived {
		r.index(c)
	}
	next := r.done()
	next.hash = root.Root
	next.problems, next.aside = r.problems, aside
	for _, name := range sortedKeys(next.tenants) {
		next.problems = append(next.problems, next.tenants[name].problems...)
	}
	if next.ambiguous() {
		next.problems = append(next.problems, next.duplicates()...)
	}
	return next, nil
}

// stray is a problem for an entry that has no place in the ledger's layout. A
// file that is not YAML hurts nobody and is left to the repository's guard.
func stray(name string, e tree.Entry) []Problem {
	if e.Kind == tree.File && !strings.HasSuffix(e.Name, fileSuffix) {
		return nil
	}
	return []Problem{{name, fmt.Errorf("has no place in the ledger: %s", kindText(e.Kind))}}
}

func kindText(k tree.Kind) string {
	switch k {
	case tree.Dir:
		return "a directory stands where none belongs"
	case tree.Symlink:
		return "symbolic links are refused"
	case tree.Submodule:
		return "submodules are refused"
	}
	return "no contract, state or spend belongs here"
}

var (
	shardForm = regexp.MustCompile(`^[0-9a-f]{2}$`)
	spendForm = regexp.MustCompile(`^spend-(\d{4}-(0[1-9]|1[0-2]))\.yaml$`)
)

func (r *reader) readTenant(name string, t tree.Tree) error {
	entries, err := t.Entries()
	if err != nil {
		return err
	}
	n := r.tenant(name)
	n.problems = nil
	old := maps.Clone(n.spends)
	clear(n.spends)
	seen := map[string]bool{}
	var work []*shardWork
	for _, e := range entries {
		where := Root + "/" + name + "/" + e.Name
		switch m := spendForm.FindStringSubmatch(e.Name); {
		case e.Kind == tree.Dir && shardForm.MatchString(e.Name):
			seen[e.Name] = true
			if was := n.shards[e.Name]; was == nil || was.hash != e.Hash {
				w, err := listShard(name, e, t.Store, was)
				if err != nil {
					return err
				}
				work = append(work, w)
			}
		case m != nil && e.Kind == tree.File:
			if was := old[m[1]]; was != nil && was.hash == e.Hash {
				n.spends[m[1]] = was
				continue
			}
			s, err := readSpend(t.Store, e.Hash, name, m[1])
			mistake, failure := verdict(err)
			if failure != nil {
				return failure
			}
			if mistake != nil {
				n.problems = append(n.problems, Problem{where, mistake})
				continue
			}
			n.spends[m[1]] = &spendNode{e.Hash, s}
		default:
			n.problems = append(n.problems, stray(where, e)...)
		}
	}
	if err := parse(r.ctx, name, t.Store, work); err != nil {
		return err
	}
	for _, w := range work {
		r.applyShard(name, w)
	}
	for _, xx := range sortedKeys(n.shards) {
		if !seen[xx] {
			r.dropShard(name, xx)
			continue
		}
		n.problems = append(n.problems, n.shards[xx].problems...)
	}
	n.hash = t.Root
	return nil
}

// shardWork is what is to be done for a shard that has changed.
type shardWork struct {
	xx       string
	hash     tree.Hash
	problems []Problem
	keep     map[string]bool // intents that are as they were
	read     []*intentWork
}

// intentWork is an intent's directory that is to be read, and then its node.
type intentWork struct {
	name string
	hash tree.Hash
	node *intentNode
}

// listShard finds what has changed in a shard since it was read.
func listShard(tenant string, dir tree.Entry, store tree.Store, old *shardNode) (*shardWork, error) {
	entries, err := store.Dir(dir.Hash)
	if err != nil {
		return nil, err
	}
	w := &shardWork{xx: dir.Name, hash: dir.Hash, keep: map[string]bool{}}
	for _, e := range entries {
		where := Root + "/" + tenant + "/" + dir.Name + "/" + e.Name
		switch {
		case e.Kind != tree.Dir:
			w.problems = append(w.problems, stray(where, e)...)
		case Shard(e.Name) != dir.Name:
			w.problems = append(w.problems, Problem{where, fmt.Errorf("intent %s belongs in %s", e.Name, IntentDir(tenant, e.Name))})
		case old != nil && old.intents[e.Name] != nil && old.intents[e.Name].hash == e.Hash:
			w.keep[e.Name] = true
		default:
			w.read = append(w.read, &intentWork{name: e.Name, hash: e.Hash})
		}
	}
	return w, nil
}

// parse reads the intents of a tenant's changed shards, on all cores: a daemon
// that starts reads every file of the ledger.
func parse(ctx context.Context, tenant string, store tree.Store, work []*shardWork) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, w := range work {
		group.Go(func() error {
			for _, i := range w.read {
				if err := ctx.Err(); err != nil {
					return err
				}
				var err error
				if i.node, err = parseIntent(store, tenant, i.name, i.hash); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// applyShard puts what was read into a shard's node.
func (r *reader) applyShard(tenant string, w *shardWork) {
	s := r.shard(tenant, w.xx)
	read := map[string]bool{}
	for _, i := range w.read {
		read[i.name] = true
		r.swap(s, i.name, i.node)
	}
	s.problems = w.problems
	for _, name := range sortedKeys(s.intents) {
		if !w.keep[name] && !read[name] {
			r.swap(s, name, nil)
			continue
		}
		s.problems = append(s.problems, s.intents[name].problems...)
	}
	s.hash = w.hash
	s.totals() // now, and not in the first round that asks for its tenant
}

func parseIntent(store tree.Store, tenant, intent string, hash tree.Hash) (*intentNode, error) {
	entries, err := store.Dir(hash)
	if err != nil {
		return nil, err
	}
	n := &intentNode{hash: hash}
	for _, e := range entries {
		where := IntentDir(tenant, intent) + "/" + e.Name
		if e.Kind != tree.File || !strings.HasSuffix(e.Name, fileSuffix) {
			n.problems = append(n.problems, stray(where, e)...)
			continue
		}
		mistake, failure := verdict(n.read(store, e, tenant, intent))
		if failure != nil {
			return nil, failure
		}
		if mistake != nil {
			n.problems = append(n.problems, Problem{where, mistake})
		}
	}
	slices.SortFunc(n.contracts, byReplica)
	return n, nil
}

// read takes one file of the intent's directory in.
func (n *intentNode) read(store tree.Store, e tree.Entry, tenant, intent string) error {
	if e.Name == StateFile {
		s, err := readState(store, e.Hash, tenant, intent)
		if err == nil {
			n.state = s
		}
		return err
	}
	c, err := readFile(store, e.Hash, decodeContract)
	if err != nil {
		return err
	}
	if want := IntentDir(tenant, intent) + "/" + e.Name; ContractPath(c) != want {
		return fmt.Errorf("holds the contract of %s", ContractPath(c))
	}
	n.contracts = append(n.contracts, c)
	return nil
}

// swap puts an intent's node (nil: none) in the place of the one before, and
// notes its contracts for the indexes.
func (r *reader) swap(s *shardNode, intent string, n *intentNode) {
	if old := s.intents[intent]; old != nil {
		for _, c := range old.contracts {
			r.unindex(c)
		}
	}
	if n == nil {
		delete(s.intents, intent)
		return
	}
	s.intents[intent] = n
	r.arrived = append(r.arrived, n.contracts...)
}

func (r *reader) dropShard(tenant, xx string) {
	s := r.shard(tenant, xx)
	for _, name := range sortedKeys(s.intents) {
		r.swap(s, name, nil)
	}
	delete(r.tenant(tenant).shards, xx)
}

func (r *reader) dropTenant(name string) {
	t := r.tenant(name)
	for _, xx := range sortedKeys(t.shards) {
		r.dropShard(name, xx)
	}
	delete(r.next.tenants, name)
}

// duplicates names the files that claim a contract's name that another file
// has.
func (l *Ledger) duplicates() []Problem {
	var out []Problem
	first := map[string]*v1alpha1.Contract{}
	for _, tenant := range l.Tenants() {
		t := l.tenants[tenant]
		for _, xx := range sortedKeys(t.shards) {
			for _, intent := range sortedKeys(t.shards[xx].intents) {
				for _, c := range t.shards[xx].intents[intent].contracts {
					if other := first[c.Metadata.Name]; other != nil {
						out = append(out, Problem{ContractPath(c), fmt.Errorf("%s holds a contract of the same name", ContractPath(other))})
						continue
					}
					first[c.Metadata.Name] = c
				}
			}
		}
	}
	return out
}
