package match

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/keys"
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
		key: func(b *keys.Buffer, in *model.Intent) {
			for _, k := range slices.Sorted(maps.Keys(in.Metadata.Annotations)) {
				b.Text(k, in.Metadata.Annotations[k])
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
		key:      func(b *keys.Buffer, in *model.Intent) { b.Text(in.Metadata.Annotations["unused"]) },
		readsUse: true,
	}
)

// MakeUpRequirements adds the examples for the length of a test.
func MakeUpRequirements(t *testing.T) {
	real := requirements
	requirements = append(slices.Clone(real), byWeekday, unused)
	t.Cleanup(func() { requirements = real })
}

// Check holds each class against what every offer alone yields, and returns how many it
// asked and what differed.
func (m *Matcher) Check() (checked int, err error) {
	for _, s := range m.classes {
		if !s.listed {
			m.Refresh(s)
		}
		for i, o := range m.inventory.Offers() {
			lacks, at := s.table.FactOf(int32(i)), s.table.At[i] //nolint:gosec // their number
			if want := m.FailsFact(s.Request, o); lacks != want {
				return checked, fmt.Errorf("%s lacks %q for %s, and its class says %q", o.Ref, want, s.Request.Intent.Metadata.Name, lacks)
			}
			checked++
			if at < 0 {
				continue
			}
			want := m.Priced(s.Request, o, s.Request.Size(o))
			if c := &s.Candidates[at]; c.Offer != o || !c.Size.Equal(want.Size) || c.Quote != want.Quote || c.Vague != (m.TariffOf(o).unpriced || m.transferUnknown(s.Request, o)) {
				return checked, fmt.Errorf("%s costs %s %+v, and its class says %+v", s.Request.Intent.Metadata.Name, o.Ref, want.Quote, c.Quote)
			}
		}
	}
	return checked, nil
}

// Reported takes over what the i-th offer that was handed in reports now.
func (m *Matcher) Reported(i int, next *model.Offer) {
	o := m.inventory.Handed(i)
	m.inventory.Describe(o, next, false)
	m.Describe(o)
	m.inventory.Measure()
}

// FactOf is the fact that an offer fails, by what its class has listed.
func (m *Matcher) FactOf(s *Class, ref string) string {
	for i := range s.Candidates {
		if s.Candidates[i].Offer.Ref == ref {
			return ""
		}
	}
	for _, o := range m.inventory.Offers() {
		if o.Ref == ref {
			return s.table.FactOf(int32(o.Index)) //nolint:gosec // their number
		}
	}
	return "no offer"
}

// Held is how many bytes lists take.
func (l *lists) Held() int64 { return l.held }
