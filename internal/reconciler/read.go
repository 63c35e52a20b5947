package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/heard"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/writers"
)

// inputs are what one round has read.
type inputs struct {
	heads gitrepo.Heads
	// clean is the inputs' commit up to which everything is verified.
	clean tree.Hash
	// key names the inputs without the generated files beside them.
	key    tree.Hash
	fleet  *fleet.Fleet
	ledger *ledger.Ledger
	index  manifests.Index
	// foreign are edits of generated paths that are not ours.
	foreign []gitrepo.ForeignEdit
	// authors of intents that the ledger does not know or knows otherwise, by path.
	authors map[string]gitrepo.Commit
	// attributed tells authors apart; asked are the intents of which the newest
	// may say something else than those before.
	attributed uint64
	asked      [][2]string
	// renewing: manifests wait for review, and no decision goes before them.
	renewing bool
	// aside is the item that brings the ledger's list of what is set aside up to
	// date, where the list is proposed with the decisions; nil when it is.
	aside *gitrepo.Item
}

// read brings heads, fleet and ledger up to date. It asks the remote only when
// it may have moved.
func (r *Reconciler) read(ctx context.Context) (*inputs, error) {
	now := r.opts.Now()
	if r.ought(now) {
		r.ask.Store(false)
		r.hint.Store(false)
		if err := r.fetch(ctx); err != nil {
			r.ask.Store(true)
			return nil, err
		}
		r.asked = now
	}
	in := &inputs{heads: r.heads, clean: r.state.Clean, key: r.inputs, fleet: r.fleet, ledger: r.ledger}
	if err := r.turns.Follow(r.opts.Repo, r.heads.Ledger.Commit.Hash); err != nil {
		return nil, err
	}
	r.standby = !r.leads || r.turns.StandsBy() != ""
	r.blocked = "" // alarm looks again
	foreign, err := r.opts.Repo.Foreign(ctx, r.heads.Accepted.Ledger, r.heads.Ledger.Commit.Hash, nil)
	if err != nil {
		return nil, fmt.Errorf("look for foreign edits: %w", err)
	}
	if in.foreign = foreign; len(foreign) > 0 {
		return in, nil
	}
	r.opts.Repo.Accept(r.state.Clean, r.heads.Ledger.Commit.Hash)
	r.alarm(ctx, in)
	if err := r.ledger.Broken(); err != nil && writers.Known(r.opts.Repo, r.heads.Ledger.Commit.Hash) == nil { // else prepare says why
		return nil, err
	}
	if r.indexed != r.ledger {
		changes := between(r.indexed, r.ledger)
		if r.indexed != nil {
			heard.StillHeld(r.opts.Market, changes)
		}
		r.index = r.index.With(changes)
		r.indexed = r.ledger
	}
	in.index, in.authors, in.attributed, in.asked = r.index, r.authors.byPath, r.authors.number, r.authors.asked
	r.stand(in)
	return in, nil
}

// hinted is how long a webhook may go unheeded while clients wait for
// reservations.
const hinted = time.Second

// ought reports whether the remote has to be asked before this round.
//
// The poll is counted from the last answer and not from the last round: a
// market that is never still must not keep us from asking. A forge sends a
// webhook for our own pushes too, and with reservations after reservations that
// is one a commit: while clients wait and nobody else writes the ledger it is
// heeded once a second, because the push finds out by itself whether the ledger
// has moved.
func (r *Reconciler) ought(now time.Time) bool {
	since := now.Sub(r.asked)
	if r.ask.Load() || r.fleet == nil || since >= r.opts.Poll || since < 0 {
		return true
	}
	return r.hint.Load() && (since >= hinted || r.contended || r.intake.len() == 0 && len(r.desk.waiting) == 0)
}

