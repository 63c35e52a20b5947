package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// Snapshots of a day are a chain: whoever publishes adds to the tip, and nobody
// drops what is in it before its retention ends. Replicas move the refs, too, so
// one that is elsewhere is judged by its content: it must come after what was last
// seen there, or what was published is lost to replay.

// marketBytes bounds what is read to judge a moved ref, inflated. What brings more
// is not judged.
const marketBytes = 256 << 20

// wrongMarket is a market ref that does not come after what was last seen there.
type wrongMarket struct {
	tip, last tree.Hash
	why       string
	// lost: the last tip cannot be put back, for the remote does not have it.
	lost bool
}

// isMarketDay reports whether a ref is a day's chain.
func isMarketDay(ref string) bool {
	return strings.HasPrefix(ref, MarketPrefix) && len(ref) == len(MarketPrefix)+len("20060102")
}

// knownTips are the market refs as they were last seen or pushed; that which was
// pushed last survives a restart.
func (r *Repo) knownTips() map[string]tree.Hash {
	if r.tips == nil {
		r.tips = map[string]tree.Hash{}
		if ref, commit, ok := strings.Cut(r.accepted.Market, " "); ok && isMarketDay(ref) {
			if h, err := tree.ParseHash(commit); err == nil {
				r.tips[ref] = h
			}
		}
	}
	return r.tips
}

// publishedMarket notes a snapshot's commit that was pushed.
func (r *Repo) publishedMarket(tip marketTip) {
	if tip.commit.IsZero() {
		return
	}
	r.market = tip
	r.knownTips()[tip.ref] = tip.commit
	delete(r.wrongMarkets, tip.ref)
	if !r.accepted.Ledger.IsZero() {
		r.accepted.Market, r.unsaved = tip.ref+" "+tip.commit.String(), true
	}
}

// lookAtMarket finds the market refs that another account moved or deleted. What
// cannot be read now is looked at again. The caller holds mu.
func (r *Repo) lookAtMarket(ctx context.Context) {
	tips := r.knownTips()
	today := MarketDay(r.opts.Now())
	wrong := map[string]wrongMarket{}
	for ref, last := range tips {
		// Another replica prunes too: a day is missed only while retention keeps it.
		kept := ref == today || r.marketKeep != "" && ref >= r.marketKeep
		inTheWay := r.blocker(r.refs, Command{Ref: ref, New: last}) != "" // which has an alarm of its own
		if r.refs[ref].IsZero() && kept && !inTheWay {
			wrong[ref] = wrongMarket{last: last, why: "it was deleted", lost: r.wrongMarkets[ref].lost}
		}
	}
	for ref, tip := range r.refs {
		last := tips[ref]
		if !isMarketDay(ref) || tip == last {
			continue
		}
		if was, ok := r.wrongMarkets[ref]; ok && was.tip == tip {
			wrong[ref] = was
			continue
		}
		if last.IsZero() && ref != today {
			tips[ref] = tip
			continue
		}
		switch why, err := r.afterLast(ctx, tip, last); {
		case err != nil:
		case why == "":
			tips[ref] = tip
		default:
			wrong[ref] = wrongMarket{tip: tip, last: last, why: why}
		}
	}
	r.wrongMarkets = wrong
}

// afterLast is why a chain's tip does not come after the last one, "" when it does.
func (r *Repo) afterLast(ctx context.Context, tip, last tree.Hash) (string, error) {
	set := gitobj.Set{}
	err := r.remote.Fetch(ctx, func(map[string]tree.Hash) (want, have []tree.Hash) {
		if !last.IsZero() {
			have = []tree.Hash{last}
		}
		return []tree.Hash{tip}, have
	}, func(pack io.Reader) (err error) {
		set, err = gitobj.ReadPack(pack, marketBytes)
		return err
	})
	if errors.Is(err, gitobj.ErrPackTooLarge) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for h := tip; h != last; {
		o := set[h]
		if o.Type != gitobj.Commit && h == tip && len(set) > 0 {
			return "it names what is no commit", nil
		}
		c, err := gitobj.ParseCommit(o.Data)
		if o.Type != gitobj.Commit || err != nil || len(c.Parents) == 0 && !last.IsZero() {
			return "it does not come after what was published there", nil
		}
		if last.IsZero() {
			return "", nil // nothing is known of it
		}
		h = c.Parents[0]
	}
	return "", nil
}

// marketAlarms say which market refs another account wrote.
func (r *Repo) marketAlarms() []string {
	var out []string
	for _, ref := range slices.Sorted(maps.Keys(r.wrongMarkets)) {
		w := r.wrongMarkets[ref]
		done := "It is put back to " + w.last.Short()
		if w.lost || w.last.IsZero() {
			done = "What was published there before cannot be put back, and those decisions cannot be replayed; it is begun again with the next snapshot"
		}
		out = append(out, fmt.Sprintf("%s was written by another account: %s. %s; see who may push refs", ref, w.why, done))
	}
	return out
}

// restoreMarket puts market refs back, each in a push of its own: one that fails
// must not stop anything else. What the remote does not have any more is lost.
func (r *Repo) restoreMarket(ctx context.Context) {
	for _, ref := range slices.Sorted(maps.Keys(r.wrongMarkets)) {
		w := r.wrongMarkets[ref]
		if w.lost || w.last.IsZero() || w.tip != r.refs[ref] {
			continue
		}
		err := r.moveRefs(ctx, []Command{{Ref: ref, Old: w.tip, New: w.last}})
		if err == nil {
			delete(r.wrongMarkets, ref)
			continue
		}
		if w.lost = errors.As(err, new(*Rejection)); w.lost {
			r.wrongMarkets[ref] = w
			if w.tip.IsZero() {
				delete(r.tips, ref) // there is nothing to be missed
			}
		}
	}
}

// marketBase is what the next snapshot is added to: nothing, where the ref is wrong.
func (r *Repo) marketBase(ref string) tree.Hash {
	if w, ok := r.wrongMarkets[ref]; ok && w.tip == r.refs[ref] {
		return tree.Hash{}
	}
	return r.refs[ref]
}
