package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/test/checker"
)

// heal ends all faults but those that are for good.
func (s *sim) heal() {
	s.healed = true
	s.log("heal")
	if s.shared != nil {
		s.shared.refusal = ""
	}
	s.refused = map[string]bool{}
	for _, c := range s.consumers {
		c.evictions = 0
		c.back()
	}
	for i, p := range s.providers {
		if i == 0 && s.knobs.lostForGood {
			p.gone, p.down = true, true
			s.log("%s is lost for good", p.name)
			continue
		}
		p.back()
		p.honest()
		if p.refuses {
			s.tried("renamed refusals", true) // checkDenials holds each commit of ours
		}
		p.relent()
	}
	if s.people.suspended {
		s.people.suspended = false
		s.people.broken["fleet.yaml"] = s.people.fleetText()
	}
	for i := range s.providers {
		if s.people.closed[providerName(i)] != "" {
			delete(s.people.closed, providerName(i))
			s.people.broken["clusters/"+providerName(i)+".yaml"] = s.people.providerText(i)
		}
	}
	s.stopped = nil
	s.people.unbreak()
	s.people.restore()
	s.people.repair()
	for _, d := range s.daemons {
		d.link.out, d.cut, d.deaf = false, map[string]bool{}, map[string]bool{}
		if s.shared != nil {
			s.shared.reach(d, true)
		}
		d.jumped, d.thaws = false, 0
		d.skew = min(max(d.skew, -3*time.Second), 3*time.Second)
		s.after(time.Millisecond, d.revive)
	}
	s.after(20*time.Second, s.operate)
}

// operate is an operator on duty: accepts what was rewritten, allows ends that
// are held back, and gives up what is on a provider that is lost for good.
func (s *sim) operate() {
	s.accept()
	d, again := s.daemons[0], 30*time.Second
	if s.shared != nil {
		again = 3 * time.Minute // all of them begin again: agents have to be heard first
	}
	if d.up {
		if v := d.loop.View(); v.Plan != nil && v.Plan.HeldBack != "" {
			s.restartWith("--allow-ends", func(o *reconciler.Options) { o.AllowEnds = s.remote.Head(s.people.inputs) })
		} else if lost := s.lostContracts(); len(lost) > 0 {
			for name := range lost {
				s.books.forced[name] = true
			}
			s.restartWith(fmt.Sprintf("release --force of %d", len(lost)), func(o *reconciler.Options) { o.ForceRelease = lost })
		}
	}
	s.after(again, s.operate)
}

// lostContracts are those that a lost provider will never say are gone.
func (s *sim) lostContracts() map[string]bool {
	out := map[string]bool{}
	for name, k := range s.books.contracts {
		p := s.providerNamed(k.Spec.Provider)
		if p != nil && p.gone && k.Status.Phase.Held() && s.tl.now > s.knobs.chaos+s.knobs.grace+5*time.Minute {
			out[name] = true
		}
	}
	return out
}

func (s *sim) restartWith(why string, options func(*reconciler.Options)) {
	daemons := s.daemons[:1]
	if s.shared != nil { // whichever of them decides
		daemons = s.daemons
	}
	for _, d := range daemons {
		s.log("an operator restarts %s: %s", d.name, why)
		if d.up {
			d.stop()
		}
		d.options = options
		d.start()
	}
	for _, p := range s.providers {
		s.after(span(s.rng, time.Millisecond, time.Second), p.report)
	}
}

// Convergence must come within limit, and is a time without any commit.
const (
	limit = 90 * time.Minute
	calm  = 4 * time.Minute
)

// converge runs on until nothing happens any more, and judges what there is.
func (s *sim) converge() {
	healed := s.tl.now
	end := healed + limit
	commits, since := s.counts.Commits, s.tl.now
	s.run(func() bool {
		if s.counts.Commits != commits {
			commits, since = s.counts.Commits, s.tl.now
		}
		if s.tl.now >= end {
			end = max(end, s.changed+s.turnsTake())
		}
		return s.tl.now < end && (s.tl.now-since < calm || !s.settled())
	})
	if s.failure != nil {
		return
	}
	if !s.settled() || s.tl.now >= end {
		s.fail("liveness", "no rest within %s of healing: %s", end-healed, s.stuck())
		return
	}
	s.judge()
}