// fetch asks the remote and reads what is new there.
func (r *Reconciler) fetch(ctx context.Context) error {
	done := r.traced.Time(traced.Ask)
	seen := r.intake.newest()
	fetched := r.progress.Doing("fetch the fleet repo", true)
	heads, err := r.opts.Repo.Fetch(ctx)
	fetched()
	done()
	var rewritten *gitrepo.ErrRewritten
	r.progress.Answered(err == nil || errors.As(err, &rewritten) || r.opts.Pushes.Reads() != nil)
	if err != nil {
		return fmt.Errorf("fetch the fleet repo: %w", err)
	}
	r.desk.seen, r.suspected.try = seen, true
	r.suspected.again = r.fleet != nil && slices.ContainsFunc(r.fleet.NotRead, func(u fleet.Unread) bool { return u.Again })
	return r.adopt(ctx, heads)
}

// adopt reads fleet and ledger at these heads. On an error what was read before
// stays as it is, and the next round reads again.
func (r *Reconciler) adopt(ctx context.Context, heads gitrepo.Heads) error {
	defer r.traced.Time(traced.Read)()
	if heads.Inputs.Commit.IsZero() {
		return fmt.Errorf("the fleet repo has no branch %s yet: push the first commit of the inputs (`fleetbroker init DIR` lays them down)", heads.Inputs.Ref)
	}
	if err := r.suspect(heads); err != nil {
		return err
	}
	found, older, err := r.verified(ctx, heads)
	if err != nil {
		return err
	}
	state := found.state
	if why := state.Silent(); why != nil {
		return fmt.Errorf("no version of fleet.yaml can be read, so nothing is written or applied: %w", why)
	}
	heads.Inputs.Tree = state.Tree
	stood := heads.Ledger.Tree
	if err := r.lay(&heads); err != nil {
		return err
	}
	inputs, err := inputsKey(heads)
	if err != nil {
		return err
	}
	f := r.fleet
	if f == nil || inputs != r.inputs || r.suspected.again || !slices.Equal(state.Findings, r.state.Findings) || !slices.Equal(state.Broken, r.state.Broken) {
		if f, err = r.readFleet(ctx, heads, inputs, older); err != nil {
			return err
		}
		f = withFindings(f, state)
		r.report(f)
	}
	if err := r.anchored(ctx, &heads); err != nil {
		return err
	}
	r.readThrough(f)
	led, _, err := ledger.Read(ctx, heads.Ledger.Tree, r.ledger)
	if err != nil {
		return fmt.Errorf("read the ledger at %s: %w", heads.Ledger.Commit.Hash.Short(), err)
	}
	if err := r.opts.Pushes.Follow(r.opts.Repo, heads.Ledger.Commit.Hash); err != nil {
		return err
	}
	if err := r.followSources(f, stood); err != nil {
		return err
	}
	since := cmp.Or(r.heads.Inputs.Commit.Hash, heads.Accepted.Inputs)
	before := r.reading
	r.reading = reading{heads: heads, checked: found, fleet: f, inputs: inputs, ledger: led}
	if err = r.whose(ctx, since); err != nil {
		r.reading = before
		return err
	}
	r.hasRead.Store(true)
	return nil
}

// readFleet reads inputs that are new, and lets the other rooms follow them.
func (r *Reconciler) readFleet(ctx context.Context, heads gitrepo.Heads, key tree.Hash, older []tree.Tree) (*fleet.Fleet, error) {
	r.revoke(heads.Inputs.Tree, older) // first: it must not wait until the rest can be read
	f, err := r.reader.ReadAll(ctx, fleet.Sources{
		Inputs: heads.Inputs.Tree, Ledger: heads.Ledger.Tree, Last: r.fleet, Older: older, Aside: r.suspected.out, Rationed: r.fleet != nil, Starting: r.fleet == nil,
	})
	if err != nil {
		return nil, fmt.Errorf("read the inputs at %s: %w", heads.Inputs.Commit.Hash.Short(), err)
	}
	if i := slices.IndexFunc(f.Frozen, func(z model.Freeze) bool { return z.Path == "/" }); i >= 0 {
		// Without a policy we would write under a made-up name, and other
		// daemons would undo it as foreign.
		return nil, fmt.Errorf("no version of fleet.yaml can be read, so nothing is written or applied: fix it (%s)", f.Frozen[i].Why)
	}
	if err := r.follow(f, key); err != nil {
		return nil, err
	}
	return f, nil
}

