package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// OfferBranch is the branch of commits that people merge into the ledger.
const OfferBranch = "fleetbroker/decisions"

const (
	offerRef = "refs/heads/" + OfferBranch
	// offeredRef is the commit offered last, which stays when the branch goes.
	offeredRef = "refs/fleetbroker/offered"
	// maxOffers bounds how many older offers are recognised when they are merged,
	// mergeTime how long after they were replaced: a merge may be under way. Later
	// they are decisions that nobody stands by any more, signed by us all the same.
	maxOffers = 16
	mergeTime = 10 * time.Minute
)

// madeOffer is a commit offered since the start.
type madeOffer struct {
	commit tree.Hash
	// replaced is when another took its place; zero: it stands.
	replaced time.Time
}

// ErrOfferTaken means that another account pushed to the branch of offers. It is
// left as it is.
var ErrOfferTaken = errors.New("another account pushed to the branch " + OfferBranch +
	", which is the daemon's alone: delete the branch, and the daemon makes it again")

// Offered is the commit that stands on the branch of offers, zero when there is
// none. The error is ErrOfferTaken when it is not ours.
func (r *Repo) Offered() (Commit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	head := r.refs[offerRef]
	switch {
	case head.IsZero():
		return Commit{}, nil
	case r.taken(head):
		return Commit{}, ErrOfferTaken
	case !r.standsNoted(head):
		return Commit{}, nil // ours, and nothing says whether it still stands: Offer replaces it
	}
	return r.info(head)
}

// Offer puts a request's commit on the branch of offers and not on the ledger:
// one commit on the ledger's head, in place of what was offered before. Nothing
// of it counts before somebody merges it. The ledger is begun with an empty
// commit where there is none.
//
// Errors: *ErrReplan when the ledger is not at the request's base any more,
// *ErrRefused, ErrOfferTaken, or the remote's.
func (r *Repo) Offer(ctx context.Context, req Request) (Commit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &writer{r: r, req: req, base: req.Base, done: map[string]bool{}, offer: true}
	if err := req.check(r.opts.Generated); err != nil {
		return Commit{}, err
	}
	if err := w.prepare(ctx); err != nil {
		return Commit{}, err
	}
	if old := r.refs[offerRef]; !old.IsZero() && r.taken(old) {
		return Commit{}, ErrOfferTaken
	}
	r.restoreMarket(ctx)
	if head := r.refs[r.ledgerRef]; head != req.Base {
		return Commit{}, &ErrReplan{Head: head, Paths: []string{"."}}
	}
	if err := w.beginLedger(ctx); err != nil {
		return Commit{}, err
	}
	st, err := w.stageOffer()
	if err != nil {
		return Commit{}, err
	}
	if err := r.pushOffer(ctx, st); err != nil {
		return Commit{}, err
	}
	return st.info, nil
}

// standsNoted reports whether the branch of offers is at what was offered last, by
// the remote's note or by what this process did.
func (r *Repo) standsNoted(head tree.Hash) bool {
	n := len(r.offers)
	return head == r.refs[offeredRef] || n > 0 && r.offers[n-1].commit == head
}

// taken reports whether another account pushed the head of the branch of offers. Who
// deletes or moves the note alone changes nothing of that: a commit of ours without
// a number was offered at some time.
func (r *Repo) taken(head tree.Hash) bool {
	return !r.standsNoted(head) && r.ourOffer != head
}

// lookAtOffer reads the head of the branch of offers where nothing notes it. What
// cannot be read now is looked at again. The caller holds mu.
func (r *Repo) lookAtOffer(ctx context.Context) {
	head := r.refs[offerRef]
	if head.IsZero() || r.standsNoted(head) || r.ourOffer == head || r.foreignOffer == head {
		return
	}
	raw, err := r.store.rawCommitHere(head)
	if err != nil {
		set := gitobj.Set{}
		err := r.remote.Fetch(ctx, func(map[string]tree.Hash) (want, have []tree.Hash) {
			return []tree.Hash{head}, r.haves()
		}, func(pack io.Reader) (err error) {
			set, err = gitobj.ReadPack(pack, BranchBounds.Bytes)
			return err
		})
		if err != nil && !errors.Is(err, gitobj.ErrPackTooLarge) {
			return
		}
		raw = nil
		if o := set[head]; o.Type == gitobj.Commit {
			raw = o.Data
		}
	}
	r.foreignOffer = head
	c, err := gitobj.ParseCommit(raw)
	if err != nil || len(gitobj.Trailers(c.Message, LedgerTrailer)) > 0 {
		return
	}
	if ours, err := r.byUsRaw(*r.identity.Load(), head, raw); err == nil && ours {
		r.ourOffer, r.foreignOffer = head, tree.Hash{}
	}
}

// beginLedger makes the branch that offers are merged into, with an empty
// commit.
func (w *writer) beginLedger(ctx context.Context) error {
	r := w.r
	if !r.refs[r.ledgerRef].IsZero() {
		return nil
	}
	objects := gitobj.Set{}
	message, err := r.numbered("Begin the ledger\n", tree.Hash{})
	if err != nil {
		return err
	}
	commit, err := r.makeCommit(objects, objects.Add(gitobj.Tree, nil), nil, w.req.When, message)
	if err != nil {
		return err
	}
	return r.pushAll(ctx, []Command{{Ref: r.ledgerRef, New: commit}}, objects, objects)
}

