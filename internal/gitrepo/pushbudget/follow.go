package pushbudget

import (
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// History is where commits of the ledger are read.
type History interface {
	Info(h tree.Hash) (gitrepo.Commit, error)
	MadeByUs(h tree.Hash) (bool, error)
}

// Unshown is how many pushes this process has sent that the ledger does not show: proposals,
// notes, refs of the market, and those of the ledger that were refused or lost a race. One
// that got no answer and that the ledger has all the same is among them too.
func (b *Budget) Unshown() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := int64(b.unshown) //nolint:gosec // nobody sends so many
	for kind, sent := range b.kinds {
		if kind != kindLedger {
			n += int64(sent) //nolint:gosec // nobody sends so many
		}
	}
	return n
}

// Elsewhere counts pushes that another replica has just sent and that the ledger does not
// show, such as a proposal of one that does not decide.
func (b *Budget) Elsewhere(n int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opts.Now()
	for range n {
		b.charge(now)
		b.sent = append(b.sent, now)
	}
	b.sent = b.lately(now)
}

// maxFollowed bounds how many commits are looked at for those that others pushed.
const maxFollowed = 512

// Follow counts the fleet's commits that a head of the ledger has and this process has
// not pushed, those that may be unpaid by their dates: another replica pushed them, or this one before it
// started again.
func (b *Budget) Follow(history History, head tree.Hash) error {
	if b == nil || head.IsZero() {
		return nil
	}
	b.mu.Lock()
	limit, last, own := b.limit, b.followed, slices.Clone(b.own)
	b.mu.Unlock()
	if limit.PerMinute == 0 || head == last || slices.Contains(own, head) {
		return nil
	}
	// What is older has been paid for, whatever came before it. (Git cuts dates to the
	// second.)
	oldest := b.opts.Now().Add(-time.Duration(limit.Burst)*limit.interval() - time.Second)
	var pushed []time.Time
	seen := map[tree.Hash]bool{last: true, {}: true}
	for queue := []tree.Hash{head}; len(queue) > 0 && len(seen) < maxFollowed; queue = queue[1:] {
		h := queue[0]
		if seen[h] || slices.Contains(own, h) {
			continue
		}
		seen[h] = true
		c, err := history.Info(h)
		if err != nil {
			return fmt.Errorf("count what others pushed: %w", err)
		}
		if c.When().Before(oldest) {
			continue
		}
		ours, err := history.MadeByUs(h)
		if err != nil {
			return fmt.Errorf("count what others pushed: %w", err)
		}
		if ours {
			pushed = append(pushed, c.When())
		}
		queue = append(queue, c.Parents...)
	}
	slices.SortFunc(pushed, time.Time.Compare)
	b.mu.Lock()
	defer b.mu.Unlock()
	// They are charged as if they were made now: what was pushed before the oldest of
	// them is not known, and with it they are unpaid by no more than that.
	now := b.opts.Now()
	for _, at := range pushed {
		b.charge(now)
		b.sent = append(b.sent, at)
	}
	slices.SortFunc(b.sent, time.Time.Compare)
	b.sent, b.followed = b.lately(now), head
	return nil
}