// settled reports whether every daemon is up, well and quiet.
func (s *sim) settled() bool { return s.stuck() == "" }

// stuck says what is not at rest.
func (s *sim) stuck() string {
	for _, d := range s.daemons {
		switch {
		case !d.up:
			return d.name + " is down"
		case d.lastErr != nil:
			return d.name + ": " + d.lastErr.Error()
		case d.due != 0 && d.due <= s.tl.now:
			return d.name + " is to make a round at this very instant"
		case d.quiet < 3:
			return fmt.Sprintf("%s was quiet for %d rounds only", d.name, d.quiet)
		case d.loop.Ready() != nil:
			return d.name + " is not ready: " + d.loop.Ready().Error()
		}
	}
	for _, name := range sortedKeys(s.books.contracts) {
		k := s.books.contracts[name]
		if k.Status.Phase.Held() && !s.atRest(k) {
			return fmt.Sprintf("contract %s is %s (%s) since %s", name, k.Status.Phase, k.Status.Why(), k.Status.Since.Format(time.TimeOnly))
		}
	}
	return s.waiting()
}

// atRest reports whether a held contract may stay as it is for good.
func (s *sim) atRest(k *v1alpha1.Contract) bool {
	switch k.Status.Phase {
	case v1alpha1.PhaseActive:
		return true
	case v1alpha1.PhaseReserved:
		return k.Spec.Stage == v1alpha1.StageReserve
	case v1alpha1.PhaseDegraded:
		// What was squeezed out stays, until its team or owner does something.
		return k.Status.Reason == ledger.DegradedShrunk || k.Status.Reason == ledger.DegradedNode
	}
	return false
}

// judge holds everything against everything, at rest.
func (s *sim) judge() {
	led, _, err := ledger.Read(context.Background(), s.ledgerTree(), nil)
	if err != nil {
		s.fail("ledger", "%v", err)
		return
	}
	if err := led.Broken(); err != nil {
		s.fail("ledger", "%v", err)
		return
	}
	s.judgeIntents(led)
	s.judgeRequests()
	s.judgeClusters()
	s.judgeNodes(led)
	s.judgeHistory()
	s.judgeAttacks()
	s.judgeHostile()
	s.judgeAudit()
	s.judgeReplay()
	s.judgePlan()
	if err := s.remote.Check(); err != nil {
		s.fail("remote", "%v", err)
	}
}

func (s *sim) ledgerTree() tree.Tree {
	head := s.remote.Head(s.people.ledger)
	if head.IsZero() {
		return tree.Tree{} // no daemon has come to write it yet
	}
	t, err := s.remote.Tree(head)
	if err != nil {
		s.fail("sim", "%v", err)
	}
	return t
}

// judgeIntents: who is there is placed, or waits or is refused for a reason;
// who is not there holds nothing.
func (s *sim) judgeIntents(led *ledger.Ledger) {
	for _, key := range sortedKeys(s.people.intents) {
		in := s.people.intents[key]
		st := led.State(in.tenant, in.name)
		if st == nil {
			if in.wish.stage != "find" {
				s.fail("liveness", "intent %s has no state; %s", key, s.says(in))
			}
			continue
		}
		held := 0
		for _, k := range led.ByIntent(in.tenant, in.name) {
			if k.Status.Phase.Charged() {
				held++
			}
		}
		switch st.Status.State {
		case v1alpha1.IntentPlaced:
			if held == 0 {
				s.fail("liveness", "intent %s is Placed and holds nothing; %s", key, s.says(in))
			}
		case v1alpha1.IntentQueued, v1alpha1.IntentRefused:
			if st.Status.Reason == "" {
				s.fail("8", "intent %s is %s without a reason", key, st.Status.State)
			}
			s.judgeWaiting(in, st, held)
		}
	}
	for name, k := range s.books.contracts {
		if k.Status.Phase.Held() && !s.ofPool(k) && !isRequest(k) && s.people.intents[k.Metadata.Namespace+"/"+k.Spec.Intent.Name] == nil {
			s.fail("liveness", "contract %s is %s, and its intent %s is no more", name, k.Status.Phase, k.Spec.Intent.Name)
		}
	}
}

