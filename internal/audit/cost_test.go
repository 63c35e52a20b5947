package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// What charges add up to over the whole history is what the ledger says, to the
// last digit, retired contracts and price changes included; and a period cut in
// two adds up too, but for a millionth a cut.
func TestChargesAddUpToTheLedger(t *testing.T) {
	s := lived(t, "ledger", nil, "")
	now := v1alpha1.TimeOf(s.At)
	books := ledger.Books{Zone: time.UTC, Currency: "EUR"}
	sum := func(when audit.Period) (cost, list, forecast v1alpha1.Decimal) {
		t.Helper()
		when.Now = now
		err := audit.Charges(t.Context(), s.Remote.Objects(), s.options(), when, func(c audit.Charge) {
			if c.Forecast {
				forecast = forecast.Add(c.Cost.Amount)
				return
			}
			cost, list = cost.Add(c.Cost.Amount), list.Add(c.Cost.List)
			if c.Labels["app"] != c.Contract.Spec.Intent.Name { // of intents that are gone too
				t.Errorf("labels of %s are %v", c.Contract.Metadata.Name, c.Labels)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return cost, list, forecast
	}
	want := carried(s.Read(), books, now)["EUR"]
	cost, list, _ := sum(audit.Period{})
	if want.Amount.Sign() <= 0 || cost.Cmp(want.Amount) != 0 || list.Cmp(want.List) != 0 {
		t.Errorf("charges %s (list %s), the ledger says %s (list %s)", cost, list, want.Amount, want.List)
	}
	cut := v1alpha1.TimeOf(s.At.Add(-47 * time.Minute))
	a, _, _ := sum(audit.Period{Until: cut})
	b, _, _ := sum(audit.Period{From: cut})
	if off := a.Add(b).Sub(cost); off.Cmp(v1alpha1.DecimalFromMicro(10)) > 0 || off.Cmp(v1alpha1.DecimalFromMicro(-10)) < 0 || a.IsZero() || b.IsZero() {
		t.Errorf("%s before and %s after make %s", a, b, cost)
	}
	hour, _, forecast := sum(audit.Period{From: now, Until: v1alpha1.TimeOf(s.At.Add(time.Hour))})
	if !hour.IsZero() || forecast.String() != "17" { // 6 at 2.50 and 2 at 1.00
		t.Errorf("the next hour costs %s and will cost %s, want 0 and 17", hour, forecast)
	}
}

// What charges would have been on the dearest offer is told from what contracts
// record of it: nothing of one that was resized since.
func TestChargesOnTheDearestOffer(t *testing.T) {
	s := &fleet{story.New(t, "ledger", nil, ""), t}
	s.Push("Another provider", map[string]string{
		"clusters/milan.yaml":     "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: milan}\nspec: {roles: [provider]}\n",
		"flavors/milan/h100.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: h100, namespace: milan}\nspec:\n  capacity: {cpu: \"256\", memory: 2Ti, gpu: 16}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"7.50\"}}\n",
	})
	s.Ask("train", 4, "  objective: cost\n")
	s.Rest()
	if d := s.Contract("train").Decision.Dearest; d == nil || d.Flavor != "milan/h100" || d.Hourly.String() != "30" {
		t.Fatalf("the dearest is %+v", d)
	}
	s.At = s.At.Add(2 * time.Hour)
	now := v1alpha1.TimeOf(s.At)
	sum := func() (cost, dearest v1alpha1.Decimal, unknown int) {
		t.Helper()
		err := audit.Charges(t.Context(), s.Remote.Objects(), s.options(), audit.Period{Now: now}, func(c audit.Charge) {
			cost = cost.Add(c.Cost.Amount)
			if c.Dearest == nil {
				unknown++
				return
			}
			dearest = dearest.Add(*c.Dearest)
		})
		if err != nil {
			t.Fatal(err)
		}
		return cost, dearest, unknown
	}
	cost, dearest, unknown := sum()
	if unknown > 0 || cost.Sign() <= 0 || dearest.Sub(cost.MulInt(3)).Cmp(v1alpha1.DecimalFromMicro(10)) > 0 || cost.MulInt(3).Sub(dearest).Cmp(v1alpha1.DecimalFromMicro(10)) > 0 {
		t.Errorf("cost %s, on the dearest %s, %d unknown; want three times as much", cost, dearest, unknown)
	}
	s.Ask("train", 6, "  objective: cost\n")
	s.Rest()
	s.At = s.At.Add(time.Hour)
	now = v1alpha1.TimeOf(s.At)
	if _, _, unknown = sum(); unknown == 0 {
		t.Error("of a contract that was resized in place the dearest is still told")
	}
	if rep := s.verify(); len(rep.Violations) > 0 {
		t.Error(rep.Violations[0])
	}
}

func TestLogTellsWhoAskedAndWhy(t *testing.T) {
	s := lived(t, "ledger", nil, "")
	s.Ask("strict", 1, "  sla: {maxTimeToActive: 30s}\n")
	s.Rest()
	var got []string
	err := audit.Log(t.Context(), s.Remote.Objects(), s.options(), func(e audit.Event) error {
		got = append(got, e.What+" "+e.Intent)
		if e.AskedBy != "Ada L. <ada@example.org>" || e.Currency != "EUR" || e.Commit == "" || e.Provider != "paris" {
			t.Errorf("%+v", e)
		}
		if e.What == "sla" && !strings.Contains(e.Why, "not usable within 30s") {
			t.Errorf("the sla: %s", e.Why)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(got, ", ")
	for _, want := range []string{"Reserved train", "Active train", "resized train", "Releasing brief", "Released brief", "left brief", "sla strict"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
}

// A contract that was down for an hour of two breaks an availability of 99 %,
// and that is told once.
func TestLogTellsOfAvailability(t *testing.T) {
	s := lived(t, "ledger", nil, "")
	s.Push("Promise availability", map[string]string{"flavors/paris/sure.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: sure, namespace: paris}\nspec:\n  capacity: {cpu: \"256\", memory: 2Ti, gpu: 8}\n" +
		"  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"3.00\"}}\n  properties: {reliability: \"0.999\"}\n"})
	s.Ask("steady", 1, "  sla: {availability: \"99\"}\n")
	s.Rest()
	books := ledger.Books{Zone: time.UTC, Currency: "EUR"}
	for _, step := range []struct {
		to     v1alpha1.Phase
		reason string
	}{{v1alpha1.PhaseDegraded, ledger.DegradedNodeNotReady}, {v1alpha1.PhaseActive, ""}, {v1alpha1.PhaseDegraded, ledger.DegradedNodeNotReady}} {
		s.At = s.At.Add(time.Hour)
		was := s.Contract("steady")
		is, err := books.Transition(was, step.to, ledger.Reason{Code: step.reason}, v1alpha1.TimeOf(s.At))
		if err != nil {
			t.Fatal(err)
		}
		s.forge(forged{now: s.At, changes: changed(was, is)})
	}
	if rep := s.verify(); len(rep.Violations) > 0 {
		t.Fatal(rep.Violations)
	}
	var told []string
	if err := audit.Log(t.Context(), s.Remote.Objects(), s.options(), func(e audit.Event) error {
		if e.What == "sla" {
			told = append(told, e.Intent+": "+e.Why)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "steady: SLABroken: usable 50") || !strings.HasSuffix(told[0], "99 % was asked for") {
		t.Errorf("told: %q", told)
	}
}

// carried is what a ledger itself says that everything has cost until at, by
// currency: what charges over the whole history must add up to.
func carried(l *ledger.Ledger, b ledger.Books, at v1alpha1.Time) map[string]v1alpha1.MonthCost {
	out := map[string]v1alpha1.MonthCost{}
	add := func(currency string, amount, list v1alpha1.Decimal) {
		out[currency] = v1alpha1.MonthCost{Amount: out[currency].Amount.Add(amount), List: out[currency].List.Add(list)}
	}
	for c := range l.Contracts() {
		for _, m := range b.CostByMonth(c, at) {
			add(c.Spec.Price.Currency, m.Amount, m.List)
		}
	}
	for _, tenant := range l.Tenants() {
		for _, s := range l.Spends(tenant) {
			for i := range s.Entries {
				add(s.Entries[i].Currency, s.Entries[i].Amount, s.Entries[i].List)
			}
		}
	}
	return out
}
