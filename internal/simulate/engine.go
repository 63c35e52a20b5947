package simulate

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/market"
)

// job is a row of demand on its way through the simulation.
type job struct {
	demand *market.Demand
	// index in the order of arrival; name is unique and may stand in a file's name.
	index  int
	tenant string
	name   string
	// life in seconds, -1 for what stays.
	life int64
	// arrived and started in seconds; started is -1 while it waits. since is when it came to where it is.
	arrived, started, since int64
	at                      placement
	refused                 bool
	why                     string
	ended                   int64
	// paid is what it has cost, in micro-units, before an interruption or a move.
	paid          int64
	interruptions int
	moves         int
}

// placement is where a job goes.
type placement struct {
	job    *job
	site   int
	size   size
	on     []share
	hourly int64
	// milli is size's units in thousandths of cards.
	milli int64
}

// refusal is a job that will not be tried again, or one that waits, and why.
type refusal struct {
	job *job
	why string
}

// stepResult is what a policy does at one instant.
type stepResult struct {
	placed []placement
	// waits says why jobs were not placed, where the policy knows.
	waits []refusal
	// interrupted jobs lost what they held before their time; the policy has taken it off the books.
	interrupted []*job
	// moved jobs are in another place from now on; the policy has taken them off the books of the old one.
	moved []placement
	// due is when the policy wants to be asked even if nothing happens, 0 for never.
	due int64
}

// policy places jobs. A step gets the time in seconds, the jobs that ended
// since the last one (the simulation has taken them off the books) and all that
// wait, by arrival; what it places it has put on the books.
type policy interface {
	step(now int64, ended, waiting []*job) (stepResult, error)
}

// shapeKey is what a policy sees of a row.
type shapeKey struct {
	cpu, mem, gpus, milli int64
	models, limit         string
}

func shapeOf(d *market.Demand) shapeKey {
	k := shapeKey{cpu: d.CPU.Int64(), mem: d.Memory.Int64(), gpus: d.GPUs, milli: d.MilliGPU, models: strings.Join(d.Models, "|")}
	if d.MaxHourly != nil {
		k.limit = d.MaxHourly.String()
	}
	return k
}

// departures are running jobs by the time at which they end.
type departures []*job

func (d departures) Len() int { return len(d) }
func (d departures) Less(i, j int) bool {
	if d[i].ended != d[j].ended {
		return d[i].ended < d[j].ended
	}
	return d[i].index < d[j].index
}
func (d departures) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *departures) Push(x any)   { *d = append(*d, x.(*job)) }
func (d *departures) Pop() any {
	last := len(*d) - 1
	j := (*d)[last]
	*d = (*d)[:last]
	return j
}

// engine runs jobs through one policy.
type engine struct {
	opts     *Options
	sites    []site
	policy   policy
	jobs     []*job
	running  departures
	stays    []*job
	waiting  []*job
	due      int64
	measures *measures
	progress func(done, all int)
}

// run goes from event to event until nothing is left to come.
func (e *engine) run() error {
	next := 0
	for next < len(e.jobs) || len(e.running) > 0 {
		now := e.nextTime(next)
		if e.opts.Until > 0 && now > e.opts.Until {
			break
		}
		e.measures.until(now, e)
		var ended []*job
		for len(e.running) > 0 && e.running[0].ended <= now {
			j := heap.Pop(&e.running).(*job)
			e.sites[j.at.site].give(j.at.size, j.at.on)
			e.measures.change(j, -1)
			ended = append(ended, j)
		}
		arrived := next
		for next < len(e.jobs) && e.jobs[next].arrived <= now {
			next++
		}
		e.waiting = append(e.waiting, e.jobs[arrived:next]...)
		if err := e.decide(now, ended); err != nil {
			return fmt.Errorf("at %s: %w", clock(now), err)
		}
		if e.progress != nil {
			e.progress(next, len(e.jobs))
		}
	}
	end := e.measures.now
	if e.opts.Until > 0 {
		end = e.opts.Until
	}
	e.measures.until(end, e)
	return nil
}

// nextTime is when something happens next: an arrival, put off to the end of
// its tick, or a departure.
func (e *engine) nextTime(next int) int64 {
	const never = int64(1) << 62
	at := never
	if next < len(e.jobs) {
		at = e.jobs[next].arrived
		if tick := e.opts.Tick; tick > 1 {
			at = (at + tick - 1) / tick * tick
		}
	}
	if e.due > e.measures.now && len(e.running) > 0 {
		at = min(at, e.due)
	}
	if len(e.running) > 0 {
		end := e.running[0].ended
		if tick := e.opts.Tick; tick > 1 {
			end = (end + tick - 1) / tick * tick
		}
		at = min(at, end)
	}
	return at
}

func (e *engine) decide(now int64, ended []*job) error {
	if len(e.waiting) == 0 && len(ended) == 0 && e.due != now {
		return nil
	}
	out, err := e.policy.step(now, ended, e.waiting)
	if err != nil {
		return err
	}
	e.due = out.due
	for _, p := range out.moved {
		e.measures.change(p.job, -1)
		e.pay(p.job, now)
		p.job.at, p.job.since = p, now
		p.job.moves++
		e.measures.change(p.job, 1)
	}
	for _, j := range out.interrupted {
		e.interrupt(j, now)
	}
	for _, p := range out.placed {
		j := p.job
		j.at, j.started, j.since, j.why = p, now, now, ""
		if j.life >= 0 {
			j.ended = now + j.life
			heap.Push(&e.running, j)
		} else {
			e.stays = append(e.stays, j)
		}
		e.measures.change(j, 1)
	}
	for _, w := range out.waits {
		w.job.why = w.why
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(j *job) bool {
		if j.started < 0 && e.opts.Queue == "fail" {
			j.refused = true
		}
		return j.started >= 0 || j.refused
	})
	return nil
}

// interrupt puts a job that lost its place back among those that wait, for the
// rest of its time.
func (e *engine) interrupt(j *job, now int64) {
	e.measures.change(j, -1)
	e.pay(j, now)
	if j.life >= 0 {
		j.life -= now - j.started
	}
	j.started = -1
	j.interruptions++
	if i := slices.Index(e.running, j); i >= 0 {
		heap.Remove(&e.running, i)
	}
	if i := slices.Index(e.stays, j); i >= 0 {
		e.stays = slices.Delete(e.stays, i, i+1)
	}
	e.waiting = append(e.waiting, j)
	slices.SortFunc(e.waiting, func(a, b *job) int { return a.index - b.index })
}

// pay notes what a job has cost where it was until now.
func (e *engine) pay(j *job, now int64) {
	c := cost(j.at.hourly, now-j.since)
	j.paid += c
	e.measures.bySite[j.at.site].paid += c
}

// cost is so many seconds at an hourly price, in micro-units, rounded down.
func cost(hourly, seconds int64) int64 {
	return hourly/3600*seconds + hourly%3600*seconds/3600
}

// clock shows virtual time to people.
func clock(seconds int64) string {
	return fmt.Sprintf("%dd %02d:%02d:%02d", seconds/86400, seconds/3600%24, seconds/60%60, seconds%60)
}
