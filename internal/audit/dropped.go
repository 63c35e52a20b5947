package audit

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit/sequence"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Dropped is a head that had been accepted and that an operator let go of, by
// accepting a branch that does not contain it.
type Dropped struct {
	// Branch and Head that was accepted on it.
	Branch string `json:"branch"`
	Head   string `json:"head"`
	// Commit of the ledger that says so.
	Commit string `json:"commit"`
	head   tree.Hash
}

// gone is a commit that acted on inputs which are not on their branch any more.
type gone struct {
	Violation
	inputs tree.Hash
}

// letGo notes the heads that the commit says were let go of. Only a key that was
// trusted before it says so: else who sets a branch back would say it as well.
func (v *verifier) letGo(ctx context.Context) error {
	said := gitobj.Trailers(v.c.Message, gitrepo.DroppedTrailer)
	if len(said) == 0 {
		return nil
	}
	of := v.signers.ring
	if v.strict() && !v.signers.rooted {
		var err error
		if of, err = ringOf(v.root.Ledger(nil)); err != nil {
			return err
		}
	}
	by, _, err := v.signer(ctx, of)
	if err != nil || by == nil {
		return err
	}
	for _, text := range said {
		branch, hash, _ := strings.Cut(text, " ")
		h, err := tree.ParseHash(hash)
		if err != nil {
			v.fault("", "trailers", "Dropped is %q, want a branch and a commit", text)
			continue
		}
		v.report.Dropped = append(v.report.Dropped, Dropped{branch, h.String(), v.c.Hash.String(), h})
	}
	v.in.dropped = v.report.Dropped
	return nil
}

// dropped is by which word of the ledger an operator let go of a commit: it is one
// that was named, or an ancestor of it. Nil: by none.
func (v *verifier) dropped(ctx context.Context, h tree.Hash) (*Dropped, error) {
	for i, d := range v.report.Dropped {
		if v.branch != "" && d.Branch != v.branch {
			continue
		}
		if ok, err := v.in.below(ctx, h, []tree.Hash{d.head}); err != nil || ok {
			return &v.report.Dropped[i], err
		}
	}
	return nil, nil
}

// below reports whether a commit is one of some, or an ancestor of one.
func (r *reader) below(ctx context.Context, h tree.Hash, of []tree.Hash) (bool, error) {
	for _, head := range of {
		if head == h {
			return true, nil
		}
		if _, err := r.stored(head); err != nil {
			continue // gone with what was let go of
		}
		if ok, err := r.ancestry.Holds(ctx, head, h); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

// ruled notes a commit that rules decided which this program does not know, and one of
// lower rules or a lower rendering than one before.
func (v *verifier) ruled() {
	said := v.c.Trailer("Rules")
	rules, err := strconv.Atoi(cmp.Or(said, "0"))
	switch {
	case err != nil || rules < 0:
		v.fault("", "trailers", "Rules is no number: %q", said)
	case rules > planner.Rules:
		v.unknown("decided by rules %d, which this program does not know: it knows up to %d", rules, planner.Rules)
	}
	if err := ledger.KnownFormat(v.c.Trailer(ledger.FormatTrailer)); err != nil {
		v.unknown("%s", err)
	}
	round, err := time.Parse(time.RFC3339, v.c.Trailer("Now"))
	if err != nil {
		round = v.c.Committer.When
	}
	falls := func(key string, of *sequence.Number, is int) {
		if most, since, falls := of.Falls(is, round, v.c.Committer.When, maxBehind); falls {
			v.fault("", "trailers", "%s is %d, and was %d at %s: a daemon of a lower number writes nothing after that", key, is, most, stamp(since))
		}
	}
	falls("Rules", &v.numbers.rules, rules)
	falls("Renderer", &v.numbers.renderer, v.renderer())
}
