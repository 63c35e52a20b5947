package audit

import (
	"context"
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit/hands"
	"github.com/fleetbroker/fleetbroker/internal/audit/sequence"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// known demands that the ledger holds the commits that are known to have stood.
// What an operator let go of by the ledger's own word is excused but for the
// witness: who has a daemon's key can write that word. whole: each commit was
// judged.
func (v *verifier) known(ctx context.Context, o Options, whole bool) error {
	for _, k := range o.Known {
		if err := v.stood(ctx, o, k, whole); err != nil {
			return err
		}
	}
	if o.Witness == nil {
		return nil
	}
	h, err := tree.ParseHash(o.Witness.Commit)
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	if why := v.vouched(ctx, o.Witness); why != "" {
		v.fault("", "sequence", "the witness of %s does not count: %s", h, why)
		return nil
	}
	return v.stood(ctx, o, Known{Commit: h, By: "the witness has it", object: o.Witness.Object}, whole)
}

// stood demands one commit.
func (v *verifier) stood(ctx context.Context, o Options, k Known, whole bool) error {
	raw, err := v.h.Commit(k.Commit)
	there := err == nil
	if there {
		if held, err := v.graph.Holds(ctx, o.Ledger, k.Commit); err != nil || held {
			return err
		}
	}
	witness := k.object != nil
	if witness {
		raw = k.object
	}
	missing, err := v.missing(ctx, o.Ledger, k.Commit, raw, there, whole)
	if err != nil {
		return err
	}
	for i, by := range []string{"--accept-rewrite", "the trust root"} {
		if accepted, err := v.in.below(ctx, k.Commit, [][]tree.Hash{v.in.accepted, v.in.grantedOfLedger}[i]); err != nil {
			return err
		} else if accepted {
			v.note("%s, which the ledger does not hold: %s accepts it%s", k.By, by, missing)
			return nil
		}
	}
	let, err := v.dropped(ctx, k.Commit)
	switch {
	case err != nil:
		return err
	case let != nil && !witness:
		v.note("%s, which the ledger does not hold: an operator let go of it, commit %.7s states%s", k.By, let.Commit, missing)
		return nil
	case let != nil:
		missing += fmt.Sprintf("; commit %.7s states that an operator let go of it, which any holder of a daemon's key can write: where the operator confirms it, add --accept-rewrite %s", let.Commit, k.Commit)
	case k.Hint && v.strict():
		if why := v.hinted(ctx, raw); why != "" {
			v.note("%s, which the ledger does not hold, but %s: whoever may push can write that", k.By, why)
			return nil
		}
	}
	v.fault("", "sequence", "the ledger was set back or rewritten: it does not hold %s, which has stood (%s)%s", k.Commit, k.By, missing)
	return nil
}

// missing names the numbers of the ledger that a commit stands for and a head does
// not hold. raw is the commit's object, nil where nobody has it; there: the
// repository has it, with its ancestors.
func (v *verifier) missing(ctx context.Context, head, commit tree.Hash, raw []byte, there, whole bool) (string, error) {
	var list []uint64
	last := uint64(0)
	if raw != nil {
		if w, err := witnessOf(raw); err == nil {
			last = w.Seq
		}
	}
	switch {
	case there:
		only, err := v.graph.Only(ctx, commit, head)
		if err != nil {
			return "", err
		}
		for _, h := range only {
			raw, err := v.h.Commit(h)
			if err != nil {
				return "", fmt.Errorf("read commit %s: %w", h.Short(), err)
			}
			if w, err := witnessOf(raw); err == nil && w.Seq > 0 {
				list = append(list, w.Seq)
			}
		}
	case last == 0 || !whole:
	default:
		return ": " + v.numbers.Lacks(last), nil
	}
	if len(list) == 0 {
		return "", nil
	}
	return ": " + sequence.Spans(list) + " missing", nil
}

// hinted is why a commit that anybody may name is none of the ledger's, or "".
func (v *verifier) hinted(ctx context.Context, raw []byte) string {
	if raw == nil {
		return "that commit is not in the repository"
	}
	w, err := witnessOf(raw)
	switch {
	case err != nil:
		return err.Error()
	case w.Branch == "" && v.numbers.Begun:
		return "that commit has no trailer Ledger"
	}
	return v.vouched(ctx, w)
}

// vouched is why no trusted key speaks for a witness, or "".
func (v *verifier) vouched(ctx context.Context, w *Witness) string {
	if id := v.root.ID(); w.FleetID != "" && id != "" && w.FleetID != id {
		return fmt.Sprintf("it is of fleet %s, the trust root of %s", w.FleetID, id)
	}
	if v.branch != "" && w.Branch != "" && w.Branch != v.branch {
		return fmt.Sprintf("it is of branch %s, this ledger is %s", w.Branch, v.branch)
	}
	list := v.ever
	if v.strict() {
		list = hands.Merged(v.root.Ledger(nil), list)
	}
	of, err := ringOf(list)
	if err != nil {
		return err.Error()
	}
	if of.keys.Empty() && !v.strict() {
		return "" // an unsigned fleet's: who keeps the file speaks for it
	}
	data, err := gitobj.ParseCommit(w.Object)
	if err != nil {
		return err.Error()
	}
	if why := hands.Twice(data.Message); why != "" {
		return why
	}
	i, err := of.keys.SignerOf(w.Object, data.Committer.When)
	if err != nil {
		return err.Error()
	}
	why, err := v.revoked(ctx, of.list[i], gitobj.Object{Type: gitobj.Commit, Data: w.Object}.Hash())
	if err != nil {
		return err.Error()
	}
	return why
}
