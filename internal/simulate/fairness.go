package simulate

import (
	"maps"
	"slices"
)

// fairness compares what tenants got. Two ways:
//
//   - service: the GPU time a tenant got by the GPU time it asked for;
//   - dominant share (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011):
//     the greatest of its mean shares of all CPU, memory and GPUs.
//
// Each is summed up by Jain's index, (Σx)² ÷ (n·Σx²): 1 when all are equal, 1/n
// when one has everything (Jain, Chiu, Hawe, DEC TR-301, 1984). Dominant shares
// are compared among tenants that asked for more than they got: the others have
// all they wanted.
func (e *engine) fairness(end int64, spent map[string]int64) Fairness {
	m := e.measures
	type sums struct {
		jobs, placed int
		asked        float64
		waits        []int64
		wantsMore    bool
	}
	by := map[string]*sums{}
	for _, j := range e.jobs {
		s := by[j.tenant]
		if s == nil {
			s = &sums{}
			by[j.tenant] = s
		}
		s.jobs++
		s.asked += float64(j.demand.Milli()) * float64(min(j.wanted(end), max(end-j.arrived, 0)))
		if j.started >= 0 || j.interruptions > 0 {
			s.placed++
			s.waits = append(s.waits, max(j.started-j.arrived, 0))
			s.wantsMore = s.wantsMore || j.started > j.arrived
		} else {
			s.wantsMore = true
		}
	}
	var out Fairness
	var service, shares []float64
	for _, name := range slices.Sorted(maps.Keys(by)) {
		s, use := by[name], m.byTenant[name]
		if use == nil {
			use = &tenantUse{}
		}
		t := TenantOutcome{Tenant: name, Arrived: s.jobs, Placed: s.placed, NeverPlaced: s.jobs - s.placed, Wait: percentiles(s.waits), Cost: micros(spent[name])}
		t.AskedGPUHours, t.GotGPUHours = round3(s.asked/thousands/3600), round3(use.gpuSeconds/thousands/3600)
		share := func(seconds float64, all int64) {
			if all > 0 && m.allSeconds > 0 {
				t.DominantShare = max(t.DominantShare, round4(seconds/m.allSeconds/float64(all)))
			}
		}
		share(use.gpuSeconds, m.allGPU)
		share(use.cpuSeconds, m.allCPU)
		share(use.memSeconds, m.allMem)
		if s.asked > 0 {
			got := round4(min(use.gpuSeconds/s.asked, 1))
			t.Service = &got
			service = append(service, got)
		}
		if s.wantsMore {
			shares = append(shares, t.DominantShare)
		}
		out.Tenants = append(out.Tenants, t)
	}
	out.JainService, out.JainDominant = jain(service), jain(shares)
	return out
}

// jain is Jain's index of equality; of nobody, and of nothing, it is 1.
func jain(list []float64) float64 {
	var sum, squares float64
	for _, x := range list {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 1
	}
	return round4(sum * sum / (float64(len(list)) * squares))
}
