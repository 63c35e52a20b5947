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

// MarketDay is the ref that holds the market snapshots of a time's UTC day.
func MarketDay(t time.Time) string { return MarketPrefix + t.UTC().Format("20060102") }

// What a commit of a day's chain holds: the market alone, or the market and
// beside it what else was decided on.
const (
	marketDir = "market"
	roundFile = "round.json"
)

// ErrPruned is a market snapshot that the remote does not have any more.
var ErrPruned = errors.New("the remote does not have that market snapshot any more")

// Published is what was published with the commits of a day: their market
// snapshots, by the trees that they name, and whatever stood beside these.
type Published struct{ objects tree.Store }

// PublishedIn is what was published of a repository that is here whole.
func PublishedIn(objects tree.Store) Published { return Published{objects} }

// ReadPublished reads what was published on a time's UTC day. It fetches the
// day's chain, which local copies do not keep. A day past retention is an
// ErrPruned.
func ReadPublished(ctx context.Context, remote Remote, when time.Time) (Published, error) {
	ref := MarketDay(when)
	s := newStore(nil, 0)
	found := false
	err := remote.Fetch(ctx, func(refs map[string]tree.Hash) (want, have []tree.Hash) {
		if h := refs[ref]; !h.IsZero() {
			found, want = true, append(want, h)
		}
		return want, nil
	}, func(pack io.Reader) error {
		set, err := gitobj.ReadPack(pack, 0)
		s.add(set)
		return err
	})
	switch {
	case err != nil:
		return Published{}, fmt.Errorf("fetch market snapshots: %w", err)
	case !found:
		return Published{}, fmt.Errorf("%s: %w", ref, ErrPruned)
	}
	return Published{s}, nil
}

// Market is the snapshot of that root.
func (p Published) Market(root tree.Hash) (tree.Tree, error) {
	t := tree.Tree{Store: p.objects, Root: root}
	if _, err := t.Entries(); err != nil {
		return tree.Tree{}, fmt.Errorf("market snapshot %s: %w (%w)", root.Short(), ErrPruned, err)
	}
	return t, nil
}

// Round is the file of that hash beside a market.
func (p Published) Round(h tree.Hash) ([]byte, error) {
	b, err := p.objects.File(h, 0)
	if err != nil {
		return nil, fmt.Errorf("what the round knew (%s): %w (%w)", h.Short(), ErrPruned, err)
	}
	return b, nil
}

// PruneMarket deletes the market refs of days before a time, at the remote,
// and returns those deleted.
func (r *Repo) PruneMarket(ctx context.Context, before time.Time) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := MarketDay(before)
	r.marketKeep = keep
	var cmds []Command
	var names []string
	for _, ref := range slices.Sorted(maps.Keys(r.refs)) {
		if strings.HasPrefix(ref, MarketPrefix) && len(ref) == len(keep) && ref < keep {
			cmds = append(cmds, Command{Ref: ref, Old: r.refs[ref]})
			names = append(names, ref)
		}
	}
	if err := r.moveRefs(ctx, cmds); err != nil {
		return nil, fmt.Errorf("delete market snapshots before %s: %w", before.UTC().Format(time.DateOnly), err)
	}
	for _, ref := range names {
		delete(r.knownTips(), ref)
		delete(r.wrongMarkets, ref)
	}
	return names, nil
}