// follow lets the other rooms follow what the inputs say of them.
func (r *Reconciler) follow(f *fleet.Fleet, key tree.Hash) error {
	wb := f.Policy.WriteBack
	if want := gitrepo.Branch(wb.Branch); r.opts.Ledger != "" && want != gitrepo.Branch(r.opts.Ledger) {
		return fmt.Errorf("fleet.yaml names %s as the ledger branch, and this daemon writes %s: restart it to follow, or give --ledger", wb.Branch, r.opts.Ledger)
	}
	last := f
	if r.fleet != nil {
		last = r.fleet // whom the last accepted state trusts
	}
	if r.opts.Root.Signed() {
		last = f // a person of the root signed it
	}
	id, err := r.rooted(last)
	if err != nil {
		return fmt.Errorf("fleet.yaml: writeBack.signers: %w", err)
	}
	id.Name, id.Email = wb.Author.Name, wb.Author.Email
	r.lookAtOwnKey(id)
	r.opts.Repo.SetIdentity(id)
	r.opts.Pushes.Configure(wb.Pushes)
	r.setMarket(f, key)
	return nil
}

// revoke passes the inputs' list of revoked certificates on. One that was
// removed from the inputs stays in force until the daemon starts again. One
// that cannot be used leaves the former in force, and stops no round: at a
// start, where there is none, the newest older one that can be used is taken.
func (r *Reconciler) revoke(inputs tree.Tree, older []tree.Tree) {
	if r.opts.Revoke == nil {
		return
	}
	for i, t := range append([]tree.Tree{inputs}, older...) {
		crl, err := t.ReadFile("pki/"+pki.RevokedFile, pki.MaxRevokedBytes)
		if errors.Is(err, fs.ErrNotExist) {
			return // there was none, or somebody took it away
		}
		if err == nil {
			err = r.opts.Revoke(crl)
		}
		if err == nil {
			return
		}
		r.opts.Log.Error("the list of revoked certificates cannot be used; the former stays in force", "repair", "pki/"+pki.RevokedFile, "version", i, "error", err)
	}
}

// undo restores generated files that others edited, by one commit that names
// them, and goes on with another round.
func (r *Reconciler) undo(ctx context.Context, in *inputs) (Outcome, error) {
	req, err := r.undoRequest(in, r.now(in))
	if err != nil {
		return Outcome{}, err
	}
	for _, e := range in.foreign {
		if e.Broken != "" {
			r.opts.Log.Warn("a commit of the ledger is not acted on, because its tree is broken, and is undone",
				"commit", e.Commit.Hash.Short(), "author", e.Commit.Author.String(), "path", e.Path, "error", e.Broken)
			continue
		}
		r.opts.Log.Warn("a generated file was edited by another account",
			"path", e.Path, "commit", e.Commit.Hash.Short(), "author", e.Commit.Author.String())
	}
	if r.standby {
		return Outcome{Due: r.opts.Now().Add(r.opts.Poll)}, nil // who decides restores them
	}
	if r.shadow(in) {
		return Outcome{}, fmt.Errorf("generated files were edited by others (%s), and this daemon may not restore them: %s", foreignList(in.foreign), cmp.Or(r.withheld(in.fleet.Policy), "it only reports (--shadow, or writeBack.mode: none)"))
	}
	if r.offers(in) {
		return r.offerUndo(ctx, in, req)
	}
	res, err := r.opts.Repo.Commit(ctx, req)
	if err != nil {
		return Outcome{Committed: res.Commits}, fmt.Errorf("undo foreign edits: %w", err)
	}
	r.ask.Store(true)
	return Outcome{Committed: res.Commits, Again: true}, nil
}

func foreignList(edits []gitrepo.ForeignEdit) string {
	var names []string
	for i, e := range edits {
		if i == 3 {
			names = append(names, fmt.Sprintf("and %d more", len(edits)-i))
			break
		}
		names = append(names, cmp.Or(e.Path, "the tree of "+e.Commit.Hash.Short()))
	}
	return strings.Join(names, ", ")
}
