package match

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// Requirements that no intent can really state, as an example of how one is added: each
// is one entry, and nothing else knows of them. Their fields are annotations.
var (
	// byWeekday: the offer's label "tier" must have another value on each day, "on/" +
	// the day: the value.
	byWeekday = requirement{
		name: "test.weekday", words: "has another tier than is wanted on this weekday", later: true,
		asked: func(in *model.Intent) bool {
			for k := range in.Metadata.Annotations {
				if strings.HasPrefix(k, "on/") {
					return true
				}
			}
			return false
		},
		fails: func(m *Matcher, w *Request, o *inventory.Offer) bool {
			tier := w.Intent.Metadata.Annotations["on/"+m.facts.Now.UTC().Weekday().String()]
			return tier != "" && !Labelled(o, "tier", tier)
		},
		why: func(m *Matcher, _ *Request, o *inventory.Offer) string {
			return "its tier is " + o.Flavor.Spec.Labels["tier"] + " on " + m.facts.Now.UTC().Weekday().String()
		},
		key: func(b *keyBuffer, in *model.Intent) {
			for _, k := range slices.Sorted(maps.Keys(in.Metadata.Annotations)) {
				b.text(k, in.Metadata.Annotations[k])
			}
		},
		due: func(m *Matcher, _ *model.Intent) v1alpha1.Time {
			return v1alpha1.TimeOf(m.facts.Now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour))
		},
	}
	// unused: nothing else may use the offer.
	unused = requirement{
		name: "test.unused", words: "is in use", later: true,
		asked: func(in *model.Intent) bool { return in.Metadata.Annotations["unused"] != "" },
		fails: func(_ *Matcher, _ *Request, o *inventory.Offer) bool { return len(o.Flavor.Spec.Used) > 0 },
		why: func(_ *Matcher, _ *Request, o *inventory.Offer) string {
			return o.Flavor.Spec.Used[v1alpha1.CPU].Canonical(v1alpha1.CPU) + " of its cores are in use"
		},
		key:      func(b *keyBuffer, in *model.Intent) { b.text(in.Metadata.Annotations["unused"]) },
		readsUse: true,
	}
)

// MakeUpRequirements adds the examples for the length of a test.
func MakeUpRequirements(t *testing.T) {
	real := requirements
	requirements = append(slices.Clone(real), byWeekday, unused)
	t.Cleanup(func() { requirements = real })
}
