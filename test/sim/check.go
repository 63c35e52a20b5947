package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
)

// books are the contracts as of the daemons' own newest commit on the remote's
// ledger: what others wrote over them does not count.
type books struct {
	s         *sim
	head      tree.Hash // of the ledger, as last seen
	ours      tree.Hash // our newest commit
	tree      tree.Tree // of ours
	contracts map[string]*v1alpha1.Contract
	paths     map[string]string // of contracts, to their names
	ever      map[string]string // every contract that was ever there, with its flavor
	landed    map[tree.Hash]bool
	// forced were ended by an operator without being seen gone.
	forced map[string]bool
}

func newBooks(s *sim) books {
	return books{
		s: s, contracts: map[string]*v1alpha1.Contract{}, paths: map[string]string{},
		ever: map[string]string{}, landed: map[tree.Hash]bool{}, forced: map[string]bool{},
	}
}

// followLedger reads what is new on the remote's ledger and judges each of our
// commits.
func (s *sim) followLedger() {
	b := &s.books
	if s.people == nil || s.failure != nil {
		return
	}
	head := s.remote.Head(s.people.ledger)
	if head == b.head {
		return
	}
	fresh, err := s.remote.LogSince(s.people.ledger, b.head)
	if err != nil {
		s.fail("sim", "read the ledger: %v", err)
		return
	}
	b.head = head
	for _, c := range slices.Backward(fresh) {
		if len(c.Parents) > 0 {
			s.parents[c.Hash] = c.Parents[0]
		}
		b.landed[c.Hash] = true
		if s.ours(c) {
			b.take(c)
		}
	}
}

// take judges one of our commits and makes it the present.
func (b *books) take(c memremote.Logged) {
	s := b.s
	s.counts.Commits++
	s.checkStopped(c)
	t, err := s.remote.Tree(c.Hash)
	if err != nil {
		s.fail("sim", "read commit %s: %v", c.Hash.Short(), err)
		return
	}
	had := maps.Clone(b.contracts)
	changes, err := b.diff(t)
	if err != nil {
		s.fail("1", "commit %s: %v", c.Hash.Short(), err)
		return
	}
	before := b.tree
	b.ours, b.tree = c.Hash, t
	s.log("ledger %s %s", c.Hash.Short(), subject(c.Message))
	s.checkClock(c)
	s.checkUndone(c, changes)
	s.checkEvil(c.Hash.Short(), changes)
	s.checkDenials(c.Hash.Short(), c.Committer.When, had, changes)
	s.checkCommit(c, changes)
	if slices.Contains(gitobj.Trailers(c.Message, "Plan"), "sweep") {
		s.checkSweep(before, t)
	}
}

// diff is what a tree changes of our contracts, by name. A contract whose
// intent is renamed moves to another directory and stays the same.
func (b *books) diff(t tree.Tree) ([]change, error) {
	gone, come := map[string]string{}, map[string]*v1alpha1.Contract{}
	err := tree.Diff(b.tree, t, func(path string, _, to tree.Entry) error {
		if !isContract(path) {
			return nil
		}
		if name := b.paths[path]; name != "" {
			gone[name] = path
		}
		if to.Hash.IsZero() {
			return nil
		}
		raw, err := t.Store.File(to.Hash, 0)
		if err != nil {
			return err
		}
		after := new(v1alpha1.Contract)
		come[path] = after
		return genyaml.UnmarshalStrict(raw, after)
	})
	if err != nil {
		return nil, err
	}
	var changes []change
	named := map[string]bool{}
	for _, path := range sortedKeys(come) {
		name := come[path].Metadata.Name
		named[name] = true
		changes = append(changes, change{b.contracts[name], come[path]})
	}
	for _, name := range sortedKeys(gone) {
		delete(b.paths, gone[name])
		if !named[name] {
			changes = append(changes, change{before: b.contracts[name]})
			delete(b.contracts, name)
		}
	}
	for path, after := range come {
		name := after.Metadata.Name
		b.contracts[name], b.paths[path], b.ever[name] = after, name, after.Spec.Flavor
	}
	for _, ch := range changes {
		b.count(ch)
	}
	return changes, nil
}

func isContract(path string) bool {
	return under(path, "contracts") && strings.Count(path, "/") == 4 && !strings.HasSuffix(path, "/_intent.yaml")
}

type change struct{ before, after *v1alpha1.Contract }

func (ch change) one() *v1alpha1.Contract {
	if ch.after != nil {
		return ch.after
	}
	return ch.before
}

