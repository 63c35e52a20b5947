package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// state is what the inputs of a commit say.
type state struct {
	commit tree.Hash
	key    tree.Hash // of what people write
	fleet  *fleet.Fleet
	books  ledger.Books
	keys   gitrepo.Keys
	email  string // of the daemon's commits
}

// inputs follows the inputs from commit to commit.
type inputs struct {
	*reader
	fleets *fleet.Reader
	// known are all commits on the inputs branch; seen those that were walked.
	known, seen map[tree.Hash]bool
	// authors are who last changed a file of intents, by path.
	authors map[string]*Commit
	last    *state
}

func newInputs(ctx context.Context, r *reader, head tree.Hash) (*inputs, error) {
	in := &inputs{
		reader: r, fleets: fleet.NewReader(), known: map[tree.Hash]bool{}, seen: map[tree.Hash]bool{},
		authors: map[string]*Commit{},
	}
	queue := []tree.Hash{head}
	for len(queue) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if h.IsZero() || in.known[h] {
			continue
		}
		in.known[h] = true
		c, err := r.commit(h)
		if err != nil {
			return nil, err
		}
		queue = append(queue, c.Parents...)
	}
	return in, nil
}

// key names what people write in a root tree: all but the generated directories.
func (in *inputs) key(root tree.Hash) (tree.Hash, error) {
	entries, err := in.h.Dir(root)
	if err != nil {
		return tree.Hash{}, err
	}
	return tree.DirHash(slices.DeleteFunc(slices.Clone(entries), func(e tree.Entry) bool { return slices.Contains(generated, e.Name) })), nil
}

// at is what the inputs of a commit say, and why the commit may not be named,
// "" when it may.
func (in *inputs) at(ctx context.Context, h tree.Hash) (s *state, fault string, err error) {
	if in.last != nil && in.last.commit == h {
		return in.last, "", nil
	}
	c, err := in.commit(h)
	switch {
	case err != nil && in.known[h]:
		return nil, "", err
	case err != nil:
		return in.last, fmt.Sprintf("inputs %s are not in the repository", h.Short()), nil
	case !in.known[h]:
		fault = fmt.Sprintf("inputs %s are not on the inputs branch", h.Short())
	}
	key, err := in.key(c.Tree)
	if err != nil {
		return nil, "", err
	}
	back := in.seen[h]
	if err := in.walk(ctx, c); err != nil {
		return nil, "", err
	}
	if in.last != nil && in.last.key == key {
		same := *in.last
		if !back { // else the newer of the two stays
			same.commit = h
		}
		in.last = &same
		return in.last, fault, nil
	}
	if back && fault == "" {
		return in.last, fmt.Sprintf("inputs %s are older than %s, which an earlier commit acted on", h.Short(), in.last.commit.Short()), nil
	}
	next, err := in.read(ctx, c, key)
	if err != nil {
		return nil, "", err
	}
	in.last = next
	return next, fault, nil
}

// read reads a fleet as the daemon did: a broken file keeps its last good version.
func (in *inputs) read(ctx context.Context, c *Commit, key tree.Hash) (*state, error) {
	var last *fleet.Fleet
	if in.last != nil {
		last = in.last.fleet
	}
	f, err := in.fleets.Read(ctx, in.tree(c.Tree), last)
	if err != nil {
		return nil, fmt.Errorf("read the inputs at %s: %w", c.Hash.Short(), err)
	}
	s := &state{commit: c.Hash, key: key, fleet: f, email: f.Policy.WriteBack.Author.Email}
	if s.books, err = ledger.BooksOf(f.Policy); err != nil {
		return nil, fmt.Errorf("inputs %s: %w", c.Hash.Short(), err)
	}
	var texts []string
	for _, signer := range f.Policy.WriteBack.Signers {
		texts = append(texts, signer.PublicKey)
	}
	if s.keys, err = gitrepo.ParseKeys(texts); err != nil {
		return nil, fmt.Errorf("inputs %s: writeBack.signers: %w", c.Hash.Short(), err)
	}
	return s, nil
}

