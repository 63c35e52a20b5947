package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// Result is what a run came to.
type Result struct {
	Seed uint64
	// Hash of the journal: equal seeds give equal hashes.
	Hash string
	// Plans is how many plans the daemons made, PlansHash a digest of all of them.
	Plans     int
	PlansHash string
	// Events run, commits on the ledger, contracts placed and ended.
	Events, Commits, Placed, Ended int
	// Replayed are the commits whose decisions were made again at the end.
	Replayed int
	// Traced are the commits that name a trace.
	Traced int
	// Checked are the plans that were compared with one from nothing.
	Checked int
	// Honoured are the reports that said which instructions were carried out.
	Honoured int
	// Remapped are the parts of contracts that were given another node.
	Remapped int
	// Stills are the pushes before which a replica stood still, Refused the writes that a
	// store refused.
	Stills, Refused int
	// Span is how much virtual time went by.
	Span time.Duration
	// Attacks on purpose, by kind.
	Attacks map[string]Tries
	// Played is how many seeds a sum of results is of.
	Played int
	// Failure is the first broken invariant, nil when none was.
	Failure *Failure
}

// add sums results up.
func (r *Result) add(o Result) {
	r.Played++
	r.Events += o.Events
	r.Commits += o.Commits
	r.Placed += o.Placed
	r.Ended += o.Ended
	r.Replayed += o.Replayed
	r.Traced += o.Traced
	r.Checked += o.Checked
	r.Honoured += o.Honoured
	r.Remapped += o.Remapped
	r.Stills += o.Stills
	r.Refused += o.Refused
	r.Span += o.Span
	if r.Attacks == nil {
		r.Attacks = map[string]Tries{}
	}
	for kind, n := range o.Attacks {
		r.Attacks[kind] = Tries{r.Attacks[kind].Tried + n.Tried, r.Attacks[kind].Caught + n.Caught}
	}
}

// String is the figures of a sum.
func (r Result) String() string {
	text := fmt.Sprintf("%d events, %d commits, %d contracts placed, %d ended, %d decisions replayed, %d plans checked, %d reports with what was honoured, %d parts on other nodes, %d pushes after standing still, %d writes that the store refused, %s of virtual time",
		r.Events, r.Commits, r.Placed, r.Ended, r.Replayed, r.Checked, r.Honoured, r.Remapped, r.Stills, r.Refused, r.Span)
	for _, kind := range sortedKeys(r.Attacks) {
		text += "; " + kind + " " + r.Attacks[kind].String()
	}
	return text
}

// Failure is a broken invariant, and what led to it.
type Failure struct {
	Seed uint64
	// Invariant in a word or number as in the package comment, and Why.
	Invariant, Why string
	// Head of the ledger then.
	Head string
	// Events are the last lines of the journal.
	Events []string
}

// Error is everything on it.
func (f *Failure) Error() string {
	text := ""
	for _, e := range f.Events {
		text += "  " + e + "\n"
	}
	return fmt.Sprintf("seed %d: invariant %s: %s\nledger at %s; the last events:\n%sagain: go test ./test/sim -run TestSim -seed=%d -v",
		f.Seed, f.Invariant, f.Why, f.Head, text, f.Seed)
}

// sim is one run.
type sim struct {
	seed    uint64
	rng     *rand.Rand
	ids     *ids // of traces
	knobs   knobs
	tl      timeline
	journal *journal
	planned *planned
	dir     string // for state directories

	remote    *memremote.Remote
	people    *people
	providers []*provider
	consumers []*consumer
	daemons   []*daemon
	shared    *shared // nil: each daemon has a market of its own
	clients   []*client
	refused   map[string]bool // tenants whose paths the server's hook refuses

	interloping bool
	committer   *daemon // in whose round we are
	healed      bool
	stopped     *rewrite
	rewritten   bool // some branch was, at some time
	// unsettled are daemons that have not had a good round since a rewrite was
	// restored or accepted.
	unsettled map[string]bool
	objects   map[tree.Hash][]object

	// turns is when a round looked at an intent last, changed when changes, the
	// commits of the ledger, became as many as they are.
	turns   map[string]time.Duration
	changed time.Duration
	changes int

	// evil is what hostile people draw from, apart from all else; rooted is a
	// signed fleet's trust.
	evil    *rand.Rand
	liar    *rand.Rand // and those of seeds with liars
	storm   *rand.Rand // and what happens to store and replicas in those with storms
	stills  *daemon    // it is frozen before its next push
	rooted  *rooted
	attacks []attack
	moved   []tree.Hash // where a note was moved to
	evils   int
	flooded bool

	books   books
	parents map[tree.Hash]tree.Hash
	counts  Result
	failure *Failure
}