// says is what the first daemon decides about an intent.
func (s *sim) says(in *intent) string {
	v := s.daemons[0].loop.View()
	for i := range v.Plan.Intents {
		if d := v.Plan.Intents[i]; d.Tenant == in.tenant && d.Name == in.name {
			return fmt.Sprintf("decided %s, %s: %s", d.Action, d.Code, d.Reason)
		}
	}
	return fmt.Sprintf("unknown to a view of inputs %s", v.Inputs.Short())
}

// judgeWaiting looks for a place that a waiting intent could plainly have.
func (s *sim) judgeWaiting(in *intent, st *v1alpha1.IntentState, held int) {
	w := &in.wish
	plain := w.where == "" && w.spread == "" && w.region == "" && w.deny == "" && w.maxHourly == 0 && !w.share && w.notBefore == 0 && w.window == 0 &&
		w.duration == 0 && !w.suspend && w.stage == "" && w.queue == "" && held == 0
	if !plain || st.Status.State != v1alpha1.IntentQueued || !strings.Contains(st.Status.Reason, "NothingFits") {
		return
	}
	for _, p := range s.providers {
		if p.gone || waits(s.books.contracts, p.name).After(s.wall()) || s.keepsAway(in, p.name).After(s.wall()) { // it denied too much lately
			continue
		}
		for _, o := range p.flavors {
			if says := s.says(in); s.fits(w, p, o) && !keptFor(says, p.name+"/"+o.name) {
				s.fail("liveness", "intent %s waits (%s), and %s/%s could take all of it: %v free; %s", in.key(), st.Status.Message, p.name, o.name, s.free(p, o).Canonical(), says)
			}
		}
	}
}

// keptFor reports whether a decision says that what is free of an offer is kept
// for somebody who waits longer.
func keptFor(says, offer string) bool {
	before, _, kept := strings.Cut(says, " is kept ")
	return kept && strings.Contains(before, offer)
}

func (s *sim) fits(w *wish, p *provider, o *offered) bool {
	if w.gpus > 0 {
		if o.gpu == nil || o.gpu.UnitsPerGPU > 1 || (w.model != "" && w.model != o.gpu.Model) {
			return false
		}
		if w.gpuMemory != "" && o.gpu.Memory.Less(v1alpha1.Quantity(w.gpuMemory).Amount(v1alpha1.Memory)) {
			return false
		}
	} else if o.gpu != nil { // which is left to who asks for some
		return false
	}
	need := v1alpha1.Resources{
		v1alpha1.GPU: v1alpha1.AmountOf(int64(w.gpus)), v1alpha1.CPU: v1alpha1.AmountOf(int64(w.cpu) * 1000),
		v1alpha1.Memory: v1alpha1.AmountOf(int64(w.memoryGi) << 30), v1alpha1.Pods: v1alpha1.AmountOf(10),
		v1alpha1.EphemeralStorage: v1alpha1.AmountOf(int64(w.storageGi) << 30),
	}
	free := s.free(p, o)
	for name, n := range need {
		if o.partition != nil {
			n = n.RoundUp(o.partition.Min[name], o.partition.Step[name])
		}
		if need[name] = n; free[name].Less(n.Mul(int64(w.replicas))) {
			return false
		}
	}
	return len(o.nodes) == 0 || s.fitsNodes(p, o, perNode(need), w.replicas)
}

// judgeClusters: clusters and providers hold what the ledger says, no more.
func (s *sim) judgeClusters() {
	want := map[string]bool{}
	for name, k := range s.books.contracts {
		if !k.Status.Phase.Held() || k.Spec.Stage == v1alpha1.StageReserve {
			continue
		}
		at := "liqo-tenant-" + k.Spec.Provider + "/" + k.Spec.Slice
		want[k.Spec.Consumer+" "+at] = true
		if c := s.consumerNamed(k.Spec.Consumer); c.slices[at] == nil || c.nodes[at] == nil {
			s.fail("liveness", "contract %s is %s, and %s lacks its slice or node", name, k.Status.Phase, c.name)
		}
	}
	for _, c := range s.consumers {
		for at, sl := range c.slices {
			if !want[c.name+" "+at] {
				s.fail("11", "%s has slice %s of %s, which holds nothing", c.name, at, sl.contract)
			}
		}
		for at, n := range c.nodes {
			if !want[c.name+" "+at] {
				s.fail("11", "%s has node %s of %s, which holds nothing", c.name, at, n.contract)
			}
		}
	}
	holds := map[string]bool{}
	for _, k := range s.books.contracts {
		if k.Status.Phase.Held() {
			holds[k.Spec.Provider+" "+k.Spec.Slice] = true
		}
	}
	for _, p := range s.providers {
		for name := range p.grants {
			if !p.gone && !holds[p.name+" "+name] {
				s.fail("11", "%s still grants %s, which holds nothing there", p.name, name)
			}
		}
	}
}

