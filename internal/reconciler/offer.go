package reconciler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/traced"
)

// PullRequests opens, closes and merges pull requests of the fleet repo. A
// forge.Forge is one.
type PullRequests interface {
	Open(ctx context.Context, base string) ([]forge.PullRequest, error)
	Save(ctx context.Context, d forge.Draft) (forge.PullRequest, error)
	Close(ctx context.Context, number int64) error
	Merge(ctx context.Context, number int64, m forge.Merge) error
}

// offered is what this daemon knows of its pull request.
type offered struct {
	// saved is the commit that the pull request was last brought up to.
	saved gitrepo.Commit
	pull  forge.PullRequest
}

// decisionsTrailer names what a commit decides, whenever it was decided.
const decisionsTrailer = "Decisions"

// renewal is how old an offer of contracts with an end may grow: their terms
// run from the time of the offer.
const renewal = time.Hour

// offers reports whether decisions go to people for review.
func (r *Reconciler) offers(in *inputs) bool {
	return in.fleet.Policy.WriteBack.Mode == writeBackReview && !r.shadow(in)
}

// offer brings the pull request up to the plan. What is offered is held by
// nobody but the next plan, which decides it anew together with everything else
// as long as it is not merged; nobody is told of it as reserved.
func (r *Reconciler) offer(ctx context.Context, in *inputs, req gitrepo.Request, digest string, ends bool) (gitrepo.Commit, error) {
	req.Trailers = append(req.Trailers, decisionsTrailer+": "+digest)
	c, err := r.opts.Repo.Offered()
	if err != nil {
		return c, err
	}
	if !stillOffered(in, req.When, c, digest, ends) {
		if c, err = r.opts.Repo.Offer(ctx, req); err != nil {
			return c, fmt.Errorf("offer the plan: %w", err)
		}
		r.opts.Log.InfoContext(ctx, "offered for review", "commit", c.Hash.Short(), "subject", c.Subject())
	}
	if r.offered.saved.Hash == c.Hash {
		return c, nil
	}
	pull, err := r.opts.PullRequests.Save(ctx, draft(in.fleet.Policy.WriteBack.Branch, c))
	if err != nil {
		return c, fmt.Errorf("open the pull request from %s: %w", gitrepo.OfferBranch, err)
	}
	r.offered = offered{saved: c, pull: pull}
	return c, nil
}

