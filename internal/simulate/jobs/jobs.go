package jobs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
)

const (
	// Most simulations run at a time in one replica. The container's limit of memory
	// (install/broker) has room for as many, next to the daemon and to the child that builds
	// kustomizations.
	Most = 1
	// Keep is how long a result is kept.
	Keep = time.Hour
	// kept is how many jobs of one person are, keptAll of all persons.
	kept    = 12
	keptAll = 200
	// lasts bounds a simulation's time, cpu its processor time in seconds.
	lasts = 5 * time.Minute
	cpu   = 240
	// maxText is the most bytes that a child's request may have.
	maxText = 64 << 20
)

// Options of Jobs.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
	// Memory of a simulation in bytes; 0 is what any child may have.
	Memory uint64
	// Time that a simulation may take; 0 is five minutes.
	Time time.Duration
	// Changed is called when a job ended; may be nil.
	Changed func()
	// Replica that IDs name, "" where there are no others.
	Replica string
}

// Jobs are the simulations of one replica.
type Jobs struct {
	opts Options
	ctx  context.Context //nolint:containedctx // the life of all jobs
	end  context.CancelFunc
	done sync.WaitGroup

	mu   sync.Mutex
	list []*job // the oldest first
}

type job struct {
	who    string
	cancel context.CancelFunc
	state  scenario.Job
}

// New makes Jobs; Close ends them.
func New(o Options) *Jobs {
	if o.Memory == 0 {
		o.Memory = child.Default().Memory
	}
	if o.Time == 0 {
		o.Time = lasts
	}
	j := &Jobs{opts: o}
	j.ctx, j.end = context.WithCancel(context.Background())
	return j
}

// Close ends the jobs that run and waits for their processes.
func (j *Jobs) Close() {
	j.mu.Lock()
	j.end() // nobody takes a place from here on
	j.mu.Unlock()
	j.done.Wait()
}

// Start begins a simulation for somebody. The error is a *scenario.Bad or a
// *scenario.Busy.
func (j *Jobs) Start(who string, in *scenario.Input, c scenario.Change) (scenario.Job, error) {
	if err := c.Check(in.Providers()); err != nil {
		return scenario.Job{}, &scenario.Bad{Text: err.Error()}
	}
	ctx, k, err := j.take(who, c)
	if err != nil {
		return scenario.Job{}, err
	}
	begun := false
	defer func() {
		if !begun { // an error, or a panic
			j.drop(k)
		}
	}()
	text, of, err := prepare(in, c)
	if err != nil {
		return scenario.Job{}, err
	}
	j.mu.Lock()
	k.state.Ledger, k.state.From, k.state.To, k.state.Rows, k.state.Left = of.Ledger, of.From, of.To, of.Rows, of.Left
	state := k.state
	j.mu.Unlock()
	begun = true
	j.opts.Log.Info("a simulation of the dashboard begins", "who", who, "change", state.Words, "days", c.Days, "id", state.ID)
	go func() {
		defer j.done.Done()
		defer k.cancel()
		j.run(ctx, k, text)
	}()
	return state, nil
}

// take notes a job as running before the work of making its request, which takes as much
// memory as the fleet is large: however many ask at once, no more than Most make one. drop,
// or the end of its goroutine, gives the place back.
func (j *Jobs) take(who string, c scenario.Change) (context.Context, *job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.busy(who); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(j.ctx, j.opts.Time)
	k := &job{who: who, cancel: cancel, state: scenario.Job{
		ID: scenario.IDOf(j.opts.Replica, rand.Text()), State: scenario.Running, Change: c, Words: c.Words(), Started: v1alpha1.TimeOf(j.opts.Now()),
	}}
	j.list = append(j.list, k)
	j.forget(who)
	j.done.Add(1)
	return ctx, k, nil
}

// drop removes a job that did not begin.
func (j *Jobs) drop(k *job) {
	k.cancel()
	j.mu.Lock()
	j.list = slices.DeleteFunc(j.list, func(o *job) bool { return o == k })
	j.mu.Unlock()
	j.done.Done()
}

// busy is why somebody cannot begin a simulation now. The caller holds mu.
func (j *Jobs) busy(who string) error {
	if j.ctx.Err() != nil {
		return &scenario.Busy{Text: "the daemon stops"}
	}
	running := 0
	for _, k := range j.list {
		if k.state.State != scenario.Running {
			continue
		}
		if running++; k.who == who {
			return &scenario.Busy{Text: "a simulation of yours runs: wait for it, or cancel it"}
		}
	}
	if running >= Most {
		return &scenario.Busy{Text: "a simulation of another account runs, and one does at a time: try again in a few minutes"}
	}
	return nil
}

// forget drops what is too old, and the oldest of what is too much. The caller holds mu.
func (j *Jobs) forget(who string) {
	now := j.opts.Now()
	mine := 0
	for _, k := range j.list {
		if k.who == who {
			mine++
		}
	}
	all := len(j.list)
	j.list = slices.DeleteFunc(j.list, func(k *job) bool {
		if k.state.State == scenario.Running {
			return false
		}
		gone := now.Sub(k.state.Ended.Time) > Keep || all > keptAll || k.who == who && mine > kept
		if gone {
			all--
			if k.who == who {
				mine--
			}
		}
		return gone
	})
}