// released reports whether the change begins a release.
func (ch change) released() bool {
	return ch.before != nil && ch.after != nil && ch.before.Status.Phase != v1alpha1.PhaseReleasing && ch.after.Status.Phase == v1alpha1.PhaseReleasing
}

func (b *books) count(ch change) {
	switch {
	case ch.before == nil:
		b.s.counts.Placed++
	case ch.after != nil && ch.before.Status.Phase.Held() && !ch.after.Status.Phase.Held():
		b.s.counts.Ended++
	}
}

// rebase begins anew at a head that an operator accepted or restored: what the
// commits between had said is no longer so.
func (b *books) rebase() {
	b.head = b.s.remote.Head(b.s.people.ledger)
	all, err := b.s.remote.Log(b.s.people.ledger)
	if err != nil {
		b.s.fail("sim", "read the ledger: %v", err)
		return
	}
	b.contracts, b.paths, b.tree, b.ours = map[string]*v1alpha1.Contract{}, map[string]string{}, tree.Tree{}, tree.Hash{}
	for _, c := range all {
		if !b.s.ours(c) {
			continue
		}
		t, err := b.s.remote.Tree(c.Hash)
		if err == nil {
			b.tree, b.ours = t, c.Hash
			err = t.Walk(func(path string, e tree.Entry) error { return b.load(t, path, e) })
		}
		if err != nil {
			b.s.fail("sim", "read the ledger at %s: %v", c.Hash.Short(), err)
		}
		return
	}
}

func (b *books) load(t tree.Tree, path string, e tree.Entry) error {
	if !isContract(path) {
		return nil
	}
	raw, err := t.Store.File(e.Hash, 0)
	if err != nil {
		return err
	}
	c := new(v1alpha1.Contract)
	if err := genyaml.UnmarshalStrict(raw, c); err != nil {
		return err
	}
	b.contracts[c.Metadata.Name], b.paths[path] = c, c.Metadata.Name
	return nil
}

func subject(message string) string {
	s, _, _ := strings.Cut(message, "\n")
	return s
}

// checkCommit holds a commit against the invariants that history alone does
// not show.
func (s *sim) checkCommit(c memremote.Logged, changes []change) {
	if len(gitobj.Trailers(c.Message, "Plan")) > 0 && strings.HasPrefix(c.Message, "undo ") {
		return
	}
	said, ok := s.readingAt(c)
	var vanished []string
	for _, ch := range changes {
		one := ch.one()
		name := one.Metadata.Name
		if ch.before != nil && ch.before.Status.Phase.Held() && (ch.after == nil || !ch.after.Status.Phase.Held()) {
			s.checkGone(ch.before)
		}
		if ch.before == nil {
			s.checkRoom(ch.after)
		}
		s.checkNodes(ch)
		if !ok {
			continue
		}
		key := one.Metadata.Namespace + "/" + one.Spec.Intent.Name
		frozen := said.unreadable[one.Spec.Intent.Path] || said.frozen[key]
		if (ch.released() || ch.before == nil) && frozen && !s.books.forced[name] && !byItsTerms(ch) {
			s.fail("7", "commit %s: contract %s of a frozen intent (%s) goes from %s to %s", c.Hash.Short(), name, one.Spec.Intent.Path, phaseOf(ch.before), phaseOf(ch.after))
		}
		if ch.released() && !said.live[key] && !frozen && !s.ofPool(one) && !isRequest(one) && ch.after.Status.Target != v1alpha1.PhaseExpired {
			vanished = append(vanished, fmt.Sprintf("%s (of %s: %s)", name, one.Spec.Intent.Name, one.Status.Why()))
		}
	}
	if ok {
		s.checkShared(c, changes, said)
	}
	s.checkDeaf(c, changes)
	if limit := s.knobs.maxEnds; ok && limit > 0 && len(vanished) > limit && !s.allowed(c) {
		s.fail("7", "commit %s ends contracts of vanished intents, %s, and safety.maxEnds is %d", c.Hash.Short(), strings.Join(vanished, " "), limit)
	}
}

