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

// refusedHead is what a ref names and cannot be taken in: too many bytes, or no
// commit. A branch counts as standing where it stood until it is elsewhere; a ref
// of the fleet (refs/fleetbroker/) is a hint and counts as absent.
type refusedHead struct {
	head tree.Hash
	// stood is where the branch stood, zero for a ref that is a hint.
	stood tree.Hash
	why   error
	// failed is why the ledger was not set back, until when it is not tried again.
	failed error
	until  time.Time
}

// alarm says what is refused, and what to do.
func (h refusedHead) alarm(ref string) string {
	branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
	if !isBranch {
		return fmt.Sprintf("%s names %s, which cannot be taken in (%v). The ref is ignored; see who may push refs", ref, h.head.Short(), h.why)
	}
	return fmt.Sprintf("%s is at %s, which cannot be taken in (%v). It is not read, and the branch counts as standing at %s: nothing after that is acted on. "+
		"The daemon sets a ledger back if it can; else set the branch back to a commit before it (git push --force-with-lease origin <commit>:%s), and see who may push to it", branch, h.head.Short(), h.why, h.stood.Short(), branch)
}

// intake is a place that objects arrive in: the local copy, or a clone that may
// replace it.
type intake struct {
	has  func(tree.Hash) bool
	raw  func(tree.Hash) ([]byte, error)
	take func(io.Reader) error
	// haves are named to the server.
	haves func() []tree.Hash
}

// here is the local copy.
func (r *Repo) here() intake { return intake{r.store.has, r.store.rawCommit, r.take, r.haves} }

// cloneEach fills a new copy with the heads one after the other, where one is too
// large. What is refused already is looked at again, for the new copy has not what
// stood.
func (r *Repo) cloneEach(ctx context.Context, in intake) (map[string]tree.Hash, error) {
	before := r.refused
	r.refused = nil
	refs, err := r.downloadEach(ctx, in)
	if err != nil {
		r.refused = before
	}
	return refs, err
}

// downloadEach brings the missing heads one after the other, hints first: where
// a branch stood may be known from them alone. A head that is too large by itself
// is refused; the others come all the same.
func (r *Repo) downloadEach(ctx context.Context, in intake) (map[string]tree.Hash, error) {
	for range 3 * len(r.tracked()) { // heads may move meanwhile
		var refs map[string]tree.Hash
		var one tree.Hash
		err := r.remote.Fetch(ctx, func(is map[string]tree.Hash) (want, have []tree.Hash) {
			refs, one = is, tree.Hash{}
			if list := r.missing(is, in.has); len(list) > 0 {
				one = list[len(list)-1]
				return []tree.Hash{one}, in.haves()
			}
			return nil, nil
		}, in.take)
		switch {
		case errors.Is(err, gitobj.ErrPackTooLarge):
			if !r.refuse(refs, one, err, in) {
				return nil, err
			}
		case err != nil:
			return nil, err
		case one.IsZero():
			return refs, nil
		}
	}
	return nil, errors.New("fetch: the heads moved all the while; try again")
}

// refuse remembers that a head cannot be taken in. It fails where nothing is
// known of where a branch stood: an empty ledger would be taken for the truth.
func (r *Repo) refuse(refs map[string]tree.Hash, head tree.Hash, why error, in intake) bool {
	a := r.known()
	refused := map[string]refusedHead{}
	for _, ref := range r.tracked() {
		if refs[ref] != head {
			continue
		}
		accepted, note := a.Inputs, acceptedInputsRef
		switch ref {
		case r.ledgerRef: // also where both are one branch: its accepted heads are
			accepted, note = a.Ledger, acceptedLedgerRef
		case r.inputsRef:
		default:
			refused[ref] = refusedHead{head: head, why: why}
			continue
		}
		h := refusedHead{head: head, why: why}
		for _, stood := range []tree.Hash{r.refs[ref], accepted, r.whole[ref], r.vouched(refs[note], in)} {
			if !stood.IsZero() && stood != head && in.has(stood) {
				h.stood = stood
				break
			}
		}
		if h.stood.IsZero() {
			return false
		}
		refused[ref] = h
	}
	if r.refused == nil {
		r.refused = map[string]refusedHead{}
	}
	maps.Copy(r.refused, refused)
	return len(refused) > 0
}

// vouched is the commit that a note of the remote names, zero when it is not gone
// by: in a signed fleet a key of the trust root has signed it.
func (r *Repo) vouched(note tree.Hash, in intake) tree.Hash {
	id := r.identity.Load()
	if note.IsZero() || !in.has(note) || !id.Signed {
		return note
	}
	raw, err := in.raw(note)
	if err != nil {
		return tree.Hash{}
	}
	for _, k := range []Keys{id.Policy, id.Trusted} {
		if _, err := k.SignedCommit(note, raw, time.Now(), r.isAncestor); err == nil {
			return note
		}
	}
	return tree.Hash{}
}

// noCommits refuses refs that name what is no commit, or one that cannot be read.
// A server lets anybody who may push put them on a blob or a tag.
func (r *Repo) noCommits(refs map[string]tree.Hash) error {
	for _, ref := range r.tracked() {
		h := refs[ref]
		if h.IsZero() || r.refused[ref].head == h {
			continue
		}
		_, err := r.store.commit(h)
		if err == nil || errors.As(err, new(*ErrLocal)) {
			continue
		}
		if !r.refuse(refs, h, err, r.here()) {
			return fmt.Errorf("fetch: %s: %w", ref, err)
		}
	}
	return nil
}

// standing are the remote's refs with what refused branches stood at and without
// ignored refs, and ends what is refused no more.
func (r *Repo) standing(refs map[string]tree.Hash) map[string]tree.Hash {
	maps.DeleteFunc(r.refused, func(ref string, h refusedHead) bool { return refs[ref] != h.head })
	if len(r.refused) == 0 {
		return refs
	}
	refs = maps.Clone(refs)
	for _, ref := range slices.Collect(maps.Keys(r.refused)) {
		if refs[ref] = r.refused[ref].stood; refs[ref].IsZero() {
			delete(refs, ref)
		}
	}
	return refs
}

// at is what a ref of the fleet is at the remote, for the old value of a push: also
// where it is ignored.
func (r *Repo) at(ref string) tree.Hash {
	if h, ok := r.refused[ref]; ok && h.stood.IsZero() && r.refs[ref].IsZero() {
		return h.head
	}
	return r.refs[ref]
}

// ignored tells that a ref of the fleet is at the remote and counts as absent.
func (r *Repo) ignored(ref string) bool { return r.at(ref) != r.refs[ref] }
