package layout_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Of a gang in two providers, one of which is being emptied, an edit places again what lies in the
// other one, where there is no room for all: what is to leave is not the rest of it. By rules 23
// the plan's check refused that in each round.
func TestNodes_AnEditOfAGangThatIsLeaving(t *testing.T) {
	for rules, want := range map[int]string{23: lifecycle.CodeInvariant, 0: lifecycle.CodeDrain} {
		s := &story{Builder: New().Consumer("rome").Tenant("speech", "rome"), nodes: map[string][]node{}, changed: map[string]bool{}}
		s.providers = []string{"paris", "lyon"}
		s.Provider(s.providers...)
		s.nodes["paris"] = []node{{2, "a", false}, {7, "a", false}}
		s.nodes["lyon"] = []node{{2, "a", false}, {2, "a", false}, {7, "a", false}, {7, "a", false}}
		s.reports("paris", Costs("1"))
		s.reports("lyon", Costs("2"))
		ask := func(gpus int32, single bool, gang *bool) {
			s.Intent("speech/i0", Wants(gpus), Times(2), With(func(in *v1alpha1.IntentSpec) {
				in.PerPod, in.Gang = nil, gang
				if single {
					in.PerPod = &v1alpha1.PodRequest{GPUs: 1}
				}
			}))
			s.Round()
		}
		ask(4, false, Ptr(true))
		ask(8, true, nil)
		s.reports("paris", Spec(func(f *v1alpha1.FlavorSpec) { f.Drain = v1alpha1.TimeOf(s.W.Now.Add(time.Hour)) }))
		s.Round()
		s.W.Rules = rules
		s.Intent("speech/i0", Wants(2), Times(2), With(func(in *v1alpha1.IntentSpec) {
			in.PerPod, in.Gang = &v1alpha1.PodRequest{GPUs: 1}, Ptr(true)
		}))
		p := s.Round()
		if d := Of(p, "speech/i0"); d.Code != want {
			t.Errorf("rules %d: %s %s %q, want %s", rules, d.Action, d.Code, d.Reason, want)
		}
	}
}
