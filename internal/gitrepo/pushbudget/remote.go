package pushbudget

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// Remote is a remote whose pushes are counted and held back. ledger is the branch of
// the ledger.
func (b *Budget) Remote(to gitrepo.Remote, ledger string) gitrepo.Remote {
	if b == nil {
		return to
	}
	return &remote{to, b, gitrepo.Branch(ledger)}
}

type remote struct {
	to     gitrepo.Remote
	b      *Budget
	ledger string
}

var _ gitrepo.Remote = (*remote)(nil)

// InProcess is the remote's.
func (r *remote) InProcess() bool {
	in, ok := r.to.(interface{ InProcess() bool })
	return ok && in.InProcess()
}

// Busy reports that a push would have to wait.
func (r *remote) Busy() bool { return r.b.Wait() > 0 }

// Refs implements gitrepo.Remote.
func (r *remote) Refs(ctx context.Context) (map[string]tree.Hash, error) {
	if err := r.b.mayRead(); err != nil {
		return nil, err
	}
	return r.to.Refs(ctx)
}

// Fetch implements gitrepo.Remote.
func (r *remote) Fetch(ctx context.Context, choose func(map[string]tree.Hash) (want, have []tree.Hash), sink func(io.Reader) error) error {
	if err := r.b.mayRead(); err != nil {
		return err
	}
	return r.to.Fetch(ctx, choose, sink)
}

// Push implements gitrepo.Remote.
func (r *remote) Push(ctx context.Context, cmds []gitrepo.Command, pack []byte) error {
	kind := r.kind(cmds)
	if err := r.b.enter(ctx, kind); err != nil {
		return err
	}
	ctx, span := tracing.Start(ctx, "push")
	span.Set("fleetbroker.push.kind", kind)
	start := r.b.opts.Now()
	r.b.pushed(r.head(cmds))
	err := r.to.Push(ctx, cmds, pack)
	span.End(err)
	r.b.tookTo(r.b.opts.Now().Sub(start), err != nil && kind == kindLedger)
	return err
}

// head is what a push puts the ledger at; zero: nothing.
func (r *remote) head(cmds []gitrepo.Command) tree.Hash {
	for _, c := range cmds {
		if c.Ref == r.ledger {
			return c.New
		}
	}
	return tree.Hash{}
}

// kindLedger is a push of the ledger, which all replicas see there.
const kindLedger = "ledger"

// Kinds are the kinds of push that Figures counts.
var Kinds = []string{kindLedger, "offer", "proposal", "market", "prune", "notes", "part"}

// kind says what a push is for.
func (r *remote) kind(cmds []gitrepo.Command) string {
	kind := "notes"
	for _, c := range cmds {
		switch {
		case c.Ref == r.ledger:
			return kindLedger
		case c.Ref == "refs/heads/"+gitrepo.OfferBranch:
			kind = "offer"
		case strings.HasPrefix(c.Ref, "refs/heads/"):
			kind = "proposal"
		case kind == "notes" && strings.HasPrefix(c.Ref, gitrepo.MarketPrefix):
			kind = "market"
			if c.New.IsZero() {
				kind = "prune"
			}
		}
	}
	return kind
}

// pushed notes a commit as pushed by this process.
func (b *Budget) pushed(head tree.Hash) {
	if head.IsZero() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.own = append(b.own, head); len(b.own) > maxOwn {
		b.own = append(b.own[:0:0], b.own[len(b.own)-maxOwn:]...)
	}
}

// tookTo notes how long a push took: the slow ones of late count; and whether it was one of
// the ledger that it does not show.
func (b *Budget) tookTo(took time.Duration, unshown bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took = max(took, b.took*7/8, 0)
	if unshown {
		b.unshown++
	}
}
