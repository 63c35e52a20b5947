package gitrepo

import (
	"context"
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

// Market reads back the snapshot that a commit of that time names in its
// Market trailer, to replay the decision. It fetches the day's chain, which
// the local copy does not keep. A day past retention is an error.
func (r *Repo) Market(ctx context.Context, when time.Time, root tree.Hash) (tree.Tree, error) {
	ref := MarketDay(when)
	s := newStore(nil, r.opts.MaxBlob)
	err := r.remote.Fetch(ctx, func(refs map[string]tree.Hash) (want, have []tree.Hash) {
		if h := refs[ref]; !h.IsZero() {
			want = append(want, h)
		}
		return want, nil
	}, func(pack io.Reader) error {
		set, err := gitobj.ReadPack(pack, 0)
		s.add(set)
		return err
	})
	if err != nil {
		return tree.Tree{}, fmt.Errorf("fetch market snapshot: %w", err)
	}
	if !s.has(root) {
		return tree.Tree{}, fmt.Errorf("market snapshot %s is not in %s; snapshots are deleted after the fleet's retention.market", root.Short(), ref)
	}
	return tree.Tree{Store: s, Root: root}, nil
}

// PruneMarket deletes the market refs of days before a time, at the remote,
// and returns those deleted.
func (r *Repo) PruneMarket(ctx context.Context, before time.Time) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := MarketDay(before)
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
	return names, nil
}