// stageOffer is the request's commit, to be pushed to the branch of offers.
func (w *writer) stageOffer() (staged, error) {
	r := w.r
	parent, _, err := r.ground(r.refs[r.ledgerRef])
	if err != nil {
		return staged{}, err
	}
	c, err := w.req.compose(parent, w.req.Items, r.opts.Generated)
	if err != nil {
		return staged{}, err
	}
	st, err := w.stage(c, w.req.Items)
	if err != nil {
		return staged{}, err
	}
	if st.commit.IsZero() {
		return staged{}, errors.New("offer: it changes nothing")
	}
	// What is not merged is not accepted: only the market goes along.
	st.cmds = slices.DeleteFunc(st.cmds, func(c Command) bool { return !strings.HasPrefix(c.Ref, MarketPrefix) })
	st.cmds = append(st.cmds,
		Command{Ref: offerRef, Old: r.refs[offerRef], New: st.commit},
		Command{Ref: offeredRef, Old: r.at(offeredRef), New: st.commit})
	return st, nil
}

func (r *Repo) pushOffer(ctx context.Context, st staged) error {
	var err error
	if st.cmds, err = r.clear(ctx, st.cmds); err != nil {
		return err
	}
	if err = r.remote.Push(ctx, st.cmds, st.pack); err != nil {
		refs, rerr := r.remote.Refs(ctx)
		if rerr != nil {
			return errors.Join(err, rerr)
		}
		if refs[offerRef] != st.commit || refs[offeredRef] != st.commit {
			return r.refusal(offerRef, err)
		}
	}
	r.store.add(st.objects)
	refs := maps.Clone(r.refs)
	for _, c := range st.cmds {
		refs[c.Ref] = c.New
	}
	r.refs = refs
	r.publishedMarket(st.market)
	if n := len(r.offers); n > 0 {
		r.offers[n-1].replaced = r.opts.Now()
	}
	if r.offers = append(r.offers, madeOffer{commit: st.commit}); len(r.offers) > maxOffers {
		r.offers = r.offers[1:]
	}
	return nil
}

// pushAll updates refs with new objects, and takes both over.
func (r *Repo) pushAll(ctx context.Context, cmds []Command, wire, keep gitobj.Set) error {
	pack, err := r.packed(wire)
	if err != nil {
		return err
	}
	if cmds, err = r.clear(ctx, cmds); err != nil {
		return err
	}
	if err := r.remote.Push(ctx, cmds, pack); err != nil {
		return r.refusal(cmds[0].Ref, err)
	}
	r.store.add(keep)
	refs := maps.Clone(r.refs)
	for _, c := range cmds {
		refs[c.Ref] = c.New
	}
	r.refs = refs
	return nil
}

// refusal is a push's error: a refusal when the server said no.
func (r *Repo) refusal(ref string, err error) error {
	var answered *Rejection
	if errors.As(err, &answered) {
		return &ErrRefused{Ref: ref, Cause: err}
	}
	return fmt.Errorf("push %s: %w", ref, err)
}

// Withdraw deletes the branch of offers where it is ours.
func (r *Repo) Withdraw(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	head := r.refs[offerRef]
	if head.IsZero() || r.taken(head) {
		return nil
	}
	if err := r.moveRefs(ctx, []Command{{Ref: offerRef, Old: head}}); err != nil {
		return fmt.Errorf("delete the branch %s: %w", OfferBranch, err)
	}
	return nil
}

// offered are the commits that were offered and may be merged, newest last. The
// caller holds mu.
func (r *Repo) offered() []tree.Hash {
	var out []tree.Hash
	now := r.opts.Now()
	for _, o := range r.offers {
		if o.replaced.IsZero() || now.Sub(o.replaced) < mergeTime {
			out = append(out, o.commit)
		}
	}
	if h := r.refs[offeredRef]; !h.IsZero() && !slices.Contains(out, h) {
		out = append(out, h)
	}
	return out
}

// isOffer reports whether a commit does to the generated paths just what one of
// our offers does, on the same ground: a squash, or a rebase, of it.
func (r *Repo) isOffer(id Identity, c Commit, offers []tree.Hash) (bool, error) {
	for _, h := range offers {
		own, err := r.byUs(id, h)
		if err != nil || !own || h == c.Hash {
			continue // not here, not ours, or itself, which is judged by where it was brought
		}
		o, err := r.info(h)
		if err != nil || len(o.Parents) != 1 || len(c.Parents) == 0 {
			continue
		}
		same, err := r.sameGenerated(c.Hash, h)
		if err == nil && same {
			same, err = r.sameGenerated(c.Parents[0], o.Parents[0])
		}
		if err != nil || same {
			return same, err
		}
	}
	return false, nil
}

// sameGenerated compares what two commits have under the generated prefixes.
func (r *Repo) sameGenerated(a, b tree.Hash) (bool, error) {
	v := r.ledger(tree.Hash{})
	ta, err := v.tree(a)
	if err != nil {
		return false, err
	}
	tb, err := v.tree(b)
	if err != nil {
		return false, err
	}
	for _, p := range r.opts.Generated {
		ea, err := find(ta, strings.TrimSuffix(p, "/"))
		if err != nil {
			return false, err
		}
		eb, err := find(tb, strings.TrimSuffix(p, "/"))
		if err != nil || ea != eb {
			return false, err
		}
	}
	return true, nil
}
