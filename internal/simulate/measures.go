package simulate

import (
	"cmp"
	"slices"
	"sort"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// measures adds up what happens while time goes by.
type measures struct {
	opts  *Options
	frags *fragments
	now   int64
	begun bool
	// what is held now: thousandths of cards, milli-cores, bytes, micro-units an hour, and intents.
	gpu, cpu, mem, hourly, held int64
	allGPU, allCPU, allMem      int64
	peak                        int64
	// sums over time.
	gpuSeconds, allSeconds float64
	byTenant               map[string]*tenantUse
	bySite                 []siteUse
	series                 []Point
}

// tenantUse is what a tenant holds now and has held over time.
type tenantUse struct {
	gpu, cpu, mem                      int64
	gpuSeconds, cpuSeconds, memSeconds float64
}

// siteUse is what is held of a flavor now, and has been held until since.
type siteUse struct {
	gpu, cpu, since        int64
	gpuSeconds, cpuSeconds float64
	// paid for what was there and is no more, in micro-units.
	paid int64
}

// until lets time go by.
func (u *siteUse) until(now int64) {
	d := float64(now - u.since)
	u.gpuSeconds += d * float64(u.gpu)
	u.cpuSeconds += d * float64(u.cpu)
	u.since = now
}

func newMeasures(o *Options, sites []site, types []taskType) *measures {
	m := &measures{opts: o, frags: newFragments(types), byTenant: map[string]*tenantUse{}, bySite: make([]siteUse, len(sites))}
	for i := range sites {
		s := &sites[i]
		m.allGPU += s.milli(s.allUnits)
		m.allCPU += s.allCPU
		m.allMem += s.allMem
	}
	return m
}

// change notes that a job holds what it was given, or (-1) no longer.
func (m *measures) change(j *job, sign int64) {
	z := j.at.size
	gpu := j.at.milli
	t := m.byTenant[j.tenant]
	if t == nil {
		t = &tenantUse{}
		m.byTenant[j.tenant] = t
	}
	m.gpu, m.cpu, m.mem = m.gpu+sign*gpu, m.cpu+sign*z.cpu, m.mem+sign*z.mem
	t.gpu, t.cpu, t.mem = t.gpu+sign*gpu, t.cpu+sign*z.cpu, t.mem+sign*z.mem
	m.bySite[j.at.site].until(m.now)
	m.bySite[j.at.site].gpu += sign * gpu
	m.bySite[j.at.site].cpu += sign * z.cpu
	m.hourly += sign * j.at.hourly
	m.held += sign
	m.peak = max(m.peak, m.hourly)
}

// until lets time go by.
func (m *measures) until(now int64, e *engine) {
	if !m.begun {
		m.begun, m.now = true, now
	}
	if now > m.now || len(m.series) == 0 {
		m.point(e)
	}
	d := float64(now - m.now)
	m.gpuSeconds += d * float64(m.gpu)
	m.allSeconds += d
	for _, t := range m.byTenant {
		t.gpuSeconds += d * float64(t.gpu)
		t.cpuSeconds += d * float64(t.cpu)
		t.memSeconds += d * float64(t.mem)
	}
	m.now = now
}

// maxPoints is how many points of a series are kept for charts.
const maxPoints = 600

// point notes how things stand. When there are too many points, every second
// one is dropped.
func (m *measures) point(e *engine) {
	if n := len(m.series); n > 0 && m.series[n-1].At == m.now {
		m.series = m.series[:n-1]
	}
	p := Point{At: m.now, GPUs: float64(m.gpu) / thousands, Waiting: len(e.waiting), Held: int(m.held), Hourly: v1alpha1.DecimalFromInt(m.hourly).DivInt(1_000_000, 6)}
	for _, j := range e.waiting {
		p.AskedGPUs += float64(j.demand.Milli()) / thousands
	}
	if len(m.series) >= maxPoints {
		kept := m.series[:0]
		for i, x := range m.series {
			if i%2 == 0 {
				kept = append(kept, x)
			}
		}
		m.series = kept
	}
	m.series = append(m.series, p)
}

// outcome sums a policy up.
func (e *engine) outcome(name string) Outcome {
	m := e.measures
	end := m.now
	m.point(e)
	out := Outcome{Policy: name, Arrived: len(e.jobs), Series: m.series, EndsAt: end}
	var waits []int64
	var total, unplaced int64
	why := map[string]int{}
	spent := map[string]int64{}
	never := map[neverKey]*Never{}
	for _, j := range e.jobs {
		placed := j.started >= 0 || j.interruptions > 0
		total += j.paid
		if j.started >= 0 {
			until := end
			if j.life >= 0 {
				until = min(until, j.ended)
			}
			last := cost(j.at.hourly, until-j.since)
			total += last
			m.bySite[j.at.site].paid += last
			spent[j.tenant] += last
		}
		spent[j.tenant] += j.paid
		out.Interrupted += j.interruptions
		out.Moved += j.moves
		switch {
		case placed:
			out.Placed++
			waits = append(waits, max(j.started-j.arrived, 0))
		case j.refused:
			out.Refused++
		default:
			out.Waiting++
		}
		if !placed {
			out.unplacedMilli += j.demand.Milli()
			unplaced += j.demand.Milli() * j.wanted(end)
			why[cmp.Or(j.why, nowhere)]++
			addNever(never, j, end)
		}
	}
	out.UnplacedGPUs = float64(out.unplacedMilli) / thousands
	out.Why = counted(why)
	out.Wait = percentiles(waits)
	out.Cost = micros(total)
	out.HourlyEnd, out.HourlyPeak = micros(m.hourly), micros(m.peak)
	hours := float64(unplaced) / thousands / 3600
	out.UnplacedGPUHours = round3(hours)
	out.CostWithPenalty = out.Cost.Add(e.opts.Penalty.MulInt(unplaced).DivInt(thousands*3600, 6))
	out.GPU = m.gpus(e)
	out.Fairness = e.fairness(end, spent)
	out.Flavors, out.Providers = e.uses(end)
	out.Never = sortedNever(never)
	return out
}

// wanted is for how long a job asks, at most until the end.
func (j *job) wanted(end int64) int64 {
	if j.life >= 0 {
		return j.life
	}
	return max(end-j.arrived, 0)
}

func (m *measures) gpus(e *engine) GPUUse {
	u := GPUUse{Total: float64(m.allGPU) / thousands, AllocatedEnd: float64(m.gpu) / thousands}
	u.UnallocatedEnd = u.Total - u.AllocatedEnd
	if m.allGPU == 0 {
		return u
	}
	u.AllocationEnd = round4(float64(m.gpu) / float64(m.allGPU))
	if m.allSeconds > 0 {
		u.AllocationMean = round4(m.gpuSeconds / m.allSeconds / float64(m.allGPU))
	}
	frag := m.frags.total(e.sites)
	u.FragmentedEnd = round3(frag / thousands)
	if idle := float64(m.allGPU - m.gpu); idle > 0 {
		u.FragmentRatio = round4(frag / idle)
	}
	return u
}

// counted sorts counts, the greatest first.
func counted(m map[string]int) []Count {
	var out []Count
	for what, n := range m {
		out = append(out, Count{what, n})
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.What, b.What)) })
	return out
}

// percentiles are nearest-rank, in seconds.
func percentiles(list []int64) Percentiles {
	if len(list) == 0 {
		return Percentiles{}
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	rank := func(p int) int64 { return list[max((len(list)*p+99)/100, 1)-1] }
	p := Percentiles{P50: rank(50), P90: rank(90), P99: rank(99), Max: list[len(list)-1]}
	for _, w := range list {
		p.Mean += w
		if w > 0 {
			p.Waited++
		}
	}
	p.Mean /= int64(len(list))
	return p
}

func micros(n int64) v1alpha1.Decimal { return v1alpha1.DecimalFromInt(n).DivInt(1_000_000, 6) }

func round3(f float64) float64 { return float64(int64(f*1000+0.5)) / 1000 }
func round4(f float64) float64 { return float64(int64(f*10000+0.5)) / 10000 }
