package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Planner is the name of the real planner among the policies; InOrder is the planner
// without fairness between tenants, as an outcome names it.
const (
	Planner = "planner"
	InOrder = "planner, fair off"
)

// Fairnesses are the values of Options.Fair.
var Fairnesses = []string{"on", "off", "both"}

// Policies are all that can be compared.
func Policies() []string { return append([]string{Planner}, Baselines...) }

// Options say what is simulated and how.
type Options struct {
	// Offers are the flavors and their clusters.
	Offers *market.Table
	// Demand is the rows of the demand table.
	Demand []market.Demand
	// Policies to compare, by name; default the planner alone.
	Policies []string
	// Fleet is the policy the planner goes by: currency, rates, weights. Tenants by name, for quotas and budgets; may be nil:
	// then the default of limits.contracts does not hold.
	Fleet   *v1alpha1.FleetSpec
	Tenants map[string]*v1alpha1.Tenant
	// Objective, Weights and Purchase of every intent.
	Objective v1alpha1.Objective
	Weights   *v1alpha1.Weights
	Purchase  []v1alpha1.PriceClass
	// Queue is wait or fail: whether what does not fit is tried again.
	Queue string
	// Start is what the demand's second 0 is on the calendar; default Start.
	Start v1alpha1.Time
	// Seed of everything that is drawn.
	Seed uint64
	// Load draws demand until it asks for so many times the GPUs there are; 0 takes the table as it is.
	Load float64
	// Stay ignores deletion times: arrivals only.
	Stay bool
	// Tick in seconds puts arrivals off to its next multiple, so that they are planned together; 0 plans each instant by itself.
	Tick int64
	// Until ends the simulation at that second; 0 goes on until nothing is left to come.
	Until int64
	// Clusters is how many provider clusters there are; 0 is as many as the table has.
	Clusters int
	// Parts sells parts of machines, where the table sells them whole.
	Parts bool
	// Penalty is what a GPU-hour that was asked for and never placed counts, in the fleet's currency.
	Penalty v1alpha1.Decimal
	// Fair is on (default), off (the planner gives turns among intents of equal priority by age alone) or both (one after the other).
	Fair string
	// Progress is told how far a policy is; may be nil.
	Progress func(policy string, done, all int)

	// cut: cards are sold by the thousandth, because shares are asked for.
	cut      bool
	clusters []*v1alpha1.Cluster
	flavors  []*v1alpha1.Flavor
}

// Start is second 0 of a table of demand unless Options say otherwise: a Monday
// at midnight UTC. Prices that go by the hour of the week count from it.
var Start = v1alpha1.TimeOf(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC))

// Run simulates every policy on the same offers and the same demand.
func Run(o Options) (*Result, error) {
	if len(o.Policies) == 0 {
		o.Policies = []string{Planner}
	}
	if o.Queue == "" {
		o.Queue = "wait"
	}
	if o.Start.IsZero() {
		o.Start = Start
	}
	if err := o.prepare(); err != nil {
		return nil, err
	}
	books, err := ledger.BooksOf(o.Fleet)
	if err != nil {
		return nil, fmt.Errorf("read the fleet's currency: %w", err)
	}
	convert := func(d v1alpha1.Decimal, from string) (v1alpha1.Decimal, error) {
		if d.IsZero() || from == "" {
			return d, nil
		}
		return books.Convert(d, from, o.Start)
	}
	types := typesOf(o.Demand)
	rows := o.rows()
	out := &Result{Currency: o.Fleet.Currency, Seed: o.Seed, Load: o.Load, Objective: string(o.Objective), Start: o.Start, Penalty: o.Penalty}
	for _, name := range o.runs() {
		sites, err := sitesOf(o.flavors, convert)
		if err != nil {
			return nil, err
		}
		jobs := jobsOf(rows, o.Stay)
		e := &engine{opts: &o, sites: sites, jobs: jobs}
		e.measures = newMeasures(&o, sites, types)
		if name == Planner || name == InOrder {
			p := newPlanned(&o, sites, jobs, types)
			p.world.InOrder = name == InOrder
			e.policy = p
		} else {
			e.policy = newBaseline(name, sites, types, o.Seed)
		}
		if o.Progress != nil {
			e.progress = func(done, all int) { o.Progress(name, done, all) }
		}
		if err := e.run(); err != nil {
			return nil, fmt.Errorf("simulate %s: %w", name, err)
		}
		out.Policies = append(out.Policies, e.outcome(name))
		if out.Supply.Flavors == 0 {
			out.Supply = supplyOf(&o, sites)
			out.Demand = askedOf(jobs)
		}
	}
	return out, nil
}