// Run plays a seed. State directories are made below dir. Lines of the journal
// go to sink as they come, when it is not nil. It must be called within a bubble
// of testing/synctest, which tells when clients have been answered.
func Run(seed uint64, dir string, sink func(string)) Result {
	s := &sim{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 0x666c656574)), ids: newIDs(seed), journal: newJournal(sink), planned: newPlanned(), dir: dir,
		remote: memremote.New(), refused: map[string]bool{}, objects: map[tree.Hash][]object{},
		parents: map[tree.Hash]tree.Hash{}, unsettled: map[string]bool{}, turns: map[string]time.Duration{},
	}
	s.knobs = drawKnobs(s.rng)
	s.knobs.work = narrow(seed)
	s.liar = rand.New(rand.NewPCG(seed, 0x6c696172))
	s.storm = rand.New(rand.NewPCG(seed, 0x73746f726d))
	s.evil, s.counts.Attacks = rand.New(rand.NewPCG(seed, 0x6576696c)), map[string]Tries{}
	if s.hostile() && s.evil.IntN(3) > 0 {
		var err error
		if s.rooted, err = newRooted(dir + "/keys"); err != nil {
			s.fail("sim", "%v", err)
		}
		s.log("a signed fleet")
	}
	s.log("knobs %+v", s.knobs)
	s.found()
	s.run(func() bool { return s.tl.now < s.knobs.chaos })
	if s.failure == nil {
		s.heal()
		s.converge()
	}
	s.hangUp()
	res := s.counts
	res.Plans, res.PlansHash = s.planned.plans, s.planned.digest()
	res.Seed, res.Hash, res.Span, res.Failure = seed, s.journal.sum(), s.tl.now, s.failure
	return res
}

// hostile reports whether somebody means harm: in every other seed.
func (s *sim) hostile() bool { return s.seed%2 == 1 }

// found puts everything in place and books what happens by itself.
func (s *sim) found() {
	s.remote.Hook = s.refuse
	s.books = newBooks(s)
	for i := range s.knobs.providers {
		p := newProvider(s, i)
		if s.providers = append(s.providers, p); s.byNode() {
			p.dealNodes(i)
		}
	}
	for i := range s.knobs.consumers {
		s.consumers = append(s.consumers, newConsumer(s, i))
	}
	if s.liars() {
		s.stateThePrice()
	}
	s.people = newPeople(s)
	s.people.found()
	for range 1 + s.rng.IntN(5) {
		s.people.create()
	}
	if s.knobs.daemons > 1 && s.seed%4 != 0 {
		s.shared = &shared{s: s}
		s.log("the daemons share a store")
	}
	for i := range s.knobs.daemons {
		d := &daemon{s: s, name: fmt.Sprintf("d%d", i), cut: map[string]bool{}, deaf: map[string]bool{}}
		d.link = &link{s: s, d: d}
		if s.knobs.skew > 0 {
			d.skew = span(s.rng, -s.knobs.skew/2, s.knobs.skew/2).Truncate(time.Second)
		}
		if s.rng.IntN(3) == 0 {
			d.dir = s.dir + "/" + d.name + "-0"
		}
		d.twin = newTwin(d)
		s.daemons = append(s.daemons, d)
		s.after(span(s.rng, time.Millisecond, 5*time.Second), d.revive)
	}
	for _, p := range s.providers {
		s.after(span(s.rng, time.Millisecond, 5*time.Second), p.beat)
	}
	for i := range s.knobs.consumers {
		newClient(s, i)
	}
	s.after(span(s.rng, time.Second, 20*time.Second), s.team)
	s.after(span(s.rng, 10*time.Second, time.Minute), s.trouble)
	if s.hostile() {
		s.after(span(s.evil, 10*time.Second, time.Minute), s.evilStep)
	}
	if s.liars() {
		s.after(span(s.liar, 10*time.Second, time.Minute), s.liarStep)
	}
	if s.storms() {
		s.after(span(s.storm, 10*time.Second, time.Minute), s.stormStep)
	}
}

