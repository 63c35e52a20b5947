package simulate

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Result is a simulation's. Times are in seconds of the demand's own clock,
// money is in Currency.
type Result struct {
	Currency  string  `json:"currency"`
	Seed      uint64  `json:"seed"`
	Load      float64 `json:"load,omitempty"`
	Objective string  `json:"objective,omitempty"`
	// Start is what second 0 of the demand's clock is on the calendar.
	Start v1alpha1.Time `json:"start"`
	// Penalty is what a GPU-hour that was asked for and never placed counts in costWithPenalty.
	Penalty v1alpha1.Decimal `json:"penalty"`
	// Supply and Demand are what met.
	Supply Supply `json:"supply"`
	Demand Asked  `json:"demand"`
	// Policies in the order asked for.
	Policies []Outcome `json:"policies"`
	// Growth is the same at several sizes of the fleet.
	Growth []Growth `json:"growth,omitempty"`
}

// Supply is what was offered.
type Supply struct {
	Clusters int     `json:"clusters"`
	Flavors  int     `json:"flavors"`
	GPUs     float64 `json:"gpus"`
	CPU      string  `json:"cpu"`
	Memory   string  `json:"memory"`
}

// Asked is what was asked for.
type Asked struct {
	Intents int `json:"intents"`
	// Shares are intents for a part of a card, Whole for cards, NoGPU for none.
	Shares int `json:"shares"`
	Whole  int `json:"whole"`
	NoGPU  int `json:"noGPU"`
	// GPUs of all intents together, and Tenants that ask.
	GPUs    float64 `json:"gpus"`
	Tenants int     `json:"tenants"`
}

// Outcome is what came of the demand under one policy.
type Outcome struct {
	Policy string `json:"policy"`
	// Arrived = Placed + Refused + Waiting (never placed until the end).
	Arrived int `json:"arrived"`
	Placed  int `json:"placed"`
	Refused int `json:"refused"`
	Waiting int `json:"waiting"`
	// Interrupted counts placements that were lost before their time.
	Interrupted int `json:"interrupted,omitempty"`
	// Moved counts placements that were exchanged for cheaper ones (Fleet.consolidation).
	Moved int `json:"moved,omitempty"`
	// Why the others were not placed: the requirement that most offers failed at the end.
	Why []Count `json:"why,omitempty"`
	// Wait of those that were placed.
	Wait Percentiles `json:"wait"`
	// Cost until EndsAt; CostWithPenalty adds the penalty for UnplacedGPUHours.
	Cost             v1alpha1.Decimal `json:"cost"`
	CostWithPenalty  v1alpha1.Decimal `json:"costWithPenalty"`
	HourlyPeak       v1alpha1.Decimal `json:"hourlyPeak"`
	HourlyEnd        v1alpha1.Decimal `json:"hourlyEnd"`
	UnplacedGPUs     float64          `json:"unplacedGPUs"`
	UnplacedGPUHours float64          `json:"unplacedGPUHours"`
	GPU              GPUUse           `json:"gpu"`
	Fairness         Fairness         `json:"fairness"`
	// Flavors and Providers are how full each was, by name; what has no GPUs is measured in cores.
	Flavors   []Use `json:"flavors"`
	Providers []Use `json:"providers"`
	// Never are the intents that were never placed, alike ones together, the most first.
	Never  []Never `json:"neverPlaced,omitempty"`
	EndsAt int64   `json:"endsAt"`
	Series []Point `json:"series"`

	unplacedMilli int64
}

// Count is how often something was so.
type Count struct {
	What string `json:"what"`
	N    int    `json:"n"`
}

// Words are what was counted, for people: a requirement says what most offers
// lack.
func (c Count) Words() string {
	if said := planner.Shortfall(c.What); said != "" {
		return fmt.Sprintf("%d as most offers %s", c.N, said)
	}
	return fmt.Sprintf("%d %s", c.N, c.What)
}

// Percentiles of waiting, nearest rank, in seconds.
type Percentiles struct {
	P50 int64 `json:"p50"`
	P90 int64 `json:"p90"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
	// Mean is rounded down.
	Mean int64 `json:"mean"`
	// Waited is how many waited at all.
	Waited int `json:"waited"`
}

// GPUUse is how full the GPUs were.
type GPUUse struct {
	Total          float64 `json:"total"`
	AllocatedEnd   float64 `json:"allocatedEnd"`
	UnallocatedEnd float64 `json:"unallocatedEnd"`
	// AllocationMean is over time, AllocationEnd at the end; both from 0 to 1.
	AllocationMean float64 `json:"allocationMean"`
	AllocationEnd  float64 `json:"allocationEnd"`
	// FragmentedEnd is how many idle GPUs an intent drawn from the demand could not use (ATC 2023), FragmentRatio that as a part of the idle.
	FragmentedEnd float64 `json:"fragmentedEnd"`
	FragmentRatio float64 `json:"fragmentRatio"`
}

// Fairness between tenants.
type Fairness struct {
	// JainService is of GPU time got by asked for, JainDominant of dominant shares among those that wanted more.
	JainService  float64         `json:"jainService"`
	JainDominant float64         `json:"jainDominant"`
	Tenants      []TenantOutcome `json:"tenants"`
}

// TenantOutcome is what one tenant got.
type TenantOutcome struct {
	Tenant        string  `json:"tenant"`
	Arrived       int     `json:"arrived"`
	Placed        int     `json:"placed"`
	AskedGPUHours float64 `json:"askedGPUHours"`
	GotGPUHours   float64 `json:"gotGPUHours"`
	// Service is GPU-hours got by asked for; absent where none were asked for.
	Service       *float64    `json:"service,omitempty"`
	DominantShare float64     `json:"dominantShare"`
	Wait          Percentiles `json:"wait"`
	// NeverPlaced of those that arrived, and the Cost of those that were placed.
	NeverPlaced int              `json:"neverPlaced"`
	Cost        v1alpha1.Decimal `json:"cost"`
}

// Point is how things stood at one time.
type Point struct {
	At        int64            `json:"at"`
	GPUs      float64          `json:"gpus"`
	AskedGPUs float64          `json:"waitingGPUs"`
	Waiting   int              `json:"waiting"`
	Held      int              `json:"held"`
	Hourly    v1alpha1.Decimal `json:"hourly"`
}

// Growth is one size of the fleet.
type Growth struct {
	Clusters int       `json:"clusters"`
	Supply   Supply    `json:"supply"`
	Demand   Asked     `json:"demand"`
	Policies []Outcome `json:"policies"`
}

func supplyOf(o *Options, sites []site) Supply {
	s := Supply{Clusters: len(o.clusters), Flavors: len(sites)}
	var gpu, cpu, mem int64
	for i := range sites {
		gpu += sites[i].milli(sites[i].allUnits)
		cpu += sites[i].allCPU
		mem += sites[i].allMem
	}
	s.GPUs = float64(gpu) / thousands
	s.CPU = v1alpha1.AmountOf(cpu).Canonical(v1alpha1.CPU)
	s.Memory = v1alpha1.AmountOf(mem).Canonical(v1alpha1.Memory)
	return s
}

func askedOf(jobs []*job) Asked {
	a := Asked{Intents: len(jobs)}
	tenants := map[string]bool{}
	var gpu int64
	for _, j := range jobs {
		gpu += j.demand.Milli()
		tenants[j.tenant] = true
		switch {
		case j.demand.GPUs == 0:
			a.NoGPU++
		case j.demand.MilliGPU < thousands:
			a.Shares++
		default:
			a.Whole++
		}
	}
	a.GPUs, a.Tenants = float64(gpu)/thousands, len(tenants)
	return a
}
