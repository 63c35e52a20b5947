package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// home is the consumer of every simulated intent.
const home = "home"

// planned is the planner as a policy. It keeps what a fleet repo would hold:
// the files of all intents that are there, and the ledger.
type planned struct {
	opts    *Options
	sites   []site
	bySite  map[string]int
	world   planner.World
	memory  planner.Session
	intents []*model.Intent
	jobs    map[string]*job
	// over are jobs that have ended and that the planner has not been asked about since.
	over map[*job]bool
	// makesRoom: contracts have moved for intents that wait for them to be gone.
	makesRoom bool
}

func newPlanned(o *Options, sites []site, jobs []*job, types []taskType) *planned {
	p := &planned{opts: o, sites: sites, bySite: map[string]int{}, jobs: map[string]*job{}, over: map[*job]bool{}}
	fleet := *o.Fleet
	fleet.Retention.Ended.Duration = 1000 * time.Hour * 24
	if o.Tenants == nil && fleet.Limits.Contracts == 0 {
		fleet.Limits.Contracts = math.MaxInt32 // without a fleet one tenant has all of the demand
	}
	p.world = planner.World{
		Fleet: &fleet, FleetName: "simulation", Ledger: ledger.Empty(), Inputs: strings.Repeat("0", 40),
		Clusters: map[string]*v1alpha1.Cluster{}, Tenants: map[string]*v1alpha1.Tenant{},
		AllowEnds: true, // what ends here was meant to
		Brief:     true,
	}
	for _, c := range o.clusters {
		p.world.Clusters[c.Metadata.Name] = c
	}
	p.world.Clusters[home] = &v1alpha1.Cluster{
		Metadata: v1alpha1.Metadata{Name: home}, Spec: v1alpha1.ClusterSpec{Roles: []string{"consumer"}, Delivery: "none"},
	}
	for i := range sites {
		f := sites[i].flavor
		p.bySite[sites[i].ref] = i
		location := f.Spec.Location
		if c := p.world.Clusters[f.Metadata.Namespace]; c != nil {
			location = location.Over(c.Spec.Location)
		}
		p.world.Offers = append(p.world.Offers, &model.Offer{Flavor: f, Price: f.Spec.Price, Location: location, Static: true})
	}
	for _, t := range types {
		p.world.Workload = append(p.world.Workload, match.Typical{Request: p.request(t.demand), Weight: t.freq})
	}
	for _, j := range jobs {
		p.jobs[j.tenant+"/"+j.name] = j
		if p.world.Tenants[j.tenant] == nil {
			p.world.Tenants[j.tenant] = o.tenant(j.tenant)
		}
	}
	return p
}

// tenant is a tenant of the simulation: the fleet's own, if it has it, at home
// here.
func (o *Options) tenant(name string) *v1alpha1.Tenant {
	t := &v1alpha1.Tenant{Metadata: v1alpha1.Metadata{Name: name}}
	if own := o.Tenants[name]; own != nil {
		*t = *own
	}
	t.Spec.Consumers = []string{home}
	return t
}

