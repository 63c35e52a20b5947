package handed

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/simulate/jobs"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
)

const (
	// most requests to other replicas are under way at a time; further ones wait their turn.
	most = 4
	// lasts bounds a request of one job, with its wait for a turn, and gathers that of a list.
	lasts   = 5 * time.Second
	gathers = 2 * time.Second
	// maxAnswer bounds an answer: twelve results of a fleet of thousands of flavors.
	maxAnswer = 8 << 20
)

// Peers are the other replicas; *daemon.Peers is one.
type Peers interface {
	// Name of this replica, "" where there are no others.
	Name() string
	// Others are those that answer, as far as is known.
	Others() []string
	// Lost reports whether no replica of that name lives.
	Lost(replica string) bool
	// Ask has another replica answer a request at a path, in at most so many bytes. A
	// *wire.Refusal is its own word.
	Ask(ctx context.Context, replica, path string, in, out any, most int64) error
}

// Planner runs simulations here and knows those of the other replicas. It is the
// dashboard's Capacity.
type Planner struct {
	*jobs.Jobs

	peers Peers
	given func(who, token string) bool
	turns chan struct{}
}

// New makes one of this replica's jobs. peers is nil for a daemon that is alone; given
// reports whether a page of this replica gave somebody a token.
func New(own *jobs.Jobs, peers Peers, given func(who, token string) bool) *Planner {
	return &Planner{Jobs: own, peers: peers, given: given, turns: make(chan struct{}, most)}
}

// Of are somebody's jobs on all replicas, the newest first, and the replicas that live and
// did not say theirs.
func (p *Planner) Of(ctx context.Context, who string) (all []scenario.Job, silent []string) {
	all = p.Jobs.Of(who)
	if p.alone() {
		return all, nil
	}
	ctx, cancel := context.WithTimeout(ctx, gathers)
	defer cancel()
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, replica := range p.peers.Others() {
		asked.Go(func() {
			out, err := p.ask(ctx, replica, question{Do: doList, Who: who})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silent = append(silent, replica)
				return
			}
			all = append(all, out.Jobs...)
		})
	}
	asked.Wait()
	slices.Sort(silent)
	slices.SortStableFunc(all, func(a, b scenario.Job) int { return b.Started.Compare(a.Started.Time) })
	return all, silent
}

// Job is one of somebody's. The error is scenario.ErrNone or a *scenario.Away.
func (p *Planner) Job(ctx context.Context, who, id string) (scenario.Job, error) {
	replica, away, err := p.of(id)
	if err != nil {
		return scenario.Job{}, err
	}
	if !away {
		return own(p.Jobs.Job(who, id))
	}
	out, err := p.askOf(ctx, replica, question{Do: doShow, Who: who, ID: id})
	if err != nil {
		return scenario.Job{}, err
	}
	if len(out.Jobs) != 1 || out.Jobs[0].ID != id {
		return scenario.Job{}, &scenario.Away{Replica: replica, Cause: errors.New("its answer is of another simulation")}
	}
	return out.Jobs[0], nil
}

func own(j scenario.Job, ok bool) (scenario.Job, error) {
	if !ok {
		return j, scenario.ErrNone
	}
	return j, nil
}

// Cancel ends one of somebody's, if it runs. The errors are those of Job.
func (p *Planner) Cancel(ctx context.Context, who, id string) error {
	replica, away, err := p.of(id)
	if err != nil {
		return err
	}
	if away {
		_, err := p.askOf(ctx, replica, question{Do: doCancel, Who: who, ID: id})
		return err
	}
	if !p.Jobs.Cancel(who, id) {
		return scenario.ErrNone
	}
	return nil
}

// Gave reports whether a page of another replica gave somebody a token. One that does not
// answer gave none.
func (p *Planner) Gave(ctx context.Context, replica, who, token string) bool {
	if p.alone() || replica == p.peers.Name() || p.peers.Lost(replica) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	out, err := p.ask(ctx, replica, question{Do: doToken, Who: who, Token: token})
	return err == nil && out.Given
}

// of is the replica that an ID names, and whether that is another one.
func (p *Planner) of(id string) (replica string, away bool, err error) {
	replica, ok := scenario.ReplicaOf(id)
	if !ok {
		return "", false, scenario.ErrNone
	}
	return replica, replica != "" && !p.alone() && replica != p.peers.Name(), nil
}

func (p *Planner) alone() bool { return p.peers == nil || p.peers.Name() == "" }

// askOf asks for one job of a replica.
func (p *Planner) askOf(ctx context.Context, replica string, q question) (reply, error) {
	if p.peers.Lost(replica) {
		return reply{}, &scenario.Away{Replica: replica, Lost: true}
	}
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	out, err := p.ask(ctx, replica, q)
	var refusal *wire.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Status == http.StatusNotFound && refusal.Body.Reason == reasonNone:
		return out, scenario.ErrNone
	case err != nil:
		return out, &scenario.Away{Replica: replica, Cause: err}
	}
	return out, nil
}

// ask asks once it is its turn.
func (p *Planner) ask(ctx context.Context, replica string, q question) (out reply, err error) {
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-ctx.Done():
		return out, ctx.Err() //nolint:wrapcheck // wrapped by who asked
	}
	return out, p.peers.Ask(ctx, replica, wire.HandedSimulationsPath, q, &out, maxAnswer) //nolint:wrapcheck // as above
}