// standInLine lets intents whose contracts wait for review hold them against all
// others, and stand in line from when they were first seen.
func (r *Reconciler) standInLine(ctx context.Context, in *inputs, w planner.World) (planner.World, error) {
	if !r.offers(in) {
		return w, nil
	}
	c, err := r.opts.Repo.Offered()
	if errors.Is(err, gitrepo.ErrOfferTaken) || err == nil && c.IsZero() {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	t, err := r.opts.Repo.Tree(c.Hash)
	if err != nil {
		return w, err
	}
	waiting, _, err := ledger.Read(ctx, t, in.ledger)
	if err != nil {
		return w, fmt.Errorf("read what waits for review: %w", err)
	}
	differs := map[intentKey]bool{}
	for tenant, name := range waiting.Differs(in.ledger) {
		differs[intentKey{tenant, name}] = true
	}
	w.Intents = slices.Clone(w.Intents)
	for i := range w.Intents {
		tenant, name := w.Intents[i].Metadata.Namespace, w.Intents[i].Metadata.Name
		if !differs[intentKey{tenant, name}] {
			continue
		}
		it := *w.Intents[i]
		w.Intents[i] = &it
		it.Offered = slices.ContainsFunc(waiting.ByIntent(tenant, name), func(c *v1alpha1.Contract) bool { return c.Status.Phase.Charged() })
		if st := waiting.State(tenant, name); st != nil && in.ledger.State(tenant, name) == nil {
			it.Since = st.Status.FirstSeen.At
		}
	}
	return w, nil
}

// stillOffered reports whether what stands on the branch is this plan, on this
// ledger, and not too old.
func stillOffered(in *inputs, now time.Time, c gitrepo.Commit, digest string, ends bool) bool {
	if c.IsZero() || c.Trailer(decisionsTrailer) != digest || !slices.Equal(c.Parents, []tree.Hash{in.heads.Ledger.Commit.Hash}) {
		return false
	}
	return !ends || now.Sub(c.When()) < renewal
}

// ends reports whether a plan places anything with an end.
func ends(p *planner.Plan) bool {
	return slices.ContainsFunc(p.Contracts, func(c model.Change) bool {
		return c.Before == nil && c.After != nil && !c.After.Spec.Term.End.IsZero()
	})
}

// review takes a plan to the pull request, and merges it where the fleet wants
// that and the forge's rules are met.
func (r *Reconciler) review(ctx context.Context, in *inputs, w planner.World, plan *planner.Plan, k key, snapshot *market.Snapshot) (Outcome, error) {
	out := Outcome{Plan: plan}
	req, err := r.request(in, &w, plan, snapshot.Tree())
	if err != nil {
		return out, err
	}
	req = withAside(req, in.aside)
	digest, err := meaning(plan, in.asideText())
	if err != nil {
		return out, err
	}
	done := r.traced.Time(traced.Commit)
	c, err := r.offer(ctx, in, req, digest, ends(plan))
	done()
	var replan *gitrepo.ErrReplan
	if errors.As(err, &replan) {
		r.ask.Store(true)
		out.Again = true
		return out, ctx.Err()
	}
	if err != nil {
		return out, err
	}
	if ends(plan) {
		k.statusDue = c.When().Add(renewal)
	}
	if in.fleet.Policy.WriteBack.Merge {
		merged, err := r.mergeOffer(ctx, c)
		if err != nil {
			return out, err
		}
		if merged {
			r.ask.Store(true)
			out.Again = true
			return out, nil
		}
		k.statusDue = earliest(k.statusDue, r.opts.Now().Add(r.opts.Poll))
	}
	if w, err = r.standInLine(ctx, in, w); err != nil { // others plan with what is offered now
		return out, err
	}
	out.Due = r.due(k)
	r.conclude(k, snapshot, plan)
	r.publish(in, w, plan, nil)
	return out, nil
}

// offerUndo offers to restore generated files that others edited. Until it is
// merged nothing else is decided.
func (r *Reconciler) offerUndo(ctx context.Context, in *inputs, req gitrepo.Request) (Outcome, error) {
	c, err := r.offer(ctx, in, req, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(req.Items[0].Line))), false)
	if err != nil {
		return Outcome{}, err
	}
	if in.fleet.Policy.WriteBack.Merge {
		if merged, err := r.mergeOffer(ctx, c); err != nil || merged {
			r.ask.Store(true)
			return Outcome{Again: merged}, err
		}
	}
	return Outcome{}, fmt.Errorf("generated files were edited by others (%s), and nothing is decided until they are restored: merge %s",
		foreignList(in.foreign), r.offered.pull.URL)
}

// settleOffer is for a plan that decides nothing: it proposes the list of what is
// set aside where that has changed, and else closes the pull request. It reports
// whether the ledger moved.
func (r *Reconciler) settleOffer(ctx context.Context, in *inputs) (moved bool, err error) {
	if in.aside == nil {
		return false, r.withdraw(ctx, in)
	}
	c, err := r.offer(ctx, in, r.asideRequest(in, in.aside), fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(in.asideText()))), false)
	var replan *gitrepo.ErrReplan
	if errors.As(err, &replan) {
		r.ask.Store(true)
		return true, ctx.Err()
	}
	if err != nil || !in.fleet.Policy.WriteBack.Merge {
		return false, err
	}
	merged, err := r.mergeOffer(ctx, c)
	if merged {
		r.ask.Store(true)
	}
	return merged, err
}

// mergeOffer merges our pull request, and reports whether the forge did.
func (r *Reconciler) mergeOffer(ctx context.Context, c gitrepo.Commit) (bool, error) {
	err := r.opts.PullRequests.Merge(ctx, r.offered.pull.Number, forge.Merge{Head: c.Hash.String(), Method: forge.MergeCommit})
	switch {
	case err == nil:
		r.opts.Log.InfoContext(ctx, "merged", "pullRequest", r.offered.pull.URL, "commit", c.Hash.Short())
		return true, nil
	case errors.Is(err, forge.ErrNotReady):
		r.once.Log.Warn("the pull request with decisions waits", "pullRequest", r.offered.pull.URL, "commit", c.Hash.Short(), "error", err)
		return false, nil
	case errors.Is(err, forge.ErrMoved):
		r.offered = offered{}
		return true, nil // look again
	}
	return false, fmt.Errorf("merge the pull request %s: %w", r.offered.pull.URL, err)
}