// checkShared asks whether what a commit places of an intent whose replicas must be in one
// domain is where the rest of it is. Those in several already stay there.
func (s *sim) checkShared(c memremote.Logged, changes []change, said reading) {
	for _, ch := range changes {
		one := ch.one()
		by := said.shares[one.Metadata.Namespace+"/"+one.Spec.Intent.Name]
		if ch.before != nil || by == "" || !one.Status.Phase.Charged() {
			continue
		}
		at := func(k *v1alpha1.Contract) string {
			if p := s.providerNamed(k.Spec.Provider); by == "region" && p != nil {
				return p.region
			}
			return k.Spec.Provider
		}
		stood, now := map[string]bool{}, map[string]bool{}
		for _, k := range s.books.contracts {
			if k.Metadata.Namespace != one.Metadata.Namespace || k.Spec.Intent.Name != one.Spec.Intent.Name || !k.Status.Phase.Charged() {
				continue
			}
			now[at(k)] = true
			if !slices.ContainsFunc(changes, func(x change) bool { return x.before == nil && x.after.Metadata.Name == k.Metadata.Name }) {
				stood[at(k)] = true
			}
		}
		if len(now) > 1 && (len(stood) <= 1 || !stood[at(one)]) {
			s.fail("within", "commit %s places %s in %s %s, and its intent is in %s", c.Hash.Short(), one.Metadata.Name, by, at(one), strings.Join(slices.Sorted(maps.Keys(now)), ", "))
		}
	}
}

func phaseOf(c *v1alpha1.Contract) string {
	if c == nil {
		return "-"
	}
	return string(c.Status.Phase)
}

func (s *sim) readingAt(c memremote.Logged) (reading, bool) {
	list := gitobj.Trailers(c.Message, "Inputs")
	if len(list) != 1 {
		s.fail("checker", "commit %s has %d Inputs trailers", c.Hash.Short(), len(list))
		return reading{}, false
	}
	h, err := tree.ParseHash(list[0])
	if err != nil {
		s.fail("checker", "commit %s: %v", c.Hash.Short(), err)
		return reading{}, false
	}
	return s.people.readingOf(h)
}

// allowed reports whether an operator let the commit's inputs end as many as
// they do.
func (s *sim) allowed(c memremote.Logged) bool {
	list := gitobj.Trailers(c.Message, "Inputs")
	return s.healed && len(list) == 1
}

// checkGone is invariant 11: what has ended has left nothing anywhere.
func (s *sim) checkGone(k *v1alpha1.Contract) {
	name := k.Metadata.Name
	if s.books.forced[name] || s.claimed(k) {
		return
	}
	if c := s.consumerNamed(k.Spec.Consumer); c != nil {
		for at, sl := range c.slices {
			if sl.contract == name && at == "liqo-tenant-"+k.Spec.Provider+"/"+k.Spec.Slice {
				s.fail("11", "contract %s has ended, and its slice %s is on %s", name, at, c.name)
			}
		}
		for at, n := range c.nodes {
			if n.contract == name {
				s.fail("11", "contract %s has ended, and its node %s is on %s", name, at, c.name)
			}
		}
	}
	if p := s.providerNamed(k.Spec.Provider); p != nil && p.grants[k.Spec.Slice] != nil {
		s.fail("11", "contract %s has ended, and %s still grants it; %s", name, p.name, s.hears(p, k.Spec.Slice))
	}
}

// claimed reports whether another contract holds a contract's slice: a warm
// one that was claimed has ended and left everything to its successor.
func (s *sim) claimed(k *v1alpha1.Contract) bool {
	if !s.ofPool(k) {
		return false
	}
	for _, other := range s.books.contracts {
		if other.Spec.Slice == k.Spec.Slice && other.Metadata.Name != k.Metadata.Name && other.Status.Phase.Held() {
			return true
		}
	}
	return false
}

// hears is what the daemon that decided knows of a grant.
func (s *sim) hears(p *provider, slice string) string {
	d := s.committer
	if d == nil {
		return "nobody decided it"
	}
	for _, o := range d.market.Snapshot().Offers() {
		if held, ok := o.Flavor.Spec.Held[slice]; ok && o.Flavor.Metadata.Namespace == p.name {
			return fmt.Sprintf("%s knows of %v", d.name, held.Canonical())
		}
	}
	return fmt.Sprintf("%s knows nothing of it on %s; %s was heard %s ago by a report of %s ago, granted since %s",
		d.name, p.grants[slice].flavor, p.name, s.tl.now-d.heard[p.name], s.tl.now-d.made[p.name], stamp(p.grants[slice].since))
}

// checkRoom is invariant 2 as the provider sees it: where nothing was taken
// away, what is granted and promised fits.
func (s *sim) checkRoom(k *v1alpha1.Contract) {
	p := s.providerNamed(k.Spec.Provider)
	if p == nil {
		s.fail("2", "contract %s is on provider %s, which there is not", k.Metadata.Name, k.Spec.Provider)
		return
	}
	o := p.flavor(k.Spec.Flavor)
	if o == nil || o.squeezed {
		return
	}
	free := s.free(p, o)
	for _, name := range free.Names() {
		if free[name].Int64() < 0 {
			s.fail("2", "contract %s oversells %s/%s: %s of %s too much", k.Metadata.Name, p.name, o.name, v1alpha1.AmountOf(-free[name].Int64()).Canonical(name), name)
		}
	}
}

