package settle

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/ledger/forecast"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// Warm pools that follow a forecast. Once an hour a pool asks the ledger's
// history how many contracts that it could serve will exist at once (package
// forecast), in the hour that runs and those ahead of it:
//
//	slices = peak + margin × mean error − contracts that exist
//
// rounded up, between the pool's count and its max. A slice that is claimed is
// one of those expected, so the pool does not replace it beyond its count.
//
// What was expected is written into the pool's state with the ledger and holds
// for its hour: all rounds of the hour want the same, whatever they decide
// themselves, and history shows what a slice was kept ready for. The last hour's
// end is an instant at which planning decides again.

const (
	defaultAhead = time.Hour
	// WarmPath is where pools are written.
	WarmPath = "fleet.yaml"
)

// size finds out how many slices a pool wants now.
func (r *Settler) size(j *draft.Job) {
	p := r.PoolOf(j.Name)
	if p == nil || p.Forecast == nil {
		return
	}
	hour := r.Now.Truncate(time.Hour)
	r.Due(v1alpha1.TimeOf(hour.Add(time.Hour)))
	s := &draft.Sizing{Least: p.Count, Most: max(p.Max, p.Count), Margin: 1_000_000, Fixed: -1}
	if m := p.Forecast.Margin; m != nil {
		s.Margin = m.Micro()
	}
	j.Sizing = s
	if j.State != nil {
		s.Made = j.State.Status.Expected
	}
	if r.W.Deaf {
		s.Fixed = int32(len(draft.ByReplica(j.Live))) //nolint:gosec // replicas are numbered in 32 bits
		return
	}
	if digest := expectationDigest(p); s.Made == nil || s.Made.Digest != digest || s.Made.At.Before(hour) {
		s.Made = r.expect(p, digest)
		return
	}
	keep := ledger.Retention(r.Fleet.Retention.Ended.Duration)
	for _, c := range j.All {
		at := c.Status.Since
		if ledger.Ended(c.Status.Phase) && c.Status.Reason == ledger.ReasonClaimed &&
			!at.Before(s.Made.At.Time) && at.Add(keep).After(r.Now.Time) {
			s.Claims++
		}
	}
}

func aheadOf(p *v1alpha1.WarmPool) time.Duration {
	if p.Forecast.Ahead.Duration > 0 {
		return p.Forecast.Ahead.Duration
	}
	return defaultAhead
}

// WarmDigest is of what a pool's slices are; how many there are is not part of
// it, so that a change of the count changes none of them.
func WarmDigest(p *v1alpha1.WarmPool) string {
	b, err := json.Marshal(struct {
		Consumer  string
		Resources v1alpha1.ResourceRequest
	}{p.Consumer, p.Resources})
	if err != nil {
		b = []byte(p.Name)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(b))
}

// expectationDigest changes with what is forecast.
func expectationDigest(p *v1alpha1.WarmPool) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Append(nil, WarmDigest(p), aheadOf(p))))
}

// expect asks the history.
func (r *Settler) expect(p *v1alpha1.WarmPool, digest string) *v1alpha1.Expectation {
	out := &v1alpha1.Expectation{At: r.Now, Digest: digest}
	g := p.Resources.GPU
	if g == nil || g.Count < 1 {
		return out // validation refuses it
	}
	asked := match.CardRequestOf(g)
	serves := func(c *v1alpha1.Contract) (bool, bool) {
		is := couldServe(p, asked, c)
		return is, is
	}
	for c := range r.W.Ledger.Contracts() {
		if c.Status.Phase.Charged() && couldServe(p, asked, c) {
			out.Held++
		}
	}
	h := forecast.Histories(r.W.Ledger, r.Now, r.Fleet.Retention.Ended.Duration, serves)[true]
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
		return v1alpha1.DecimalFromMicro(int64(math.Round(100*gpus/float64(asked.Count))) * 10_000)
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