// step asks the planner. What has ended is released by the planner itself, in a
// round in which its term is over; a second later it is gone and its capacity is
// sold. Where nobody waits for it, that can wait too. Intents are placed in that
// later second and ask for one less, so that they end when they should; one that the
// first round places (what ended freed a quota, and room there was) gets that second
// back (stretch).
func (p *planned) step(now int64, ended, waiting []*job) (stepResult, error) {
	var out stepResult
	for _, j := range ended {
		p.over[j] = true
	}
	if len(waiting) == 0 && !p.moves() {
		return out, nil
	}
	at := func(second int64) v1alpha1.Time {
		return v1alpha1.TimeOf(p.opts.Start.Add(time.Duration(second) * time.Second))
	}
	if len(p.over) > 0 {
		if err := p.round(at(now), &out); err != nil {
			return out, err
		}
		p.stretch(out.placed)
	}
	for _, j := range waiting {
		p.ask(j)
	}
	if err := p.round(at(now+1), &out); err != nil {
		return out, err
	}
	if p.makesRoom {
		p.shorten(waiting, out.placed)
		if err := p.round(at(now+2), &out); err != nil {
			return out, err
		}
	}
	if err := p.forget(slices.Collect(maps.Keys(p.over))); err != nil {
		return out, err
	}
	clear(p.over)
	if !p.moves() {
		out.due = 0 // nothing comes of time alone
	}
	slices.SortFunc(out.placed, func(a, b placement) int { return cmp.Compare(a.job.index, b.job.index) })
	if p.opts.Queue != "fail" {
		return out, nil
	}
	refused := map[*job]bool{}
	for _, j := range waiting {
		refused[j] = true
	}
	for _, pl := range out.placed {
		delete(refused, pl.job)
	}
	return out, p.forget(slices.Collect(maps.Keys(refused)))
}

// stretch gives contracts of the first round of a step the second that their intents do
// not ask for: without it their terms would be over, and their capacity sold, a second
// before the simulation takes them off its books.
func (p *planned) stretch(placed []placement) {
	var ch ledger.Changes
	for _, pl := range placed {
		for _, c := range p.world.Ledger.ByIntent(pl.job.tenant, pl.job.name) {
			if !c.Status.Phase.Charged() || c.Spec.Term.End.IsZero() {
				continue
			}
			longer := *c
			longer.Spec.Term.End = v1alpha1.TimeOf(c.Spec.Term.End.Add(time.Second))
			ch.Contracts = append(ch.Contracts, model.Change{Before: c, After: &longer})
		}
	}
	p.world.Ledger = p.world.Ledger.With(ch)
}

// shorten makes intents that still wait ask for a second less: they are placed a second
// later than others, and must end when they should.
func (p *planned) shorten(waiting []*job, placed []placement) {
	for _, j := range waiting {
		i, there := slices.BinarySearchFunc(p.intents, j, byName)
		if !there || j.life < 3 || slices.ContainsFunc(placed, func(pl placement) bool { return pl.job == j }) {
			continue
		}
		in, doc := *p.intents[i], *p.intents[i].ResourceIntent
		doc.Spec.Schedule.Duration.Duration = time.Duration(j.life-2) * time.Second
		in.ResourceIntent, p.intents[i] = &doc, &in
	}
}

// round decides once, books what the plan does and puts it into the ledger.
func (p *planned) round(at v1alpha1.Time, out *stepResult) error {
	// The memory compares with the list of the round before, which must stay as it was.
	p.world.Now, p.world.Intents = at, slices.Clone(p.intents)
	p.observe()
	plan := p.memory.Decide(p.world)
	p.world.Ledger = p.world.Ledger.With(plan.LedgerChanges())
	out.due, p.makesRoom = 0, slices.ContainsFunc(plan.Intents, func(d *planner.Decision) bool { return d.Code == lifecycle.CodeMakingRoom })
	if !plan.Due.IsZero() {
		out.due = plan.Due.Unix() - p.opts.Start.Unix()
	}
	return p.read(plan, out)
}

// moves reports whether the fleet moves what works to better offers.
func (p *planned) moves() bool { return p.world.Fleet.Consolidation.Mode == "apply" }

// observe makes clusters do at once what the ledger says, where what works is
// moved: a reservation alone has nothing to move.
func (p *planned) observe() {
	if !p.moves() {
		return
	}
	said := map[string]v1alpha1.Observation{}
	for c := range p.world.Ledger.Contracts() {
		seen := v1alpha1.Observation{ProviderSeen: true, Consumer: v1alpha1.ConsumerObservation{Reachable: true}}
		on := &seen.Consumer
		switch {
		case c.Status.Phase.Charged():
			seen.ProviderHolds, on.Granted, on.Allocatable = c.Spec.Resources, c.Spec.Resources, c.Spec.Resources
			on.Slice, on.VirtualNode, on.Node = v1alpha1.Present, v1alpha1.Present, v1alpha1.Present
			on.NodeReady, on.Offloading = true, true
		case c.Status.Phase == v1alpha1.PhaseReleasing:
			on.Slice, on.VirtualNode, on.Node = v1alpha1.Absent, v1alpha1.Absent, v1alpha1.Absent
		default:
			continue
		}
		said[c.Metadata.Name] = seen
	}
	p.world.Observed = planner.Observations{}.With(said)
}

