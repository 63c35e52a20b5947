package settle

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// GivenUp reports which contracts of an intent end because its file asks for less, as far as
// that is decided by what it holds alone: all of one that is suspended or only finds, and the
// replicas beyond the number that is asked for; and bookings that it wants no more, or others
// in place of.
func GivenUp(r *Settler, in *model.Intent) func(*v1alpha1.Contract) bool {
	none := func(*v1alpha1.Contract) bool { return false }
	if in == nil || r.W.Ledger.State(in.Metadata.Namespace, in.Metadata.Name) == nil {
		return none
	}
	j := r.NewJob(in, in.Metadata.Namespace, in.Metadata.Name)
	if _, frozen := r.isFrozen(j); frozen || j.Warm() {
		return none
	}
	if in.Spec.Suspend {
		return func(*v1alpha1.Contract) bool { return true }
	}
	if _, unfit := r.Unfit(j); unfit != "" {
		return none
	}
	if j.Finding() {
		return func(*v1alpha1.Contract) bool { return true }
	}
	for _, c := range j.All {
		if c.Status.Phase.Charged() {
			j.Live = append(j.Live, c)
		}
	}
	n := j.Replicas()
	if j.Follows() {
		n = max(in.Spec.Replicas.Max, 1)
	}
	surplus := r.surplusOf(j, int(n))
	return func(c *v1alpha1.Contract) bool {
		if c.Status.Phase == v1alpha1.PhaseBooked {
			return r.By(draft.RulesAgainAll) && booksOther(r, j, c)
		}
		return surplus[c.Spec.Intent.Replica] && c.Status.Phase.Charged()
	}
}

// booksOther reports whether an intent books no more, or something else than a booking of its.
func booksOther(r *Settler, j *draft.Job, c *v1alpha1.Contract) bool {
	s, term := &j.In.Spec.Schedule, &c.Spec.Term
	if !s.Book || c.Spec.Intent.Digest == j.In.Digest {
		return !s.Book
	}
	end := v1alpha1.TimeOf(s.NotBefore.Add(s.Duration.Duration))
	return term.Start != s.NotBefore || term.End != end || c.Spec.Intent.Replica >= j.Replicas() || place.Rewritten(&r.Placer, j, c) == nil
}
