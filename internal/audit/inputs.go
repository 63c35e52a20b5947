package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/trust"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// state is what the inputs of a commit say.
type state struct {
	commit tree.Hash
	key    tree.Hash // of what people write
	fleet  *fleet.Fleet
	books  ledger.Books
	keys   ring   // of writeBack.signers
	email  string // of the daemon's commits
	tree   tree.Tree
	aside  [2]tree.Hash // of the list of what was set aside, and of the copies of sources
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
	// fresh are those seen by the last call of acted.
	fresh []tree.Hash
	// authors are who last changed a file of intents, by path.
	authors map[string]*Commit
	last    *state
	// verifier says what of the inputs is acted on, at the time of now.
	verifier *verify.Verifier
	now      time.Time
	// rewritten: commits were acted on that are on no branch any more, which the
	// rule `inputs` tells. Who wrote what stood there is then nowhere to be read.
	rewritten bool
	// aside is the list of what is set aside at the commit of the ledger that is
	// judged, and the copies of sources there, which copies holds.
	aside  [2]tree.Hash
	list   []fleet.Unread
	copies tree.Tree
	// accepted are commits that may be acted on though they descend from nothing
	// that was acted on before.
	accepted []tree.Hash
	// grantedOfLedger are heads of the ledger that the trust root lets go of.
	grantedOfLedger []tree.Hash
	// dropped are heads that were let go of, as the ledger says.
	dropped []Dropped
	// root holds what gives rights to it, from where on the daemon says that it
	// did; said: it did, whether or not the root is known. base: what was accepted
	// before counts no more.
	root *trust.Root
	said bool
	// trusted is the auditor's root, from the beginning.
	trusted *trust.Root
	base    bool
}

// hold holds the inputs to a trust root, from its first signed commit on.
func (in *inputs) hold(root *trust.Root) {
	in.root, in.base = root, true
	in.verifier.Trust(root)
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
	return c.tree(at.Root), nil
}

// Vetter is shared with the reader of the ledger.
func (c commits) Vetter() *tree.Vetter { return c.vetter }

// Graph is shared with the reader of the ledger.
func (c commits) Graph() *ancestry.Graph { return c.ancestry }

func newInputs(ctx context.Context, r *reader, o *Options) (*inputs, error) {
	in := &inputs{
		reader: r, fleets: fleet.NewReader(), known: map[tree.Hash]bool{}, seen: map[tree.Hash]bool{},
		authors: map[string]*Commit{}, accepted: o.AcceptRewrite, trusted: o.Root,
	}
	in.verifier = verify.New(commits{r}, func() time.Time { return in.now })
	queue := []tree.Hash{o.Inputs}
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
	return in, in.grant(ctx, o)
}

// grant notes what the trust root lets go of.
func (in *inputs) grant(ctx context.Context, o *Options) (err error) {
	branch := ""
	if o.Branch != "" {
		branch = gitrepo.Branch(o.Branch)
	}
	in.grantedOfLedger, err = letgo.Dropped(o.Root.Accept(), branch, o.Ledger, func(a, b tree.Hash) (bool, error) { return in.below(ctx, a, []tree.Hash{b}) })
	return err
}

// acted is what the inputs said that a commit of the ledger names and acted on,
// and why it may not, "" when it may. The state is nil when it names none.
func (in *inputs) acted(ctx context.Context, c *Commit) (s *state, fault string, err error) {
	in.fresh = nil
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
	if err := in.takeAside(c); err != nil {
		return nil, "", err
	}
	s, fault, err = in.at(ctx, h, verified)
	if s == nil || err != nil || fault != "" {
		return s, fault, err
	}
	// Where the state is a newer commit's of the same content, how far that one is
	// verified says nothing of this one, but that it is no further than itself.
	if s.commit != h && verified != h {
		if _, gone := in.stored(verified); gone != nil {
			return s, fmt.Sprintf("Verified names %s, which is not in the repository", verified.Short()), nil
		}
		if below, err := in.ancestry.Holds(ctx, h, verified); err != nil || !below {
			return s, fmt.Sprintf("Verified names %s, which is no ancestor of inputs %s", verified.Short(), h.Short()), err
		}
	}
	if s.commit == h && s.clean != verified {
		fault = fmt.Sprintf("inputs %s are verified up to %s, the commit says up to %s", h.Short(), s.clean.Short(), verified.Short())
		if in.said && in.root == nil {
			fault += "; the daemon held them to a trust root: give it with --trust-root"
		}
	}
	return s, fault, err
}

