// Package alternatives finds alternatives of an intent that ask for what was tried before
// them, so that they can never be taken.
//
// Package fleet calls it when it checks an intent; pure, safe for concurrent use.
package alternatives

import (
	"fmt"
	"reflect"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Repeat is an alternative that repeats an earlier request.
type Repeat struct {
	// At is its index in spec.alternatives.
	At int
	// Of is the path of what it repeats.
	Of string
}

// Repeated are the alternatives that ask for what resources or an earlier alternative asks
// for; those that are empty do.
func Repeated(s *v1alpha1.IntentSpec) (out []Repeat) {
	whole := s.Resources
	if s.PerPod != nil {
		whole.PerPod = s.PerPod
	}
	tried := []v1alpha1.ResourceRequest{plain(whole)}
	for i, alt := range s.Alternatives {
		asks := plain(alt.Over(whole))
		for k := range tried {
			if reflect.DeepEqual(asks, tried[k]) {
				of := "spec.resources"
				if k > 0 {
					of = fmt.Sprintf("spec.alternatives[%d]", k-1)
				}
				out = append(out, Repeat{i, of})
				break
			}
		}
		tried = append(tried, asks)
	}
	return out
}

// plain writes out what is the same as nothing: one card is what a gpu without a count is.
func plain(r v1alpha1.ResourceRequest) v1alpha1.ResourceRequest {
	if g := r.GPU; g != nil && g.Count == 0 && g.Share == nil {
		one := *g
		one.Count = 1
		r.GPU = &one
	}
	if len(r.Named) == 0 {
		r.Named = nil
	}
	return r
}
