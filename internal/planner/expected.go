package planner

import (
	"crypto/sha256"
	"fmt"
	"math"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/ledger/forecast"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Warm pools that follow a forecast. Once an hour a pool asks the ledger's
// history how many contracts that it could serve will stand at once (package
// forecast), in the hour that runs and those ahead of it:
//
//	slices = peak + margin × mean error − contracts that stand
//
// rounded up, between the pool's count and its max. A slice that is claimed is
// one of those expected, so the pool does not replace it beyond its count.
//
// What was expected is written into the pool's state with the ledger and holds
// for its hour: all rounds of the hour want the same, whatever they decide
// themselves, and history says what a slice was kept ready for. The last hour's
// end is an instant at which planning decides anew.

const defaultAhead = time.Hour

// sizing is how many slices a pool wants. nil is a pool of a fixed count.
type sizing struct {
	least, most int32
	// margin of the error, in millionths.
	margin int64
	made   *v1alpha1.Expectation
	// claims since it was made.
	claims int32
	// fixed is how many it wants while nothing may be decided, -1 otherwise.
	fixed int32
}

// size finds out how many slices a pool wants now.
func (r *round) size(j *job) {
	p := r.poolOf(j.name)
	if p == nil || p.Forecast == nil {
		return
	}
	hour := r.now.Truncate(time.Hour)
	r.due(v1alpha1.TimeOf(hour.Add(time.Hour)))
	s := &sizing{least: p.Count, most: max(p.Max, p.Count), margin: 1_000_000, fixed: -1}
	if m := p.Forecast.Margin; m != nil {
		s.margin = m.Micro()
	}
	j.sizing = s
	if j.state != nil {
		s.made = j.state.Status.Expected
	}
	if r.w.Deaf {
		s.fixed = int32(len(byReplica(j.live))) //nolint:gosec // replicas are numbered in 32 bits
		return
	}
	if digest := expectationDigest(p); s.made == nil || s.made.Digest != digest || s.made.At.Before(hour) {
		s.made = r.expect(p, digest)
		return
	}
	keep := r.fleet.Retention.Ended.Duration
	if keep <= 0 {
		keep = ledger.DefaultRetention
	}
	for _, c := range j.all {
		at := c.Status.Since
		if ledger.Ended(c.Status.Phase) && c.Status.Reason == ledger.ReasonClaimed &&
			!at.Before(s.made.At.Time) && at.Add(keep).After(r.now.Time) {
			s.claims++
		}
	}
}

func aheadOf(p *v1alpha1.WarmPool) time.Duration {
	if p.Forecast.Ahead.Duration > 0 {
		return p.Forecast.Ahead.Duration
	}
	return defaultAhead
}

// expectationDigest changes with what is forecast.
func expectationDigest(p *v1alpha1.WarmPool) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Append(nil, warmDigest(p), aheadOf(p))))
}

// expect asks the history.
func (r *round) expect(p *v1alpha1.WarmPool, digest string) *v1alpha1.Expectation {
	out := &v1alpha1.Expectation{At: r.now, Digest: digest}
	g := p.Resources.GPU
	if g == nil || g.Count < 1 {
		return out // validation refuses it
	}
	wish := match.CardRequestOf(g)
	serves := func(c *v1alpha1.Contract) (bool, bool) {
		is := couldServe(p, wish, c)
		return is, is
	}
	for c := range r.w.Ledger.Contracts() {
		if c.Status.Phase.Charged() && couldServe(p, wish, c) {
			out.Held++
		}
	}
	h := forecast.Histories(r.w.Ledger, r.now, r.fleet.Retention.Ended.Duration, serves)[true]
	if h == nil {
		return out
	}
	f := forecast.Of(h.Held, h.From.Time, int(aheadOf(p)/time.Hour)+1)
	peak := 0.0
	for _, y := range f.Next {
		peak = max(peak, y)
	}
	// Hundredths: what is left of the arithmetic's last digits must not decide.
	contracts := func(gpus float64) v1alpha1.Decimal {
		return v1alpha1.DecimalFromMicro(int64(math.Round(100*gpus/float64(wish.Count))) * 10_000)
	}
	out.Peak, out.Error, out.Tested = contracts(peak), contracts(f.MAE), int32(min(f.Tested, math.MaxInt32)) //nolint:gosec // bounded
	return out
}

// couldServe reports whether a contract is one that a pool's slice could have
// served: on the same consumer, with as many of the same GPUs.
func couldServe(p *v1alpha1.WarmPool, want *match.CardRequest, c *v1alpha1.Contract) bool {
	g := c.Spec.GPUs
	if g == nil || c.Metadata.Namespace == v1alpha1.FleetTenant || c.Spec.Consumer != p.Consumer || g.Count != want.Count ||
		(g.UnitsPerGPU > 1) != (want.Profile != "" || want.Sharing != "" && want.Sharing != "none") {
		return false
	}
	if m := g.Memory.Int64(); m < want.Memory.Min.Int64() || !want.Memory.Max.IsZero() && m > want.Memory.Max.Int64() {
		return false
	}
	for _, model := range want.Models {
		if gpunames.Match(model, g.Model) {
			return true
		}
	}
	return len(want.Models) == 0
}

// wanted is how many slices a pool wants; fixed is its count where it follows
// no forecast.
func (s *sizing) wanted(fixed int32) int32 {
	switch {
	case s == nil:
		return fixed
	case s.fixed >= 0:
		return s.fixed
	case s.made == nil || s.made.Tested == 0:
		return s.least
	}
	return min(max(s.ready()-s.claims, s.least), s.most)
}

// ready is how many slices the forecast wants beside what stood.
func (s *sizing) ready() int32 {
	micro := s.made.Peak.Micro() + quantity.Wide{}.AddProduct(s.made.Error.Micro(), s.margin, 1).Quo(1_000_000)
	return int32(min(max((micro+999_999)/1_000_000-int64(s.made.Held), 0), math.MaxInt32)) //nolint:gosec // bounded
}

// claimed counts n more slices as taken.
func (s *sizing) claimed(n int32) {
	if s != nil {
		s.claims += n
	}
}

// expected is what the ledger remembers of it.
func (s *sizing) expected() *v1alpha1.Expectation {
	if s == nil {
		return nil
	}
	return s.made
}

// text says what a pool is sized by.
func (s *sizing) text() string {
	if s == nil || s.made == nil {
		return ""
	}
	if s.made.Tested == 0 {
		return fmt.Sprintf("sized by its count of %d: a forecast needs more than a day of such contracts", s.least)
	}
	out := fmt.Sprintf("sized by forecast at %s: at most %s such contracts at once, give or take %s, of which %d stood",
		stamp(s.made.At), s.made.Peak, s.made.Error, s.made.Held)
	if s.claims > 0 {
		out += fmt.Sprintf("; %d claimed since", s.claims)
	}
	return fmt.Sprintf("%s; %d ready, of %d to %d", out, s.wanted(0), s.least, s.most)
}

// lacks reports whether a pool wants more slices than it has or is about to
// make.
func (j *job) lacks() bool {
	have := map[int32]bool{}
	for _, c := range j.live {
		have[c.Spec.Intent.Replica] = true
	}
	for _, t := range j.tasks {
		have[t.replica] = true
	}
	return len(have) < int(j.replicas())
}