// read books what a plan places and notes what it does not.
func (p *planned) read(plan *planner.Plan, out *stepResult) error {
	moves := map[*job]bool{}
	for i := range plan.Contracts {
		if plan.Contracts[i].Before == nil {
			j := p.jobOf(plan.Contracts[i].After)
			moves[j] = j != nil && j.started >= 0
		}
	}
	// What ends goes first: its place may be what another takes.
	for i := range plan.Contracts {
		before, after := plan.Contracts[i].Before, plan.Contracts[i].After
		if before == nil || !before.Status.Phase.Charged() || (after != nil && after.Status.Phase.Charged()) {
			continue
		}
		if after != nil && after.Status.Target == v1alpha1.PhaseExpired {
			continue
		}
		if j := p.jobOf(before); j != nil && !p.over[j] {
			p.sites[j.at.site].give(j.at.size, j.at.on)
			if !moves[j] {
				out.interrupted = append(out.interrupted, j)
			}
		}
	}
	for i := range plan.Contracts {
		if plan.Contracts[i].Before != nil || plan.Contracts[i].After == nil {
			continue
		}
		placed, err := p.book(plan.Contracts[i].After)
		if err != nil {
			return err
		}
		if moves[placed.job] {
			out.moved = append(out.moved, placed)
			continue
		}
		out.placed = append(out.placed, placed)
	}
	for i := range plan.Intents {
		d := plan.Intents[i]
		if d.Action != planner.Queued && d.Action != planner.Refuse {
			continue
		}
		if j := p.jobs[d.Tenant+"/"+d.Name]; j != nil {
			out.waits = append(out.waits, refusal{j, because(d)})
		}
	}
	return nil
}

// because is the requirement that most offers fail, or the reason's code.
func because(d *planner.Decision) string {
	top, most := d.Code, 0
	for _, req := range slices.Sorted(maps.Keys(d.Rejected)) {
		if n := d.Rejected[req]; n > most && strings.HasPrefix(req, match.ReqCapacity) {
			top, most = req, n
		}
	}
	if most > 0 {
		return top
	}
	for _, req := range slices.Sorted(maps.Keys(d.Rejected)) {
		if n := d.Rejected[req]; n > most {
			top, most = req, n
		}
	}
	return top
}

func (p *planned) jobOf(c *v1alpha1.Contract) *job {
	return p.jobs[c.Metadata.Namespace+"/"+c.Spec.Intent.Name]
}

// book takes a new contract's capacity off its site: the simulation's own check
// that nothing is given away twice.
func (p *planned) book(c *v1alpha1.Contract) (placement, error) {
	i, known := p.bySite[c.Spec.Provider+"/"+c.Spec.Flavor]
	j := p.jobOf(c)
	if !known || j == nil {
		return placement{}, fmt.Errorf("contract %s is of an unknown flavor or intent", c.Metadata.Name)
	}
	s := &p.sites[i]
	z := sizeOf(ledger.AsOffered(c, s.flavor))
	out := placement{job: j, site: i, size: z, on: s.laidOut(c, z.units), hourly: c.Spec.Price.Hourly.Micro(), milli: s.milli(z.units)}
	if err := s.take(z, out.on); err != nil {
		return out, fmt.Errorf("contract %s: %w", c.Metadata.Name, err)
	}
	return out, nil
}

