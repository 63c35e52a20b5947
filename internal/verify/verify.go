package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/ordered"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Finding is a path of which the head says what no authorised account has signed.
type Finding struct {
	Path string
	// Commit that changed it, and who its author claims to be.
	Commit tree.Hash
	Author string
	// Why it does not count.
	Why string
	// Unapproved: it is signed by one who may ask, and waits for an approver.
	Unapproved bool
	// Verified is a commit at which the path has the content that is acted on.
	Verified tree.Hash
	// Entry is that content in Verified's tree; zero: nothing.
	Entry tree.Entry
}

// String says what is wrong, who did it, and what to do.
func (f Finding) String() string {
	return fmt.Sprintf("commit %s by %s is not acted on: %s. The last verified content stays in force. Have an authorised account commit this file again, signed (git commit -S), or revert the commit",
		f.Commit.Short(), f.Author, f.Why)
}

// CodeNotVerified marks findings among the diagnostics of inputs.
const CodeNotVerified = "NotVerified"

// Diagnostic is the finding among those of the inputs' reader.
func (f Finding) Diagnostic() fleet.Diagnostic {
	return fleet.Diagnostic{File: f.Path, Line: 1, Column: 1, Message: f.String(), Severity: fleet.Error, Code: CodeNotVerified}
}

// State is what may be acted on at a commit of the inputs.
type State struct {
	// Tree is the commit's, with older content where it is not verified.
	Tree tree.Tree
	// Clean is the newest commit on the way up to which everything is verified:
	// what may be accepted.
	Clean tree.Hash
	// Signed: signatures were asked for at the end of the way.
	Signed bool
	// Findings by path.
	Findings []Finding
	// Said is the commit whose tree this was made of: the head, or the newest
	// before it that is not broken. Broken are those after it, newest first.
	Said   tree.Hash
	Broken []Broken

	held holdings
	root *trust.Root
}

// Verifier verifies inputs. It remembers what it has read of the commits since
// the accepted one.
type Verifier struct {
	history History
	now     func() time.Time
	commits commits
	reader  reader
	base    tree.Hash
	// via is a commit through which the branch's own line goes, where it is among
	// those that are walked; see BaseThrough.
	via tree.Hash
}

// New returns a Verifier of a history; now is the clock by which keys expire. A
// history that has a Vetter of trees or a Graph of commits shares it.
func New(h History, now func() time.Time) *Verifier {
	v := &Verifier{history: h, now: now, reader: reader{fleet: fleet.NewReader()}}
	if s, ok := h.(interface{ Graph() *ancestry.Graph }); ok {
		v.commits.graph = s.Graph()
	} else {
		v.commits.graph = ancestry.New(ParentsOf(h))
	}
	v.forget(tree.Hash{})
	return v
}

// Trust holds the walk to a trust root: what gives rights is signed by its list
// policy, whatever fleet.yaml says. Call it before the first walk.
func (v *Verifier) Trust(root *trust.Root) *Verifier {
	v.reader.root = root
	return v
}

// Reading reads who may sign with a reader that has read some of it before. Only
// one Verifier at a time may use it. Call it before the first walk.
func (v *Verifier) Reading(with *fleet.Reader) *Verifier {
	v.reader.fleet = with
	return v
}

// Without leaves out pieces of the inputs that are set aside, from the next walk
// on.
func (v *Verifier) Without(aside []fleet.Unread) { v.reader.aside = aside }

func (v *Verifier) forget(base tree.Hash) {
	v.base, v.commits = base, commits{v.history, v.commits.vetter, v.commits.graph, map[tree.Hash]*commit{}, map[tree.Hash]tree.Hash{}, 0}
}

// ErrNoDescendant is a head that does not descend from the accepted commit.
var ErrNoDescendant = errors.New("it does not descend from the accepted commit")