// walk takes in the commits up to c that were not walked yet, oldest first, and
// notes who changed which intents.
func (in *inputs) walk(ctx context.Context, c *Commit) error {
	var fresh []*Commit
	queue := []*Commit{c}
	for len(queue) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if in.seen[at.Hash] {
			continue
		}
		in.seen[at.Hash] = true
		fresh = append(fresh, at)
		for _, p := range at.Parents {
			if in.seen[p] {
				continue
			}
			pc, err := in.commit(p)
			if err != nil {
				return err
			}
			queue = append(queue, pc)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *Commit) int { return a.Committer.When.Compare(b.Committer.When) })
	for _, at := range fresh {
		if err := in.note(at); err != nil {
			return err
		}
	}
	return nil
}

// note remembers the author of the intents in which a commit differs from every
// one of its parents.
func (in *inputs) note(c *Commit) error {
	is, err := in.find(c.Tree, "intents")
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, p := range c.Parents {
		pc, err := in.commit(p)
		if err != nil {
			return err
		}
		was, err := in.find(pc.Tree, "intents")
		if err != nil {
			return err
		}
		if was.Hash == is.Hash {
			return nil
		}
		if err := tree.Diff(in.tree(was.Hash), in.tree(is.Hash), func(path string, _, _ tree.Entry) error {
			counts["intents/"+path]++
			return nil
		}); err != nil {
			return err
		}
	}
	if len(c.Parents) == 0 && !is.Hash.IsZero() {
		if err := in.tree(is.Hash).Walk(func(path string, e tree.Entry) error {
			counts["intents/"+path] = 0
			return nil
		}); err != nil {
			return err
		}
	}
	for path, n := range counts {
		if n == len(c.Parents) {
			in.authors[path] = c
		}
	}
	return nil
}

// traced is why an intent of a contract cannot be found in the inputs, or ""
// and the commit that brought it (nil where its file is the fleet's, or a
// directory's).
func (in *inputs) traced(s *state, tenant string, i v1alpha1.ContractIntent) (fault string, by *Commit, err error) {
	if tenant == v1alpha1.FleetTenant {
		for _, p := range s.fleet.Policy.WarmPools {
			if p.Name == i.Name {
				return "", nil, nil
			}
		}
		return fmt.Sprintf("fleet.yaml at %s has no warm pool %s", s.commit.Short(), i.Name), nil, nil
	}
	it := s.fleet.Intent(tenant, i.Name)
	switch {
	case it == nil:
		return fmt.Sprintf("there is no intent %s/%s in the inputs at %s", tenant, i.Name, s.commit.Short()), nil, nil
	case it.Path != i.Path:
		return fmt.Sprintf("intent %s/%s stands in %s at %s, not in %s", tenant, i.Name, it.Path, s.commit.Short(), i.Path), nil, nil
	case it.Digest != i.Digest:
		return fmt.Sprintf("intent %s/%s has digest %s at %s, the contract says %s", tenant, i.Name, it.Digest, s.commit.Short(), cmp.Or(i.Digest, "none")), nil, nil
	}
	by = in.authors[i.Path]
	if by == nil || i.Author == "" || i.Author == by.Author.String() {
		return "", by, nil
	}
	// Clocks of commits differ and histories are rewritten: now exactly.
	if by, err = in.lastChange(s.commit, i.Path); err != nil || i.Author == by.Author.String() {
		return "", by, err
	}
	return fmt.Sprintf("%s was last changed by %s in %s, the contract says %s", i.Path, by.Author, by.Hash.Short(), i.Author), by, nil
}

// lastChange is the commit in which a path is not as in any parent, from h back.
func (in *inputs) lastChange(h tree.Hash, path string) (*Commit, error) {
	for {
		c, err := in.commit(h)
		if err != nil {
			return nil, err
		}
		is, err := in.find(c.Tree, path)
		if err != nil {
			return nil, err
		}
		same := tree.Hash{}
		for _, p := range c.Parents {
			pc, err := in.commit(p)
			if err != nil {
				return nil, err
			}
			was, err := in.find(pc.Tree, path)
			if err != nil {
				return nil, err
			}
			if was == is {
				same = p
				break
			}
		}
		if same.IsZero() {
			return c, nil
		}
		h = same
	}
}