// judgeHistory hands the whole history to the checker.
func (s *sim) judgeHistory() {
	st := memory.NewStorage()
	refs := s.remote.AllRefs()
	var heads []tree.Hash
	for _, name := range sortedKeys(refs) {
		if !slices.Contains(heads, refs[name]) {
			heads = append(heads, refs[name])
		}
	}
	everything := func(map[string]tree.Hash) (want, have []tree.Hash) { return heads, nil }
	err := s.remote.Fetch(context.Background(), everything, func(pack io.Reader) error {
		b, err := io.ReadAll(pack)
		if err != nil {
			return err
		}
		return packfile.UpdateObjectStorage(st, bytes.NewReader(b))
	})
	for _, name := range sortedKeys(refs) {
		if err == nil {
			err = st.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(name), plumbing.Hash(refs[name])))
		}
	}
	if err != nil {
		s.fail("sim", "copy the repository for the checker: %v", err)
		return
	}
	res, err := checker.CheckSigned(st, s.people.ledger, func(h plumbing.Hash) bool { return s.signed(tree.Hash(h)) })
	if err != nil {
		s.fail("checker", "%v", err)
		return
	}
	for _, v := range res.Violations {
		s.fail("checker", "%s", v)
	}
}

// judgeAudit lets the product's own auditor look at the same history: it must
// find what the simulation's people did to generated files and to the history of
// the inputs, and nothing else.
func (s *sim) judgeAudit() {
	opts := audit.Options{Ledger: s.remote.Head(s.people.ledger), Inputs: s.remote.Head(s.people.inputs), All: true}
	if s.rooted != nil {
		opts.Root, opts.Branch = s.rooted.root, s.people.ledger
	}
	rep, err := audit.Verify(context.Background(), s.remote.Objects(), opts)
	if err != nil {
		s.fail("audit", "%v", err)
		return
	}
	for _, v := range rep.Violations {
		if s.rewritten && v.Rule == "inputs" {
			continue
		}
		if v.Rule != "foreign" && !s.attacked(v.Commit) {
			s.fail("audit", "%s", v)
		}
	}
	for _, a := range s.attacks {
		if s.books.landed[a.commit] && s.inLedger(a.commit) && !slices.ContainsFunc(rep.Violations, func(v audit.Violation) bool { return v.Commit == a.commit.String() }) {
			s.fail("audit", "%s: %s is no violation to the auditor", a.kind, a.commit.Short())
		}
	}
}

// judgePlan lets a daemon that was never there look at it all: it must find
// nothing to do (invariant 3). It is a shadow, which takes no old requests out:
// that is due once a day in each daemon's life; and it has listened for so long
// that it knows who is lost. Its clock is the one furthest behind: by it nothing is
// due, such as taking an ended contract away, that is not due by the clock of the one
// that decides.
func (s *sim) judgePlan() {
	if s.failure != nil {
		return
	}
	d := &daemon{s: s, name: "judge", cut: map[string]bool{}, skew: s.daemons[0].skew}
	for _, other := range s.daemons {
		d.skew = min(d.skew, other.skew)
	}
	d.link = &link{s: s, d: d}
	d.options = func(o *reconciler.Options) { o.Shadow = true }
	const listened = time.Hour
	d.skew -= listened
	d.start()
	d.skew += listened
	for _, p := range s.providers {
		if !p.gone {
			p.deliver(d, d.life, message{p.epoch, p.n, p.list(), p.honoured(), s.tl.now})
		}
	}
	for range 3 {
		d.quiet = 0
		out, err := d.loop.Round(context.Background())
		switch {
		case err != nil:
			s.fail("3", "a new daemon fails: %v", err)
		case out.Plan != nil && out.Plan.Changes():
			s.fail("3", "a new daemon plans changes: %d contracts, %d states", len(out.Plan.Contracts), len(out.Plan.States))
		}
	}
	d.up = false
}