func (s *sim) after(d time.Duration, run func()) { s.tl.after(d, run) }

func (s *sim) wall() time.Time { return epoch.Add(s.tl.now) }

func (s *sim) log(format string, args ...any) { s.journal.add(s.tl.now, format, args...) }

// run takes events as long as a condition holds and nothing is broken.
func (s *sim) run(while func() bool) {
	for s.failure == nil && while() {
		e := s.tl.next()
		if e == nil {
			return
		}
		s.counts.Events++
		s.step(e)
	}
}

// step runs one event to the end, and looks at what came of it. A crash that
// an event runs into is a daemon's end, not ours.
func (s *sim) step(e *event) {
	s.guarded(e.run)
	s.followLedger()
	s.hear()
	if s.shared != nil {
		s.shared.follow()
	}
	s.checkClusters()
	if s.counts.Commits > mostCommits {
		s.fail("liveness", "the daemons commit without end: %d commits", s.counts.Commits)
	}
	if s.counts.Events > mostEvents {
		s.fail("liveness", "no rest after %d events: %s", s.counts.Events, s.stuck())
	}
}

// More than these no run needs: daemons chase each other, or themselves.
const (
	mostCommits = 1000
	mostEvents  = 80000
)

// guarded is daemon.guarded for events of no daemon in particular.
func (s *sim) guarded(run func()) {
	var nobody *daemon
	if len(s.daemons) > 0 {
		nobody = s.daemons[0]
	} else {
		run()
		return
	}
	nobody.guarded(run)
}

// fail notes the first thing that went wrong.
func (s *sim) fail(invariant, format string, args ...any) {
	if s.failure != nil {
		return
	}
	why := fmt.Sprintf(format, args...)
	s.log("BROKEN %s: %s", invariant, why)
	head := ""
	if s.people != nil {
		head = s.remote.Head(s.people.ledger).String()
	}
	s.failure = &Failure{Seed: s.seed, Invariant: invariant, Why: why, Head: head, Events: slices.Clone(s.journal.tail())}
}

// team pushes something now and then.
func (s *sim) team() {
	if s.healed {
		return
	}
	s.people.act()
	s.after(span(s.rng, time.Second, 40*time.Second), s.team)
}

// trouble makes something go wrong now and then.
func (s *sim) trouble() {
	if s.healed {
		return
	}
	s.mischief()
	s.after(span(s.rng, 5*time.Second, time.Minute), s.trouble)
}

func (s *sim) mischief() {
	r := s.rng
	p := s.providers[r.IntN(len(s.providers))]
	c := s.consumers[r.IntN(len(s.consumers))]
	d := s.daemons[r.IntN(len(s.daemons))]
	switch r.IntN(14) {
	case 0, 1:
		p.fail(span(r, 5*time.Second, 3*s.knobs.grace))
	case 2:
		p.restart()
		p.report()
	case 3, 4:
		if s.knobs.growth {
			p.resize()
		}
	case 5:
		c.fail(span(r, 5*time.Second, 5*time.Minute))
	case 6:
		c.evictions = s.tl.now + span(r, time.Second, 4*time.Minute)
		s.log("%s evictions are held up", c.name)
	case 7:
		c.meddle()
	case 8:
		switch {
		case r.IntN(2) == 0:
			s.cut(d, c)
		case s.shared != nil && r.IntN(2) == 0:
			s.shared.cut(d)
		default:
			s.deafen(d, p)
		}
	case 9:
		s.outage(d)
	case 10:
		s.killOrStop(d)
	case 11:
		s.foreign()
	case 12:
		s.hook()
	default:
		s.rewriteHistory()
	}
}