// Verify says what may be acted on at head, a descendant of the accepted
// commit. A zero accepted commit takes the head as it stands, and so does one
// with no readable fleet.yaml in its whole history: nobody has ever said who may
// sign. older are trees in which a broken fleet.yaml or tenant file may still be
// good.
//
// Only what cannot be read is an error; what is not verified is in the State.
func (v *Verifier) Verify(ctx context.Context, accepted, head tree.Hash, older []tree.Tree) (*State, error) {
	if accepted != v.base {
		v.forget(accepted)
	}
	if accepted.IsZero() {
		accepted = head
	}
	w, err := v.begin(ctx, accepted, older)
	if errors.Is(err, errNobodyKnown) && accepted != head {
		accepted = head
		w, err = v.begin(ctx, accepted, older)
	}
	if errors.Is(err, errNobodyKnown) {
		var said State
		if serr := w.say(&said, head); serr != nil {
			return nil, serr
		}
		if why := said.Silent(); why != nil {
			return nil, fmt.Errorf("%w: %w", err, why)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := w.know(ctx, accepted, head); err != nil {
		return nil, err
	}
	if quiet, err := w.quiet(accepted, head); err != nil {
		return nil, err
	} else if quiet {
		return w.unsigned(accepted, head)
	}
	if accepted != head {
		if err := w.run(ctx, accepted, head); err != nil {
			return nil, err
		}
	}
	state, err := w.state(head)
	if err == nil {
		state.root = v.reader.root
	}
	return state, err
}

// Branch says what merging a branch would change unsigned: its commits since it
// left another are judged by what that one says now.
func (v *Verifier) Branch(ctx context.Context, into, head tree.Hash) (*State, error) {
	v.forget(into)
	w, err := v.begin(ctx, into, nil)
	if err != nil {
		return nil, err
	}
	if w.rights.signed && into != head {
		if err := w.branch(ctx, into, head); err != nil {
			return nil, err
		}
	}
	return w.state(head)
}

// Merge says what may be acted on after a merge into a commit that was verified
// already: what the merge brings is judged by what is acted on there. last is
// the fleet as it was read there, for files of it that are broken.
func (v *Verifier) Merge(ctx context.Context, into tree.Hash, at *State, last *fleet.Fleet, merge tree.Hash) (*State, error) {
	v.forget(into)
	if !at.Signed {
		return v.walk(into, nil).unsigned(into, merge)
	}
	v.reader.last, v.reader.root = last, at.root
	for i, b := range at.Broken {
		v.commits.main[b.Commit] = at.Said
		if i+1 < len(at.Broken) {
			v.commits.main[b.Commit] = at.Broken[i+1].Commit
		}
	}
	w := v.walk(into, nil)
	w.held[into] = at.held
	if err := w.follow(ctx, into); err != nil {
		return nil, err
	}
	if err := w.branch(ctx, into, merge); err != nil {
		return nil, err
	}
	return w.state(merge)
}

// AsItStands is what a head says where it is not known what was accepted:
// whatever it says is taken, but from trees that are whole.
func (v *Verifier) AsItStands(head tree.Hash) (*State, error) {
	v.forget(tree.Hash{})
	return v.walk(head, nil).unsigned(head, head)
}

// know finds the branch's own line to a head that says nothing: what came before
// on it stays in force, and not what it merges.
func (w *walk) know(ctx context.Context, accepted, head tree.Hash) error {
	if accepted == head {
		return nil
	}
	c, err := w.get(head)
	if err != nil {
		return err
	}
	if broken, err := w.whole(c); err != nil || broken == nil {
		return err
	}
	_, _, err = w.own(ctx, accepted, head)
	return err
}

// unsigned is what a head says where nobody asks for signatures.
func (w *walk) unsigned(accepted, head tree.Hash) (*State, error) {
	out := &State{}
	if err := w.say(out, head); err != nil {
		return nil, err
	}
	out.Clean = out.Said
	// The accepted commit is accepted, even if it would not be today.
	for h := head; h != out.Said; {
		if h == accepted && accepted != head {
			out.Clean = accepted
		}
		c, err := w.get(h)
		if err != nil {
			return nil, err
		}
		h = w.parent(c)
	}
	var err error
	out.Tree, err = w.tree(head)
	return out, err
}

// say notes whose tree a head says.
func (w *walk) say(out *State, head tree.Hash) (err error) {
	if out.Said, err = w.said(head); err == nil {
		out.Broken, err = w.brokenAt(head)
	}
	return err
}

// begin is a walk with the rights at the accepted commit.
func (v *Verifier) begin(ctx context.Context, accepted tree.Hash, older []tree.Tree) (*walk, error) {
	w := v.walk(accepted, older)
	return w, w.follow(ctx, accepted)
}

func (v *Verifier) walk(from tree.Hash, older []tree.Tree) *walk {
	return &walk{
		commits: &v.commits, via: v.via, now: v.now(), done: map[tree.Hash]bool{}, held: map[tree.Hash]holdings{}, clean: from,
		read: func(ctx context.Context, t tree.Tree) (*rights, error) { return v.reader.read(ctx, t, older) },
	}
}

// state is what the walk found out about its head.
func (w *walk) state(head tree.Hash) (*State, error) {
	t, err := w.tree(head)
	if err != nil {
		return nil, err
	}
	out := &State{Clean: w.clean, Signed: w.rights.signed}
	if err := w.say(out, head); err != nil {
		return nil, err
	}
	if out.Tree, err = laid(t, w.heldAt(head)); err != nil {
		return nil, err
	}
	out.held = w.heldAt(head)
	for path, h := range out.held.All() {
		out.Findings = append(out.Findings, Finding{path, h.commit.hash, h.commit.author, h.why, h.unapproved, h.at, h.entry})
	}
	return out, nil
}

// holdings are the paths that a commit holds back. Commits share what is equal.
type holdings = ordered.Map[*held]

// held is a path that is held back.
type held struct {
	// entry is what E has; zero: nothing.
	entry tree.Entry
	// at is a commit at which the path is as E has it.
	at tree.Hash
	// commit that is not taken over, and why.
	commit     *commit
	why        string
	unapproved bool
}

// laid is E: a tree with what is held back laid over.
func laid(t tree.Tree, over holdings) (tree.Tree, error) {
	entries := map[string]tree.Entry{}
	for path, h := range over.All() {
		entries[path] = h.entry
	}
	return tree.With(t, entries)
}
