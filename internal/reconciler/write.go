package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/commits"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/grouping"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/message"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
)

// share is what a plan changes for one intent.
type share struct {
	ledger.Changes
	decision *planner.Decision
	puts     map[string][]byte
	deletes  []string
}

// shares splits a plan's changes by intent, in order of "<tenant>/<intent>".
func shares(p *planner.Plan) (keys []string, byKey map[string]*share) {
	byKey = map[string]*share{}
	of := func(tenant, name string) *share {
		key := tenant + "/" + name
		if byKey[key] == nil {
			d := decisionOf(p, tenant, name)
			if d == nil {
				d = &planner.Decision{Tenant: tenant, Name: name, Action: planner.Keep}
			}
			byKey[key] = &share{decision: d}
		}
		return byKey[key]
	}
	for _, c := range p.Contracts {
		one := c.Last()
		s := of(one.Metadata.Namespace, one.Spec.Intent.Name)
		s.Contracts = append(s.Contracts, c)
	}
	for _, st := range p.States {
		one := st.Last()
		s := of(one.Metadata.Namespace, one.Metadata.Name)
		s.States = append(s.States, st)
	}
	keys = slices.Sorted(maps.Keys(byKey))
	placeSpends(p, keys, byKey)
	return keys, byKey
}

// placeSpends gives each tenant's spend files to its first intent that retires
// a contract; grouping keeps those intents together.
func placeSpends(p *planner.Plan, keys []string, byKey map[string]*share) {
	for _, spend := range p.Spends {
		for _, key := range keys {
			s := byKey[key]
			if s.decision.Tenant == spend.Metadata.Namespace && s.retires() {
				s.Spends = append(s.Spends, spend)
				break
			}
		}
	}
}

func (s *share) retires() bool {
	return slices.ContainsFunc(s.Contracts, func(c model.Change) bool { return c.After == nil })
}

// request makes a plan into a commit request. A plan without changes makes a
// request without items.
func (r *Reconciler) request(in *inputs, w *planner.World, p *planner.Plan, market tree.Tree) (gitrepo.Request, error) {
	keys, byKey := shares(p)
	req := bareRequest(in, p.Now)
	round := ""
	if needsRecord(p) {
		var err error
		if req.Round, err = r.record(in, w, p); err != nil {
			return gitrepo.Request{}, err
		}
		req.Market, round = market, tree.BlobHash(req.Round).String()
	}
	groups := groupsOf(keys, byKey)
	planned := len(keys)
	refused := r.clashing(in, keys, byKey)
	if err := r.makeFiles(keys, byKey, refused); err != nil {
		return gitrepo.Request{}, err
	}
	for _, key := range grouping.Without(keys, groups, refused) {
		s := byKey[key]
		req.Items = append(req.Items, gitrepo.Item{
			Key: key, Group: groups[key], Puts: s.puts, Deletes: s.deletes,
			Line: message.Line(s.decision, s.Contracts), Trailers: message.Trailers(s.Contracts),
		})
	}
	r.desk.write(&req, in)
	req.Compose = func(parent tree.Tree, items []gitrepo.Item) (gitrepo.Composed, error) {
		out, err := r.compose(in, parent, byKey, items)
		if err != nil {
			return out, err
		}
		digest, err := commits.Digest(parent, items)
		out.Trailers = append(out.Trailers, r.trailers(in, market.Root, digest, p.Now)...)
		if round != "" {
			out.Trailers = append(out.Trailers, replay.Trailer+": "+round)
		}
		if whole := max(planned, len(req.Items)); len(items) < whole {
			out.Trailers = append(out.Trailers, fmt.Sprintf("%s: %d of %d", replay.PartTrailer, len(items), whole))
		}
		return out, err
	}
	return req, nil
}

// makeFiles makes the files of what changes. What could not be read again is refused, by key with
// why: it would stop the fleet.
func (r *Reconciler) makeFiles(keys []string, byKey map[string]*share, refused map[string]string) (err error) {
	for _, key := range keys {
		s := byKey[key]
		if s.puts, s.deletes, err = s.Files(); err != nil {
			return fmt.Errorf("write %s: %w", key, err)
		}
		if err := ledger.Legible(s.puts); err != nil {
			refused[key] = err.Error()
			r.once.Log.Warn("a change is not written, because it could not be read again", "intent", key, "reason", refused[key])
		}
	}
	return nil
}

