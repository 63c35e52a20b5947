package sim

import (
	"math/rand/v2"
	"time"
)

// knobs are what a seed decides once for a run: the size of the fleet, how
// often things go wrong, and tunables bent away from their defaults.
type knobs struct {
	daemons, providers, consumers, tenants int
	oneBranch                              bool // inputs and ledger share a branch
	chaos                                  time.Duration

	statusInterval, grace, retention, poll, report time.Duration
	maxEnds                                        int // 0: the default

	remoteFaults float64 // of each remote operation
	crashes      float64 // of each push and each step of a delivery
	interlopers  float64 // somebody else moves between a plan and its push
	lostReports  float64
	denials      float64 // of each grant
	skew         time.Duration
	// lostForGood: one provider never comes back.
	lostForGood bool
	// growth: providers shrink, or use more themselves.
	growth bool
	// warm slices that the fleet keeps, 0 for none.
	warm int
	// consolidation of contracts: off, propose or apply.
	consolidation string
	// work is limits.work of the fleet, 0 for its default: so little that most
	// intents wait for their turn.
	work int
	// requests that the client of each consumer makes at most, 0 for none.
	requests int
}

func drawKnobs(r *rand.Rand) knobs {
	k := knobs{
		daemons: 1 + r.IntN(3), providers: 2 + r.IntN(4), consumers: 1 + r.IntN(2), tenants: 1 + r.IntN(3),
		oneBranch: r.IntN(2) == 0,
		chaos:     pick(r, 10*time.Minute, 20*time.Minute, 30*time.Minute),

		statusInterval: pick(r, time.Second, 5*time.Second, 30*time.Second),
		grace:          pick(r, 30*time.Second, 2*time.Minute, 5*time.Minute),
		retention:      pick(r, time.Minute, 10*time.Minute, 168*time.Hour),
		poll:           pick(r, 5*time.Second, 30*time.Second),
		report:         pick(r, 10*time.Second, 30*time.Second),

		remoteFaults: pick(r, 0, 0.02, 0.1),
		crashes:      pick(r, 0, 0.01, 0.05),
		interlopers:  pick(r, 0, 0.1, 0.3),
		lostReports:  pick(r, 0, 0.05, 0.3),
		denials:      pick(r, 0, 0, 0.2),
		skew:         pick(r, 0, 2*time.Second, 40*time.Second),
		lostForGood:  r.IntN(6) == 0,
		growth:       r.IntN(2) == 0,
	}
	if r.IntN(3) == 0 {
		k.warm = 1 + r.IntN(3)
	}
	k.consolidation = pick(r, "off", "off", "propose", "apply")
	k.requests = pick(r, 0, 0, 5)
	if r.IntN(2) == 0 {
		k.maxEnds = 1 + r.IntN(4)
	}
	return k
}

// narrow is limits.work by seed, so that it changes nothing of what is drawn.
func narrow(seed uint64) int {
	if seed%5 != 0 {
		return 0
	}
	return 1 + int(seed%3)*600
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// span is a random duration from lo up to hi.
func span(r *rand.Rand, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(r.Int64N(int64(hi-lo)+1))
}