// withdraw closes the pull request when nothing is left to decide. Without a
// branch there is nothing to close, and the forge is not asked.
func (r *Reconciler) withdraw(ctx context.Context, in *inputs) error {
	if r.shadow(in) || r.opts.PullRequests == nil {
		return nil
	}
	c, err := r.opts.Repo.Offered()
	if errors.Is(err, gitrepo.ErrOfferTaken) {
		r.once.Log.Warn("the branch of the pull request with decisions has others' commits", "error", err)
		return nil
	}
	if err != nil || c.IsZero() {
		return err
	}
	open, err := r.opts.PullRequests.Open(ctx, in.fleet.Policy.WriteBack.Branch)
	if err != nil {
		return fmt.Errorf("look for our pull request: %w", err)
	}
	for _, pr := range open {
		if pr.HeadBranch != gitrepo.OfferBranch || pr.Fork {
			continue
		}
		if err := r.opts.PullRequests.Close(ctx, pr.Number); err != nil {
			return fmt.Errorf("close the pull request %s: %w", pr.URL, err)
		}
		r.opts.Log.InfoContext(ctx, "closed: nothing is left to decide", "pullRequest", pr.URL)
	}
	r.offered = offered{}
	return r.opts.Repo.Withdraw(ctx)
}

// maxLines of a commit are listed in the pull request.
const maxLines = 100

// draft is the pull request of an offered commit.
func draft(base string, c gitrepo.Commit) forge.Draft {
	text := strings.TrimSpace(c.Message)
	for _, first := range []string{"Contract", asideTrailer, "Inputs"} {
		text, _, _ = strings.Cut(text, "\n\n"+first+": ")
	}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	if len(lines) > 1 {
		lines = lines[1:] // the first is their sum
	}
	var b strings.Builder
	fmt.Fprintf(&b, "What fleetbroker has decided, on the inputs at %s. Nothing of it is reserved before this is merged, in whatever way.\n\n", cmp.Or(c.Trailer("Inputs"), "their head"))
	for i, l := range lines {
		if i == maxLines {
			fmt.Fprintf(&b, "- and %d more, see the commit\n", len(lines)-i)
			break
		}
		fmt.Fprintf(&b, "- `%s`\n", strings.ReplaceAll(l, "`", "'"))
	}
	b.WriteString("\nThe files are generated: do not edit them here. This is brought up to date when the plan changes, and closed when nothing is left to decide.\n")
	return forge.Draft{Head: gitrepo.OfferBranch, Base: base, Title: c.Subject(), Body: b.String()}
}

// meaning names what a plan decides, without when it was decided: an equal one
// made later is no other. aside is what is proposed beside it.
func meaning(p *planner.Plan, aside string) (string, error) {
	type contract struct {
		Tenant, Intent            string
		Replica, Part             int32
		From, To                  v1alpha1.Phase
		Consumer, Provider, Offer string
		Resources                 any
		Price                     any
		Lasts                     time.Duration
		Reason                    string
	}
	type state struct{ Tenant, Intent, State, Reason, Digest string }
	var all struct {
		Contracts []contract
		States    []state
		Spends    int
		Aside     string `json:",omitempty"`
	}
	for _, ch := range p.Contracts {
		one := cmp.Or(ch.After, ch.Before)
		s := one.Spec
		m := contract{
			Tenant: one.Metadata.Namespace, Intent: s.Intent.Name, Replica: s.Intent.Replica, Part: s.Intent.Part,
			Consumer: s.Consumer, Provider: s.Provider, Offer: s.Flavor, Resources: s.Resources, Price: s.Price,
		}
		if ch.Before != nil {
			m.From = ch.Before.Status.Phase
		}
		if ch.After != nil {
			m.To, m.Reason = ch.After.Status.Phase, ch.After.Status.Reason
			if !s.Term.End.IsZero() {
				m.Lasts = s.Term.End.Sub(s.Term.Start.Time)
			}
		}
		all.Contracts = append(all.Contracts, m)
	}
	for _, ch := range p.States {
		one := cmp.Or(ch.After, ch.Before)
		m := state{Tenant: one.Metadata.Namespace, Intent: one.Metadata.Name}
		if ch.After != nil {
			m.State, m.Reason, m.Digest = string(one.Status.State), one.Status.Reason, one.Status.Digest
		}
		all.States = append(all.States, m)
	}
	all.Spends, all.Aside = len(p.Spends), aside
	b, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("digest of the decisions: %w", err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(b)), nil
}
