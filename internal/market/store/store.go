package store

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Store takes agents' reports and tells a market.
type Store interface {
	// Report returns once every replica will have what the report says. The errors
	// are market.ErrUnknownBase, *market.StaleEpochError, *BusyError, *CutError,
	// *RefusedError, or a mistake in the report, which then leaves everything as it was.
	Report(ctx context.Context, r Report) error
	// Observe makes every replica know what the agent of a cluster sees of the
	// manifests that it applies. The errors are *market.StaleEpochError where a newer word
	// is known, *BusyError, *CutError, *RefusedError, or a mistake in it.
	Observe(ctx context.Context, cluster string, report wire.Observed) error
	// Prune forgets each cluster that is not known and has not been for ten minutes, and if
	// this replica decides deletes what is kept of it. It is called about once a minute while
	// it is certain what is known. An error is tried again.
	Prune(ctx context.Context, decides bool, known func(cluster string) bool) error
	// Run keeps the market in step with the store until the context ends.
	Run(ctx context.Context) error
	// Status is how the store does.
	Status() Status
}

// Report is what an agent says once.
type Report struct {
	// Cluster it is of.
	Cluster string
	// Generation of its list.
	Generation wire.Generation
	// Content is the list; nil says that the one of the generation still holds.
	Content *wire.FlavorReport
	// Certificate that it came with, its serial number in hexadecimal; "" where it is not known.
	Certificate string
}

// Status is how a store does.
type Status struct {
	// Shared: replicas share it.
	Shared bool
	// Cut is why nobody can be heard, "" when agents can.
	Cut string
	// Since when.
	Since time.Time
	// Replicas that live, this one included, by name; of a store that is not shared this one alone.
	Replicas []string
	// Refused are the objects, as "<kind> <name>", whose last write the store refused,
	// with why.
	Refused map[string]*RefusedError
	// Foreign is how many writes by another account than the daemon's were seen and ignored.
	Foreign int
}

// BusyError refuses a report for now: a budget of the store, of writes or of bytes, is
// spent, and what the store has of the provider stays (429).
type BusyError struct {
	// Because says which budget.
	Because string
	// After is when to come again, with the newest list.
	After time.Duration
}

// Error says why.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%s; send the newest list again in %s", e.Because, e.After.Round(time.Second))
}

// Reason says why without for how long, which is another time each time.
func (e *BusyError) Reason() string { return e.Because }

// CutError refuses a report because the store cannot be reached, or nobody heard by it (503).
type CutError struct{ Cause string }

// Error says why.
func (e *CutError) Error() string { return "the market's store cannot be used: " + e.Cause }

// Memory is the store of one daemon: its market.
type Memory struct {
	Market *market.Market
	// Replica is this daemon's name.
	Replica string
	// Decides reports whether this daemon decides, where several could have been
	// started: the others hear nobody. Nil: it does.
	Decides func() bool
}

// errOthers is why a daemon that does not decide hears nobody.
const errOthers = "it lies in the memory of the replica that decides, and this is another one: install the definitions of market.fleetbroker.io, or run one replica"

// Report implements Store.
func (m *Memory) Report(_ context.Context, r Report) error {
	if m.Decides != nil && !m.Decides() {
		return &CutError{errOthers}
	}
	return tell(m.Market, r, 0)
}

// Observe implements Store: there is nobody else to know it, and the last word counts
// whatever its generation.
func (m *Memory) Observe(context.Context, string, wire.Observed) error { return nil }

// Prune implements Store.
func (m *Memory) Prune(_ context.Context, _ bool, known func(cluster string) bool) error {
	m.Market.Prune(known)
	return nil
}

// Run implements Store: there is nothing to do.
func (m *Memory) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Status implements Store.
func (m *Memory) Status() Status {
	out := Status{Replicas: []string{m.Replica}}
	if m.Decides != nil && !m.Decides() {
		out.Cut = errOthers
	}
	return out
}

// tell makes a market hear a report that was given at most so long ago.
func tell(m *market.Market, r Report, late time.Duration) error {
	if r.Content == nil {
		return m.Told(r.Cluster, r.Generation, nil, false, late)
	}
	if err := market.CheckDemand(r.Content.Demand); err != nil {
		return fmt.Errorf("report of %s: %w", r.Cluster, err)
	}
	if err := m.Told(r.Cluster, r.Generation, r.Content.Flavors, true, late); err != nil {
		return err
	}
	m.SetHonoured(r.Cluster, r.Content.Honoured)
	return m.SetDemand(r.Cluster, r.Content.Demand)
}
