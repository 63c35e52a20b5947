package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pubkey"
)

// rooted is whom the repository trusts: the trust root with what the fleet adds
// and drops. A nil fleet is one that has not been read yet.
func (r *Reconciler) rooted(f *fleet.Fleet) (id gitrepo.Identity, err error) {
	root := r.opts.Root
	id = gitrepo.Identity{Signer: r.opts.Signer, Signed: root.Signed(), Fleet: root.ID(), Root: root.Digest()}
	var daemons, people []v1alpha1.Signer
	if f != nil {
		daemons, people = f.Policy.WriteBack.Signers, f.Policy.Verification.Signers
	}
	if !root.Signed() {
		var keys []gitrepo.Key
		for _, s := range daemons {
			if !s.Dropped {
				keys = append(keys, gitrepo.Key{Principal: s.Principal, Text: s.PublicKey})
			}
		}
		id.Trusted, err = gitrepo.NewKeys(keys)
		return id, err
	}
	if id.Trusted, err = gitrepo.NewKeys(root.Ledger(daemons)); err == nil {
		id.Policy, err = gitrepo.NewKeys(root.Policy(people, daemons))
	}
	return id, err
}

// lookAtOwnKey notes whether this daemon's key is in force: others would undo what it
// writes otherwise.
func (r *Reconciler) lookAtOwnKey(id gitrepo.Identity) {
	r.unlisted = ""
	key, err := id.Trusted.Admit(r.opts.Signer)
	switch own, kerr := pubkey.ID(key.Text); {
	case kerr == nil:
		r.ownKey = strings.TrimSpace(key.Principal + " " + own)
	case r.opts.Signer != nil:
		r.ownKey = "a key that is not listed"
	default:
		r.ownKey = ""
	}
	if err == nil && r.ownKey != "" {
		r.once.Log.Info("signs its commits", "key", r.ownKey)
	}
	if !id.Signed {
		return
	}
	if err != nil {
		r.unlisted = fmt.Sprintf("the key of this daemon is not in force in the trust root's list ledger (%v): it plans and reports, and writes nothing; name its key there or in writeBack.signers, or start it with another --signing-key", err)
		r.once.Log.Warn("the key of this daemon is not in force", "reason", r.unlisted)
	}
}

// trust is what signatures are held to, for people. head is the ledger's.
func (r *Reconciler) trust(head tree.Hash) wire.Trust {
	out := r.opts.Root.Shown()
	out.Key, out.Alarms = r.ownKey, r.alarms
	seq, err := r.opts.Repo.Sequence(head)
	if err != nil {
		r.opts.Log.Warn("the ledger's number is not known", "error", err)
	}
	out.Sequence = seq
	return out
}

// anchored finds by signatures from where on the ledger is held to the rules,
// where nothing was accepted under this trust root. At the start the ledger must be
// that of the root's fleet.
func (r *Reconciler) anchored(ctx context.Context, heads *gitrepo.Heads) (err error) {
	if !r.opts.Root.Signed() {
		return nil
	}
	if !r.ofFleet { // what another hand adds once it is, is a foreign edit
		if r.ofFleet, err = r.opts.Repo.OfFleet(ctx, heads.Ledger.Commit.Hash); err != nil {
			return err
		}
	}
	if !heads.Accepted.Ledger.IsZero() {
		return nil
	}
	at, err := r.opts.Repo.Anchor(ctx, heads.Ledger.Commit.Hash)
	if err != nil {
		return fmt.Errorf("find what of the ledger stands: %w", err)
	}
	heads.Accepted.Ledger = at
	return nil
}

// alarm reports what contradicts what was accepted and what cannot be taken in,
// and puts both right.
func (r *Reconciler) alarm(ctx context.Context, in *inputs) {
	defer r.noteWithheld(in)
	if len(in.heads.Alarms) == 0 {
		return
	}
	for _, why := range in.heads.Alarms {
		r.once.Log.Warn("trust alarm", "reason", why)
		if !slices.Contains(r.alarms, why) && len(r.alarms) < 100 {
			r.alarms = append(slices.Clone(r.alarms), why)
		}
	}
	v := *r.view.Load()
	v.Trust.Alarms = r.alarms
	r.view.Store(&v)
	may := !r.shadow(in)
	to, err := r.opts.Repo.SetBack(ctx, may && !r.offers(in))
	if err != nil {
		r.blocked = err.Error()
		r.once.Log.Warn("the ledger cannot be set back", "reason", r.blocked)
	} else if !to.IsZero() {
		r.opts.Log.Error("ledger set back from a commit that cannot be taken in", "to", to.Short())
		r.ask.Store(true)
	}
	if !may {
		return
	}
	if err := r.opts.Repo.PutRight(ctx); err != nil {
		r.opts.Log.Warn("what the remote notes as accepted stays wrong for now", "error", err)
	}
}

// noteWithheld shows at once why nothing is written: a round that changes nothing
// publishes nothing.
func (r *Reconciler) noteWithheld(in *inputs) {
	v := *r.view.Load()
	if why := r.withheld(in.fleet.Policy); v.Fleet != nil && v.Withheld != why {
		v.Withheld = why
		r.view.Store(&v)
	}
}