// laidOut is the cards that a contract names, or any where whole ones are sold.
func (s *site) laidOut(c *v1alpha1.Contract, units int64) []share {
	if s.units == 1 {
		return s.deal(units, -1)
	}
	var out []share
	if g := c.Spec.GPUs; g != nil {
		for _, u := range g.Cards {
			out = append(out, share{int(u.Card), u.Units})
		}
	}
	return out
}

// forget deletes the files of intents that are over or were refused for good,
// and what the ledger remembers of them.
func (p *planned) forget(gone []*job) error {
	var ch ledger.Changes
	for _, j := range gone {
		if i, there := slices.BinarySearchFunc(p.intents, j, byName); there {
			p.intents = slices.Delete(p.intents, i, i+1)
		}
		for _, c := range p.world.Ledger.ByIntent(j.tenant, j.name) {
			if c.Status.Phase.Held() {
				return fmt.Errorf("contract %s is still %s after its end", c.Metadata.Name, c.Status.Phase)
			}
			ch.Contracts = append(ch.Contracts, model.Change{Before: c})
		}
		if s := p.world.Ledger.State(j.tenant, j.name); s != nil {
			ch.States = append(ch.States, model.StateChange{Before: s})
		}
	}
	p.world.Ledger = p.world.Ledger.With(ch)
	return nil
}

// byName is the order of intents: by tenant and name, as the planner wants it.
func byName(a *model.Intent, j *job) int {
	return cmp.Or(cmp.Compare(a.Metadata.Namespace, j.tenant), cmp.Compare(a.Metadata.Name, j.name))
}

// ask adds a job's intent, if it is not there yet.
func (p *planned) ask(j *job) {
	i, there := slices.BinarySearchFunc(p.intents, j, byName)
	if there {
		return
	}
	p.intents = slices.Insert(p.intents, i, p.intentOf(j))
}

// request is what a row asks for.
func (p *planned) request(d *market.Demand) v1alpha1.ResourceRequest {
	q := v1alpha1.ResourceRequest{Named: v1alpha1.Resources{v1alpha1.CPU: d.CPU, v1alpha1.Memory: d.Memory}}
	switch {
	case d.GPUs == 0:
	case p.opts.cut:
		q.GPU = &v1alpha1.GPURequest{Models: d.Models, Sharing: sharing, Count: int32(d.Milli())} //nolint:gosec // a few cards
	case d.MilliGPU < thousands:
		part := v1alpha1.DecimalFromInt(d.MilliGPU).DivInt(thousands, 3)
		q.GPU = &v1alpha1.GPURequest{Models: d.Models, Share: &part}
	default:
		q.GPU = &v1alpha1.GPURequest{Models: d.Models, Count: int32(d.GPUs)} //nolint:gosec // a few cards
	}
	return q
}

// intentOf is a row of demand as a team would write it.
func (p *planned) intentOf(j *job) *model.Intent {
	d := j.demand
	in := &v1alpha1.ResourceIntent{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindResourceIntent},
		Metadata: v1alpha1.Metadata{Name: j.name, Namespace: j.tenant},
	}
	s := &in.Spec
	s.Resources = p.request(d)
	s.Placement.AllowAccelerators = d.GPUs == 0 // traces are of clusters whose nodes all have some
	s.Objective, s.Weights, s.Purchase = p.opts.Objective, p.opts.Weights, p.opts.Purchase
	if !p.moves() {
		s.Stage = v1alpha1.StageReserve
	}
	s.Priority = d.Priority
	s.Queue.Policy = p.opts.Queue
	if j.life >= 0 {
		s.Schedule.Duration.Duration = time.Duration(j.life-1) * time.Second
	}
	if d.MaxHourly != nil {
		s.Budget = &v1alpha1.IntentBudget{MaxHourly: d.MaxHourly}
	}
	return &model.Intent{
		ResourceIntent: in, Path: "intents/" + j.tenant + "/" + j.name + ".yaml",
		Digest: "sha256:" + j.name, Commit: p.world.Inputs, Author: "simulation",
	}
}