// cut keeps one daemon from one cluster for a while.
func (s *sim) cut(d *daemon, c *consumer) {
	if d.cut[c.name] {
		return
	}
	d.cut[c.name] = true
	s.log("%s cannot reach %s", d.name, c.name)
	s.after(span(s.rng, 5*time.Second, 3*time.Minute), func() { delete(d.cut, c.name) })
}

// deafen keeps one provider's reports from one daemon for a while, longer than
// grace at times.
func (s *sim) deafen(d *daemon, p *provider) {
	if d.deaf[p.name] {
		return
	}
	d.deaf[p.name] = true
	s.log("%s does not hear %s", d.name, p.name)
	s.after(span(s.rng, 5*time.Second, 3*s.knobs.grace), func() { delete(d.deaf, p.name) })
}

func (s *sim) outage(d *daemon) {
	if d.link.out {
		return
	}
	d.link.out = true
	s.log("%s loses the remote", d.name)
	s.after(span(s.rng, time.Second, 3*time.Minute), func() { d.link.out = false })
}

func (s *sim) killOrStop(d *daemon) {
	if !d.up || d.frozen() {
		return
	}
	if s.rng.IntN(3) == 0 {
		d.stop()
	} else {
		d.crash("between two events")
	}
	if s.rng.IntN(3) == 0 {
		d.dir = ""
	}
	s.after(span(s.rng, time.Second, 3*time.Minute), d.revive)
}

// hook closes a tenant for a while: the server refuses its paths.
func (s *sim) hook() {
	t := tenantName(s.rng.IntN(s.knobs.tenants))
	if s.refused[t] {
		return
	}
	s.refused[t] = true
	s.log("the server refuses paths of %s", t)
	s.after(span(s.rng, 10*time.Second, 3*time.Minute), func() { delete(s.refused, t) })
}

// foreign is somebody's edit of generated files.
func (s *sim) foreign() {
	head := s.remote.Head(s.people.ledger)
	if head.IsZero() || s.stopped != nil || len(s.unsettled) > 0 {
		return // what an operator accepts, he accepts with all that is in it
	}
	t, err := s.remote.Tree(head)
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	var paths []string
	_ = t.Walk(func(path string, _ tree.Entry) error {
		if under(path, "contracts") || under(path, "manifests") {
			paths = append(paths, path)
		}
		return nil
	})
	if len(paths) == 0 {
		return
	}
	path := paths[s.rng.IntN(len(paths))]
	ch := gitobj.Change{Puts: map[string][]byte{}}
	what := "edits"
	switch s.rng.IntN(3) {
	case 0:
		ch.Deletes, what = []string{path}, "deletes"
	case 1:
		ch.Puts[path] = []byte("kind: [nonsense\n")
	default:
		b, err := t.ReadFile(path, 0)
		if err != nil {
			s.fail("sim", "%v", err)
			return
		}
		ch.Puts[path] = append(slices.Clone(b), "# by hand\n"...)
	}
	h, err := s.remote.Commit(s.people.ledger, s.people.person("Mallory"), what+" "+path+"\n", ch)
	if err != nil {
		s.fail("sim", "%v", err)
		return
	}
	s.log("foreign %s %s %s", h.Short(), what, path)
}

func (s *sim) daemonNamed(name string) *daemon {
	for _, d := range s.daemons {
		if d.name == name {
			return d
		}
	}
	return nil
}

func (s *sim) consumerNamed(name string) *consumer {
	for _, c := range s.consumers {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (s *sim) providerNamed(name string) *provider {
	for _, p := range s.providers {
		if p.name == name {
			return p
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
