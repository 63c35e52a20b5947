package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// state is what the inputs of a commit say.
type state struct {
	commit tree.Hash
	key    tree.Hash // of what people write
	fleet  *fleet.Fleet
	books  ledger.Books
	keys   gitrepo.Keys
	email  string // of the daemon's commits
	tree   tree.Tree
	// clean is the commit up to which all of it is verified, held says of paths
	// that are not since which commit their content is acted on.
	clean tree.Hash
	held  map[string]tree.Hash
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
	// verifier says what of the inputs is acted on, at the time of now.
	verifier *verify.Verifier
	now      time.Time
	// rewritten: commits were acted on that are on no branch any more, which the
	// rule `inputs` tells. Who wrote what stood there is then nowhere to be read.
	rewritten bool
}

// commits is the history as the verifier reads it.
type commits struct{ *reader }

// RawCommit implements verify.History.
func (c commits) RawCommit(h tree.Hash) ([]byte, error) { return c.h.Commit(h) }

// Tree implements verify.History.
func (c commits) Tree(h tree.Hash) (tree.Tree, error) {
	if h.IsZero() {
		return tree.Tree{}, nil
	}
	at, err := c.commit(h)
	if err != nil {
		return tree.Tree{}, err
	}
	return c.tree(at.Tree), nil
}

func newInputs(ctx context.Context, r *reader, head tree.Hash) (*inputs, error) {
	in := &inputs{
		reader: r, fleets: fleet.NewReader(), known: map[tree.Hash]bool{}, seen: map[tree.Hash]bool{},
		authors: map[string]*Commit{},
	}
	in.verifier = verify.New(commits{r}, func() time.Time { return in.now })
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

// acted is what the inputs said that a commit of the ledger names and acted on,
// and why it may not, "" when it may. The state is nil when it names none.
func (in *inputs) acted(ctx context.Context, c *Commit) (s *state, fault string, err error) {
	h, err := tree.ParseHash(c.Trailer("Inputs"))
	if err != nil {
		return nil, "", nil //nolint:nilerr // no commit of ours, or one that `trailers` tells of
	}
	verified := h
	if said := c.Trailer("Verified"); said != "" {
		if verified, err = tree.ParseHash(said); err != nil {
			return nil, fmt.Sprintf("Verified names no commit: %q", said), nil
		}
	}
	in.now = c.Committer.When
	s, fault, err = in.at(ctx, h, verified)
	// Where the state is a newer commit's of the same content, how far that one is
	// verified says nothing of this one.
	if s != nil && err == nil && fault == "" && s.commit == h && s.clean != verified {
		fault = fmt.Sprintf("inputs %s are verified up to %s, the commit says up to %s", h.Short(), s.clean.Short(), verified.Short())
	}
	return s, fault, err
}

// at is what the inputs of a commit say. verified is up to which commit they
// are said to be, which is believed of the first only.
func (in *inputs) at(ctx context.Context, h, verified tree.Hash) (s *state, fault string, err error) {
	if in.last != nil && in.last.commit == h {
		return in.last, "", nil
	}
	c, err := in.commit(h)
	switch {
	case err != nil && in.known[h]:
		return nil, "", err
	case err != nil:
		in.rewritten = true
		return in.last, fmt.Sprintf("inputs %s are not in the repository", h.Short()), nil
	case !in.known[h]:
		in.rewritten = true
		fault = fmt.Sprintf("inputs %s are not on the inputs branch", h.Short())
	}
	from := verified
	if in.last != nil {
		from = in.last.clean
	}
	older, err := in.older(c)
	if err != nil {
		return nil, "", err
	}
	told, err := in.verified(ctx, from, c, older)
	if err != nil {
		return nil, "", err
	}
	key, err := verify.Key(told.Tree)
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
			same.commit, same.clean, same.held = h, told.Clean, heldOf(told)
		}
		in.last = &same
		return in.last, fault, nil
	}
	if back && fault == "" {
		return in.last, fmt.Sprintf("inputs %s are older than %s, which an earlier commit acted on", h.Short(), in.last.commit.Short()), nil
	}
	next, err := in.read(ctx, c, told.Tree, key, older)
	if err != nil {
		return nil, "", err
	}
	next.clean, next.held = told.Clean, heldOf(told)
	in.last = next
	return next, fault, nil
}

// verified is what of a commit is acted on, as the daemon finds out.
func (in *inputs) verified(ctx context.Context, from tree.Hash, c *Commit, older []tree.Tree) (*verify.State, error) {
	told, err := in.verifier.Verify(ctx, from, c.Hash, older)
	if errors.Is(err, verify.ErrNoDescendant) { // rewritten, and accepted by an operator
		told, err = in.verifier.Verify(ctx, tree.Hash{}, c.Hash, older)
	}
	if err != nil {
		return nil, fmt.Errorf("verify the inputs at %s: %w", c.Hash.Short(), err)
	}
	return told, nil
}

// older is where the last good version of a broken file is: in what was acted on
// before, or, where nothing was, in the history as the daemon found it.
func (in *inputs) older(c *Commit) ([]tree.Tree, error) {
	if in.last != nil {
		return []tree.Tree{in.last.tree}, nil
	}
	return in.verifier.Older(c.Hash)
}

func heldOf(told *verify.State) map[string]tree.Hash {
	out := map[string]tree.Hash{}
	for _, f := range told.Findings {
		out[f.Path] = f.Verified
	}
	return out
}

// read reads a fleet as the daemon did: a broken file keeps its last good version.
func (in *inputs) read(ctx context.Context, c *Commit, t tree.Tree, key tree.Hash, older []tree.Tree) (*state, error) {
	var last *fleet.Fleet
	if in.last != nil {
		last = in.last.fleet
	}
	f, err := in.fleets.Read(ctx, t, last, older...)
	if err != nil {
		return nil, fmt.Errorf("read the inputs at %s: %w", c.Hash.Short(), err)
	}
	s := &state{commit: c.Hash, key: key, fleet: f, tree: t, email: f.Policy.WriteBack.Author.Email}
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
	at := s.commit
	if since, held := s.held[i.Path]; held { // who wrote what is in force, and not who wrote over it
		at = since
	} else {
		by = in.authors[i.Path]
		if by == nil || i.Author == "" || i.Author == by.Author.String() {
			return "", by, nil
		}
	}
	// Clocks of commits differ and histories are rewritten: now exactly.
	if by, err = in.lastChange(at, i.Path); err != nil || i.Author == by.Author.String() {
		return "", by, err
	}
	if in.rewritten {
		return "", by, nil
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
