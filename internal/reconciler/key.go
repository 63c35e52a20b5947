package reconciler

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// key is what a plan depends on: rounds with equal keys need no plan.
type key struct {
	inputs, ledger tree.Hash
	market         uint64
	observed       uint64
	unheard        uint64 // digest of the contracts that wait for their provider's word
	unverified     uint64 // digest of what no authorised account has signed
	aside          string // what changes in the list of what is set aside
	deaf           bool
	settled        bool
	allowEnds      bool
	standby        bool // another replica decides
	// planDue and statusDue are when time alone makes the key another one.
	planDue   v1alpha1.Time
	statusDue time.Time
}

func (r *Reconciler) keyOf(in *inputs, s *market.Snapshot, observed uint64, unheard map[string]bool) key {
	return key{
		inputs: in.key, ledger: in.heads.Ledger.Tree.Root, market: s.Generation(), observed: observed,
		aside:   in.asideText(),
		unheard: digest(unheard), unverified: digest(findingTexts(r.state)),
		deaf:      s.Deaf(in.ledger.Providers()),
		settled:   s.Settled(),
		standby:   r.standby,
		allowEnds: !r.opts.AllowEnds.IsZero() && r.opts.AllowEnds == in.heads.Inputs.Commit.Hash,
	}
}

// inputsKey names what people wrote in the inputs, and what lies on the ledger of
// it: the intents that came through the API, the copies of sources, and the list of what is
// set aside.
func inputsKey(heads gitrepo.Heads) (tree.Hash, error) {
	var beside []tree.Entry
	if !heads.Ledger.Tree.IsZero() {
		for _, name := range []string{ledger.RequestsRoot, v1alpha1.SourcesRoot} {
			switch e, err := heads.Ledger.Tree.Find(name); {
			case err == nil: // whatever its kind: no directory is a finding of the fleet
				beside = append(beside, e)
			case !errors.Is(err, fs.ErrNotExist):
				return tree.Hash{}, fmt.Errorf("list %s: %w", name, err)
			}
		}
		switch e, err := heads.Ledger.Tree.Find(ledger.Root + "/" + ledger.SetAsideFile); {
		case err == nil:
			beside = append(beside, tree.Entry{Name: ledger.SetAsideFile, Kind: tree.File, Hash: e.Hash})
		case !errors.Is(err, fs.ErrNotExist):
			return tree.Hash{}, fmt.Errorf("look for what is set aside: %w", err)
		}
	}
	return verify.Key(heads.Inputs.Tree, beside...)
}

// same reports whether nothing that matters has changed since last and nothing
// has come due.
func (k key) same(last key, now v1alpha1.Time) bool {
	due := last.next()
	last.planDue, last.statusDue = k.planDue, k.statusDue
	return k == last && (due.IsZero() || now.Before(due))
}

// next is the earlier of the two due times; zero when there is none.
func (k key) next() time.Time { return earliest(k.planDue.Time, k.statusDue) }

// due is when to plan again though nothing happens: when the plan or status
// that is held back comes due, or a provider's freshness changes by time alone.
// A daemon that is deaf or has just started looks again soon, because both end
// by time too; so does one that waits for a provider's word, which makes no news
// when nothing changed.
func (r *Reconciler) due(k key) time.Time {
	due := earliest(earliest(earliest(k.next(), r.paced), r.turns.Until()), r.opts.Market.Next())
	if k.deaf || !k.settled || k.unheard != 0 {
		due = earliest(due, r.opts.Now().Add(time.Second))
	}
	return due
}

// earliest is the earlier of two times, of which the zero time is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// digest tells two sets apart; the empty one is 0.
func digest(set map[string]bool) uint64 {
	if len(set) == 0 {
		return 0
	}
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		_, _ = h.Write(append([]byte(name), 0))
	}
	return h.Sum64()
}