// compose renders what several intents share, for just the intents that are
// committed together, on top of what the parent has.
func (r *Reconciler) compose(in *inputs, parent tree.Tree, byKey map[string]*share, items []gitrepo.Item) (gitrepo.Composed, error) {
	var out gitrepo.Composed
	index, err := indexOn(in, parent)
	if err != nil {
		return out, err
	}
	var changes []model.Change
	counts := map[string]int{}
	for _, it := range items {
		var contracts []model.Change
		if s := byKey[it.Key]; s != nil { // a request's file may come alone
			contracts = s.Contracts
		}
		changes = append(changes, contracts...)
		verb, _, _ := strings.Cut(it.Line, " ")
		counts[verb]++
	}
	rendered, err := (&manifests.Facts{Clusters: in.fleet.Delivered(), Fleet: r.opts.Root.ID()}).Update(index.With(changes), changes)
	if err != nil {
		return out, fmt.Errorf("render manifests: %w", err)
	}
	r.problems(rendered.Problems)
	out.Puts = map[string][]byte{}
	for path, content := range rendered.Files {
		if content == nil {
			out.Deletes = append(out.Deletes, path)
			continue
		}
		out.Puts[path] = content
	}
	copies, err := sourced.Between(parent, in.heads.Ledger.Tree)
	if err != nil {
		return out, err
	}
	maps.Copy(out.Puts, copies.Puts)
	out.Deletes, out.Trailers = append(out.Deletes, copies.Deletes...), copies.Trailers
	slices.Sort(out.Deletes)
	out.Subject = commits.Subject(counts)
	return out, nil
}

// indexOn is the index of the contracts on a parent: that of the round, unless
// others of its items have landed meanwhile.
func indexOn(in *inputs, parent tree.Tree) (manifests.Index, error) {
	planned, err := in.heads.Ledger.Tree.Sub(ledger.Root)
	if err != nil {
		return manifests.Index{}, fmt.Errorf("read the ledger: %w", err)
	}
	now, err := parent.Sub(ledger.Root)
	if err != nil {
		return manifests.Index{}, fmt.Errorf("read the ledger: %w", err)
	}
	if now.Root == planned.Root {
		return in.index, nil
	}
	led, _, err := ledger.Read(context.Background(), parent, in.ledger)
	if err != nil {
		return manifests.Index{}, err
	}
	return in.index.With(between(in.ledger, led)), nil
}

// between is what of contracts one ledger (nil: none) holds otherwise than a
// later one.
func between(was, now *ledger.Ledger) []model.Change {
	if was == nil {
		was = ledger.Empty()
	}
	var out []model.Change
	for tenant, name := range now.Differs(was) {
		for _, c := range was.ByIntent(tenant, name) {
			out = append(out, model.Change{Before: c})
		}
		for _, c := range now.ByIntent(tenant, name) {
			out = append(out, model.Change{After: c})
		}
	}
	return out
}

// needsRecord reports whether a plan decides anything, and does not only note what
// was seen: with such a commit goes what it was decided on, so that it can be
// decided again.
func needsRecord(p *planner.Plan) bool {
	return len(p.States) > 0 || takes(p) || slices.ContainsFunc(p.Contracts, func(c model.Change) bool {
		return c.Before != nil && c.After != nil && (c.Before.Status.Phase != v1alpha1.PhaseReleasing && c.After.Status.Phase == v1alpha1.PhaseReleasing ||
			(c.Before.Status.Displaced == nil) != (c.After.Status.Displaced == nil))
	})
}

// record writes down what the round knew beside inputs, ledger and market.
func (r *Reconciler) record(in *inputs, w *planner.World, p *planner.Plan) ([]byte, error) {
	authors := make(map[string]replay.Author, len(in.authors))
	for path, c := range in.authors {
		authors[path] = replay.Author{Commit: c.Hash.String(), Author: c.Author.String()}
	}
	rec, err := r.keeper.Record(replay.Round{
		Base: in.heads.Ledger.Commit.Hash, Accepted: r.checked.of[0], In: r.given, World: w, Plan: p, Authors: authors,
		Requests: r.desk.files, Unread: unlisted(in),
	})
	if err != nil {
		return nil, err
	}
	return rec.Encode()
}

// takes reports whether a plan places, enlarges or moves anything.
func takes(p *planner.Plan) bool {
	return slices.ContainsFunc(p.Contracts, func(c model.Change) bool {
		return c.After != nil && (c.Before == nil || c.Before.Decision.Market != c.After.Decision.Market)
	})
}