// runs are the policies as they are run: the planner fair, not, or both.
func (o *Options) runs() []string {
	var out []string
	for _, name := range o.Policies {
		if name != Planner || o.Fair != "off" {
			out = append(out, name)
		}
		if name == Planner && (o.Fair == "off" || o.Fair == "both") {
			out = append(out, InOrder)
		}
	}
	return out
}

// prepare makes flavors and clusters of the options.
func (o *Options) prepare() error {
	if len(o.Offers.Flavors) == 0 {
		return errors.New("the offers have no rows")
	}
	if len(o.Demand) == 0 {
		return errors.New("the demand has no rows")
	}
	for _, p := range o.Policies {
		if !slices.Contains(Policies(), p) {
			return fmt.Errorf("there is no policy %q: want %s", p, strings.Join(Policies(), ", "))
		}
	}
	if o.Fair != "" && !slices.Contains(Fairnesses, o.Fair) {
		return fmt.Errorf("fair: %q: want %s", o.Fair, strings.Join(Fairnesses, ", "))
	}
	o.flavors, o.clusters = o.Offers.Flavors, o.Offers.Clusters
	if o.Parts {
		o.flavors = inParts(o.flavors)
	}
	if o.Clusters > 0 {
		o.flavors, o.clusters = spread(o.flavors, o.clusters, o.Clusters)
	}
	for i := range o.Demand {
		if d := &o.Demand[i]; d.GPUs > 0 && d.MilliGPU < thousands {
			o.flavors, o.cut = cutAll(o.flavors)
			break
		}
	}
	return nil
}

// cutAll cuts the cards of nodes, and reports whether there are any.
func cutAll(flavors []*v1alpha1.Flavor) ([]*v1alpha1.Flavor, bool) {
	out := cut(flavors)
	for i := range out {
		if out[i] != flavors[i] {
			return out, true
		}
	}
	return flavors, false
}

// inParts drops what makes machines whole.
func inParts(flavors []*v1alpha1.Flavor) []*v1alpha1.Flavor {
	out := make([]*v1alpha1.Flavor, len(flavors))
	for i, f := range flavors {
		c := *f
		c.Spec.Partition = nil
		out[i] = &c
	}
	return out
}

// shortest is the least time for which anything is held: a round to place it,
// one to see that it is over.
const shortest = 2

// jobsOf are the rows in order of arrival, from second 0.
func jobsOf(rows []market.Demand, stay bool) []*job {
	jobs := make([]*job, len(rows))
	for i := range rows {
		d := &rows[i]
		j := &job{demand: d, tenant: cmp.Or(d.Tenant, "all"), arrived: d.Created, started: -1, life: -1}
		if !stay && d.Deleted >= 0 {
			j.life = max(d.Deleted-d.Created, shortest)
		}
		j.name = fmt.Sprintf("i%06d", i)
		jobs[i] = j
	}
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(a.arrived, b.arrived) })
	for i, j := range jobs {
		j.index = i
	}
	return jobs
}

// Grow simulates the fleet at several sizes, in clusters, each with as much
// demand for its GPUs as the load says (default 1).
func Grow(o Options, clusters []int) ([]Growth, error) {
	if o.Load <= 0 {
		o.Load = 1
	}
	var out []Growth
	told := o.Progress
	for _, n := range clusters {
		o.Clusters = n
		if told != nil {
			o.Progress = func(policy string, done, all int) { told(fmt.Sprintf("%d clusters, %s", n, policy), done, all) }
		}
		r, err := Run(o)
		if err != nil {
			return nil, fmt.Errorf("%d clusters: %w", n, err)
		}
		out = append(out, Growth{Clusters: n, Supply: r.Supply, Demand: r.Demand, Policies: r.Policies})
	}
	return out, nil
}