// at is what the inputs of a commit say. verified is up to which commit they
// are said to be, which is believed of the first only.
func (in *inputs) at(ctx context.Context, h, verified tree.Hash) (s *state, fault string, err error) {
	if in.last != nil && in.last.commit == h && !in.base {
		return in.last, "", in.again(ctx)
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
		fault = in.offBranch(h)
	}
	from := verified
	if in.last != nil {
		from = in.last.clean
	}
	if in.base {
		if from, err = in.verifier.BaseThrough(ctx, from, h); errors.As(err, new(*verify.NoBaseError)) {
			return in.last, err.Error(), nil
		} else if err != nil {
			return nil, "", err
		}
		in.base = false
	}
	older, err := in.older(c)
	if err != nil {
		return nil, "", err
	}
	told, err := in.verifier.Verify(ctx, from, c.Hash, older)
	if errors.Is(err, verify.ErrNoDescendant) {
		// What follows is judged by what it says; that it may not be acted on is told
		// here, and its signers are not believed.
		let, lerr := in.letGo(ctx, from, h)
		if lerr != nil {
			return nil, "", lerr
		}
		if fault == "" && !let && !in.seen[h] && !slices.Contains(in.accepted, h) { // one that was seen is judged below by what it says
			fault = fmt.Sprintf("inputs %s do not descend from %s, which an earlier commit acted on: their history was rewritten, or is another's; if an operator accepted that, say --accept-rewrite %s", h.Short(), from.Short(), h)
		}
		told, err = in.verifier.Verify(ctx, tree.Hash{}, c.Hash, older)
	}
	if err != nil {
		return nil, "", fmt.Errorf("verify the inputs at %s: %w", h.Short(), err)
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
		return in.last, fault, in.again(ctx)
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

func (in *inputs) offBranch(h tree.Hash) string {
	return fmt.Sprintf("inputs %s are not on the inputs branch", h.Short())
}

// letGo reports whether an operator let go of a commit, for a head that has an entry's.
func (in *inputs) letGo(ctx context.Context, h, head tree.Hash) (bool, error) {
	heads, err := letgo.Dropped(in.trusted.Accept(), "", head, func(a, b tree.Hash) (bool, error) { return in.below(ctx, a, []tree.Hash{b}) })
	if err != nil {
		return false, err
	}
	for _, d := range in.dropped {
		heads = append(heads, d.head)
	}
	return in.below(ctx, h, heads)
}

// disbelieve goes back to what was acted on before the last call of acted: the
// commit turned out to be another account's, and what it names was not acted on.
func (in *inputs) disbelieve(last *state) {
	in.last = last
	for _, h := range in.fresh {
		delete(in.seen, h)
	}
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
	f, err := in.fleets.ReadAll(ctx, fleet.Sources{Inputs: t, Last: last, Copies: in.copies, Older: older, Aside: in.list})
	if err != nil {
		return nil, fmt.Errorf("read the inputs at %s: %w", c.Hash.Short(), err)
	}
	s := &state{commit: c.Hash, key: key, aside: in.aside, fleet: f, tree: t, email: f.Policy.WriteBack.Author.Email}
	if s.books, err = ledger.BooksOf(f.Policy); err != nil {
		return nil, fmt.Errorf("inputs %s: %w", c.Hash.Short(), err)
	}
	if s.keys, err = ringOf(in.trusted.LedgerAlone(f.Policy.WriteBack.Signers)); err != nil {
		return nil, fmt.Errorf("inputs %s: writeBack.signers: %w", c.Hash.Short(), err)
	}
	return s, nil
}

// walk takes in the commits up to c that were not walked yet, oldest first, and
// notes who changed which intents.
func (in *inputs) walk(ctx context.Context, c *Commit) error {
	type placed struct {
		*Commit
		depth int32
	}
	var fresh []placed
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
		in.fresh = append(in.fresh, at.Hash)
		depth, err := in.ancestry.Depth(ctx, at.Hash)
		if err != nil {
			return err
		}
		fresh = append(fresh, placed{at, depth})
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
	slices.SortStableFunc(fresh, func(a, b placed) int { return cmp.Compare(a.depth, b.depth) })
	for _, at := range fresh {
		if err := in.note(at.Commit); err != nil {
			return err
		}
	}
	return nil
}

// note remembers the author of the intents in which a commit differs from every
// one of its parents.
func (in *inputs) note(c *Commit) error {
	is, err := in.intents(c)
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, p := range c.Parents {
		pc, err := in.commit(p)
		if err != nil {
			return err
		}
		was, err := in.intents(pc)
		if err != nil {
			return err
		}
		if was.Root == is.Root {
			return nil
		}
		if err := tree.Diff(was, is, func(path string, _, _ tree.Entry) error {
			counts["intents/"+path]++
			return nil
		}); err != nil {
			return err
		}
	}
	if len(c.Parents) == 0 && !is.IsZero() {
		if err := is.Walk(func(path string, e tree.Entry) error {
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

// intents are those of a commit, without what is too large of tenants.
func (in *inputs) intents(c *Commit) (tree.Tree, error) {
	if c.Inputs.IsZero() {
		return tree.Tree{}, nil
	}
	t, err := in.vetter.Bounded(in.tree(c.Inputs))
	if err != nil {
		return t, fmt.Errorf("read commit %s: %w", c.Hash.Short(), err)
	}
	e, err := t.Find("intents")
	if errors.Is(err, fs.ErrNotExist) || err == nil && e.Kind != tree.Dir {
		return tree.Tree{}, nil
	}
	return tree.Tree{Store: t.Store, Root: e.Hash}, err
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
		return fmt.Sprintf("intent %s/%s is in %s at %s, not in %s", tenant, i.Name, it.Path, s.commit.Short(), i.Path), nil, nil
	case it.Digest != i.Digest:
		return fmt.Sprintf("intent %s/%s has digest %s at %s, the contract says %s", tenant, i.Name, it.Digest, s.commit.Short(), cmp.Or(i.Digest, "none")), nil, nil
	}
	if _, author, copied := s.fleet.Sourced(i.Path); copied {
		if i.Author != "" && i.Author != author {
			fault = fmt.Sprintf("%s was last changed by %s, says the copy of its source, and the contract says %s", i.Path, author, i.Author)
		}
		return fault, nil, nil
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
	// Merges join, and histories are rewritten: now exactly.
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
		is, err := in.find(c.Inputs, path)
		if err != nil {
			return nil, err
		}
		same := tree.Hash{}
		for _, p := range c.Parents {
			pc, err := in.commit(p)
			if err != nil {
				return nil, err
			}
			was, err := in.find(pc.Inputs, path)
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