// prepare makes the child's request of the fleet as it is and as it would be.
func prepare(in *scenario.Input, c scenario.Change) (text []byte, state scenario.Job, err error) {
	rows, from, left := past(in, c.Days)
	if len(rows) == 0 {
		return nil, state, &scenario.Bad{Text: fmt.Sprintf("days: no intent held or waited for anything in the last %d days, so that there is no demand to replay", c.Days)}
	}
	q := request{Policy: in.Policy, Tenants: in.Tenants, Start: from, Until: int64(in.Now.Sub(from.Time) / time.Second)}
	q.Runs[0].Flavors, q.Runs[0].Clusters = offered(in, &scenario.Change{})
	q.Runs[1].Flavors, q.Runs[1].Clusters = offered(in, &c)
	for i := range q.Runs {
		if len(q.Runs[i].Flavors) == 0 {
			return nil, state, &scenario.Bad{Text: "without: nothing that could be sold is left"}
		}
	}
	q.Runs[0].Demand, q.Runs[1].Demand, q.Runs[1].Unlimited = rows, grown(rows, scenario.Times(c.Growth)), c.Unlimited
	if n := len(q.Runs[1].Demand); n > 2*maxRows {
		return nil, state, &scenario.Bad{Text: fmt.Sprintf("growth: %d intents would be simulated, and %d are the most: replay fewer days", n, 2*maxRows)}
	}
	state.Ledger, state.From, state.To, state.Rows, state.Left = in.Commit, from, in.Now, len(rows), left
	if text, err = json.Marshal(q); err != nil {
		return nil, state, fmt.Errorf("write the simulation's request: %w", err)
	}
	if len(text) > maxText {
		return nil, state, &scenario.Bad{Text: fmt.Sprintf("days: the fleet and its demand come to %d MiB, and a simulation takes %d: replay fewer days, or use the command simulate on tables", len(text)>>20, maxText>>20)}
	}
	return text, state, nil
}

// run has the child simulate and keeps what came of it.
func (j *Jobs) run(ctx context.Context, k *job, text []byte) {
	parent := &child.Parent{Name: childName}
	defer parent.Close()
	answer, err := parent.Follow(ctx, text, child.Bounds{Memory: j.opts.Memory, CPU: cpu}, func(news []byte) {
		percent, err := strconv.Atoi(string(news))
		if err != nil {
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		k.state.Progress = min(max(percent, k.state.Progress), 100)
	})
	var out [2]*scenario.Figures
	if err == nil {
		if err = json.Unmarshal(answer, &out); err == nil && (out[0] == nil || out[1] == nil) {
			err = errors.New("the answer has no figures")
		}
	}
	j.mu.Lock()
	state := &k.state
	state.Ended = v1alpha1.TimeOf(j.opts.Now())
	switch {
	case err == nil:
		state.State, state.Progress, state.AsIs, state.Changed = scenario.Done, 100, out[0], out[1]
	case errors.Is(err, context.DeadlineExceeded):
		state.State, state.Error = scenario.Failed, fmt.Sprintf("it took more than %s: replay fewer days, or take less growth", j.opts.Time)
	case errors.Is(err, context.Canceled):
		state.State = scenario.Cancelled
	default:
		state.State, state.Error = scenario.Failed, err.Error()
		j.opts.Log.Warn("a simulation of the dashboard failed", "who", k.who, "id", state.ID, "change", state.Words, "error", err)
	}
	j.mu.Unlock()
	if j.opts.Changed != nil {
		j.opts.Changed()
	}
}

// Of are somebody's jobs, the newest first.
func (j *Jobs) Of(who string) []scenario.Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget("")
	out := []scenario.Job{}
	for _, k := range slices.Backward(j.list) {
		if k.who == who {
			out = append(out, k.state)
		}
	}
	return out
}

// Job is one of somebody's; false where there is none of that ID.
func (j *Jobs) Job(who, id string) (scenario.Job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget("")
	for _, k := range j.list {
		if k.who == who && k.state.ID == id {
			return k.state, true
		}
	}
	return scenario.Job{}, false
}

// Cancel ends one of somebody's jobs, if it runs; false where there is none of that ID.
func (j *Jobs) Cancel(who, id string) bool {
	j.mu.Lock()
	i := slices.IndexFunc(j.list, func(k *job) bool { return k.who == who && k.state.ID == id })
	if i < 0 {
		j.mu.Unlock()
		return false
	}
	k := j.list[i]
	runs, words := k.state.State == scenario.Running, k.state.Words
	k.cancel()
	j.mu.Unlock()
	if runs {
		j.opts.Log.Info("a simulation of the dashboard is cancelled", "who", who, "change", words, "id", id)
	}
	return true
}