// free is what a flavor has left by the ledger and by what runs there.
func (s *sim) free(p *provider, o *offered) v1alpha1.Resources {
	held := map[string]v1alpha1.Resources{}
	for _, k := range s.books.contracts {
		if k.Spec.Provider == p.name && k.Spec.Flavor == o.name && k.Status.Phase.Held() {
			held[k.Spec.Slice] = inFlavor(k.Spec.Resources, o)
		}
	}
	for name, g := range p.grants {
		if g.flavor == o.name {
			held[name] = held[name].Max(g.resources)
		}
	}
	free := o.capacity.Sub(o.used)
	for _, r := range held {
		free = free.Sub(r)
	}
	return free
}

// inFlavor names resources as a flavor does.
func inFlavor(r v1alpha1.Resources, o *offered) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for name, n := range r {
		if o.gpu != nil && name == o.gpu.ResourceName {
			name = v1alpha1.GPU
		}
		if _, counted := o.capacity[name]; counted || !n.IsZero() {
			out[name] = n
		}
	}
	return out
}

// checkDeaf is invariant 6: a daemon that hears fewer than half of the
// providers that hold contracts places and moves nothing.
func (s *sim) checkDeaf(c memremote.Logged, changes []change) {
	d := s.committer
	if d == nil {
		return
	}
	holders, heard, placed := map[string]bool{}, 0, map[string]bool{}
	for _, ch := range changes {
		if ch.before == nil {
			placed[ch.after.Metadata.Name] = true
		} else if ch.before.Status.Phase.Held() {
			holders[ch.before.Spec.Provider] = true
		}
	}
	for name, k := range s.books.contracts {
		if k.Status.Phase.Held() && !placed[name] {
			holders[k.Spec.Provider] = true
		}
	}
	for p := range holders {
		if at, ok := d.heard[p]; ok && s.tl.now-at < 3*s.knobs.report+s.knobs.grace {
			heard++
		}
	}
	if 2*heard >= len(holders) {
		return
	}
	for _, ch := range changes {
		if ch.before == nil {
			s.fail("6", "commit %s: %s hears %d of the %d providers that hold contracts, and places %s", c.Hash.Short(), d.name, heard, len(holders), ch.after.Metadata.Name)
		}
	}
}

// applied is asked before anything is written to a cluster (invariant 1).
func (s *sim) applied(d *daemon, c *consumer, contract string) {
	k := s.books.contracts[contract]
	switch {
	case k == nil:
		s.fail("1", "%s applies %s to %s, and the remote's ledger has no such contract", d.name, contract, c.name)
	case !k.Status.Phase.Held():
		s.fail("1", "%s applies %s to %s, and the contract is %s", d.name, contract, c.name, k.Status.Phase)
	}
}

// checkClusters holds what is on the clusters against the ledger.
func (s *sim) checkClusters() {
	for _, c := range s.consumers {
		for at, sl := range c.slices {
			if s.books.ever[sl.contract] == "" {
				s.fail("1", "%s has slice %s, and its contract was never on the ledger", c.name, at)
			}
		}
	}
}

// afterRound holds what a round claims against the remote.
func (s *sim) afterRound(d *daemon, out reconciler.Outcome, err error) {
	s.followLedger()
	s.checkStranger(d)
	s.noteTurns(out.Plan)
	if err == nil && s.stopped == nil {
		delete(s.unsettled, d.name)
	}
	for _, c := range out.Committed {
		if !s.books.landed[c.Commit.Hash] {
			s.fail("1", "%s says commit %s is on the ledger, and it is not", d.name, c.Commit.Hash.Short())
		}
	}
	decides := s.shared == nil || d.leading
	if err == nil && decides && out.Plan != nil && out.Plan.Changes() && len(out.Committed) == 0 && len(out.Refused) == 0 && !out.Again && out.Due.IsZero() {
		s.fail("3", "%s plans changes and commits nothing: %d contracts, %d states", d.name, len(out.Plan.Contracts), len(out.Plan.States))
	}
	if v := d.loop.View(); v.Deaf && out.Plan != nil && v.Plan == out.Plan {
		s.checkDeafPlan(d, out)
	}
}

// checkDeafPlan is invariant 6 by the daemon's own word.
func (s *sim) checkDeafPlan(d *daemon, out reconciler.Outcome) {
	for _, ch := range out.Plan.Contracts {
		if ch.Before == nil {
			s.fail("6", "%s is deaf and places %s", d.name, ch.After.Metadata.Name)
		}
	}
}
