package jobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/simulate"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
)

// childName is the name under which a process is the child that simulates.
const childName = "fleetbroker: simulate"

func init() { child.ServeTelling(childName, serve) }

// request is what the child gets: JSON, because the types of files have no other form
// that keeps them whole.
type request struct {
	Policy  *v1alpha1.FleetSpec
	Tenants map[string]*v1alpha1.Tenant
	Start   v1alpha1.Time
	Until   int64
	// Runs as it is, and changed.
	Runs [2]run
}

type run struct {
	Flavors  []*v1alpha1.Flavor
	Clusters []*v1alpha1.Cluster
	Demand   []row
	// Unlimited: no tenant has a quota or budget.
	Unlimited bool
}

// nice is the lowest priority there is.
const nice = 19

// serve simulates both runs and answers with their figures; news are the progress, from 0
// to 100.
func serve(text []byte, tell child.Tell) ([]byte, error) {
	runtime.GOMAXPROCS(1)
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice)                // it is as good at the priority it has
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000\n"), 0o600) // where the kernel takes it
	var q request
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&q); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	var out [2]*scenario.Figures
	for i := range q.Runs {
		var told time.Time
		last := -1
		f, err := q.simulate(&q.Runs[i], func(done, all int) {
			percent := (i*100 + done*100/max(all, 1)) / len(q.Runs)
			if percent == last || time.Since(told) < 100*time.Millisecond {
				return
			}
			last, told = percent, time.Now()
			tell(fmt.Appendf(nil, "%d", percent))
		})
		if err != nil {
			return nil, err
		}
		out[i] = f
	}
	return json.Marshal(out)
}

// simulate runs the planner on one of the two.
func (q *request) simulate(r *run, progress func(done, all int)) (*scenario.Figures, error) {
	if len(r.Demand) == 0 {
		return &scenario.Figures{}, nil
	}
	policy := *q.Policy
	o := simulate.Options{
		Offers: &market.Table{Flavors: r.Flavors, Clusters: r.Clusters}, Demand: demand(r.Demand), Fleet: &policy, Tenants: q.Tenants,
		Start: q.Start, Until: q.Until, Queue: "wait",
		Progress: func(_ string, done, all int) { progress(done, all) },
	}
	if r.Unlimited {
		o.Tenants = nil
	}
	result, err := simulate.Run(o)
	if err != nil {
		return nil, fmt.Errorf("run the simulation: %w", err)
	}
	return figures(&result.Policies[0]), nil
}

// most of flavors, tenants and kinds of what was never placed that figures list.
const most = 200

func figures(o *simulate.Outcome) *scenario.Figures {
	f := &scenario.Figures{
		Arrived: o.Arrived, Placed: o.Placed, NeverPlaced: o.Refused + o.Waiting, WaitP50: o.Wait.P50, WaitP90: o.Wait.P90, WaitMax: o.Wait.Max,
		Cost: o.Cost, HourlyEnd: o.HourlyEnd, HourlyPeak: o.HourlyPeak, GPUs: o.GPU.Total, GPUMean: o.GPU.AllocationMean, GPUIdle: o.GPU.UnallocatedEnd,
		Providers: uses(o.Providers), Flavors: uses(o.Flavors), Tenants: []scenario.Share{},
	}
	for i := range o.Fairness.Tenants[:min(len(o.Fairness.Tenants), most)] {
		t := &o.Fairness.Tenants[i]
		f.Tenants = append(f.Tenants, scenario.Share{
			Tenant: t.Tenant, Arrived: t.Arrived, NeverPlaced: t.NeverPlaced, WaitP50: t.Wait.P50, WaitP90: t.Wait.P90, Cost: t.Cost,
			AskedHours: t.AskedGPUHours, GotHours: t.GotGPUHours,
		})
	}
	for i := range o.Never[:min(len(o.Never), most)] {
		n := &o.Never[i]
		f.Never = append(f.Never, scenario.Never{N: n.N, Tenant: n.Tenant, Asks: n.Asks(), Why: n.Because()})
	}
	return f
}

func uses(list []simulate.Use) []scenario.Use {
	out := []scenario.Use{}
	for i := range list[:min(len(list), most)] {
		u := &list[i]
		name := u.Provider
		if u.Flavor != "" {
			name += "/" + u.Flavor
		}
		out = append(out, scenario.Use{Name: name, Size: u.Size(), Mean: u.Mean, Cost: u.Cost})
	}
	return out
}
