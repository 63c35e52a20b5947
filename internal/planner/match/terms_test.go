package match_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// matcherOf compares with a world's offers, of which nothing is held.
func matcherOf(t interface {
	Helper()
	Fatal(...any)
}, w planner.World) *match.Matcher {
	t.Helper()
	books, err := ledger.BooksOf(w.Fleet)
	if err != nil {
		t.Fatal(err)
	}
	names := quantity.NewNames(match.ReqCapacity)
	blocked := func(o *inventory.Offer) string {
		switch {
		case o.State != model.Fresh:
			return match.ReqSilent
		case o.Flavor.Spec.Cordon:
			return match.ReqCordon
		}
		return ""
	}
	in := inventory.New(inventory.Facts{Names: names, Clusters: w.Clusters, Blocked: blocked}, w.Offers, w.Ledger.Contracts())
	return match.New(match.Facts{
		Names: names, Fleet: w.Fleet, Books: books, Now: w.Now, GrowthApart: true, Clusters: w.Clusters, Policies: w.Policies,
		Intents: func() []*model.Intent { return w.Intents },
	}, in)
}

// ask is what an intent asks for first.
func ask(in *model.Intent, money match.SpendLimits) *match.Ask {
	return &match.Ask{Intent: in, Consumer: "rome", Request: &in.Spec.Resources, Spending: match.Spending{Replicas: 1, Money: money}}
}

// Each weight that can be stated weighs one term, each term is weighed, and the offer
// that has more of it has the higher score, on record too: none counts 0 silently.
func TestTerms(t *testing.T) {
	b := New().Consumer("rome").Provider("good", "poor").
		Offer("good/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("1"), Spec(func(s *v1alpha1.FlavorSpec) {
			s.Properties = v1alpha1.FlavorProperties{LatencyMs: Ptr(int64(3)), Reliability: Money("0.999"), Carbon: Ptr(int64(50))}
		})).
		Offer("poor/t4", Cards("nvidia-t4", 1, "16Gi"), Capacity("cpu=8 memory=64Gi"), Costs("9"), Spec(func(s *v1alpha1.FlavorSpec) {
			s.Properties = v1alpha1.FlavorProperties{LatencyMs: Ptr(int64(90)), Reliability: Money("0.5"), Carbon: Ptr(int64(900))}
		}))
	fields := reflect.TypeFor[v1alpha1.Weights]()
	weighed := map[string]string{}
	for i := range fields.NumField() {
		field := fields.Field(i).Name
		b.Intent("ada/"+strings.ToLower(field), Wants(1), With(func(s *v1alpha1.IntentSpec) {
			s.Weights = &v1alpha1.Weights{}
			reflect.ValueOf(s.Weights).Elem().Field(i).SetFloat(0.5)
		}))
		m := matcherOf(t, b.W)
		s := m.Class(ask(b.W.Intents[i], match.NoSpendLimits()))
		m.Refresh(s)
		good, poor := &s.Candidates[0], &s.Candidates[1]
		record := s.Request.Weights.Record(good)
		if len(record) != 1 {
			t.Fatalf("weights.%s: the record is %v, want one term: is it in the table of terms?", field, record)
		}
		term := slices.Collect(maps.Keys(record))[0]
		if was := weighed[term]; was != "" {
			t.Errorf("weights.%s and weights.%s both weigh %s", was, field, term)
		}
		weighed[term] = field
		if !(good.Score > 0 && good.Score <= 1 && good.Score > poor.Score) || match.Round4(good.Score) != record[term] {
			t.Errorf("weights.%s: scores %v and %v, of %s %v: want the first higher, from 0 to 1, and the same on record", field, good.Score, poor.Score, term, record[term])
		}
	}
	if want := match.ScoreTerms(); len(weighed) != len(want) {
		t.Errorf("weights weigh %v, want each of %v", weighed, want)
	}
}
