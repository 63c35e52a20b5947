package lifecycle_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

const (
	reserved  = v1alpha1.PhaseReserved
	peering   = v1alpha1.PhasePeering
	active    = v1alpha1.PhaseActive
	degraded  = v1alpha1.PhaseDegraded
	releasing = v1alpha1.PhaseReleasing
)

var (
	noon  = v1alpha1.TimeOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	books = ledger.Books{Zone: time.UTC, Currency: "EUR"}
)

func after(d time.Duration) v1alpha1.Time { return v1alpha1.TimeOf(noon.Add(d)) }

// contract is one of 4 GPUs that went through phases, a minute each before noon, the
// last for a reason.
func contract(reason string, phases ...v1alpha1.Phase) *v1alpha1.Contract {
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: "c", Namespace: "vision"}}
	c.Spec = v1alpha1.ContractSpec{
		Consumer: "rome", Provider: "paris", Flavor: "h100", Slice: "c",
		Resources: v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.Quantity("4").Amount("nvidia.com/gpu")},
		Price:     v1alpha1.ContractPrice{Hourly: v1alpha1.MustDecimal("12"), List: v1alpha1.MustDecimal("12"), Currency: "EUR"},
		Term:      v1alpha1.Term{Start: after(-time.Hour)},
	}
	for i, p := range phases {
		at := after(time.Duration(i-len(phases)) * time.Minute)
		c.Status.Phase, c.Status.Since, c.Status.AccruedAt = p, at, at
		c.Status.History = append(c.Status.History, v1alpha1.PhaseChange{Phase: p, At: at})
	}
	c.Status.Reason = reason
	c.Status.History[len(c.Status.History)-1].Reason = reason
	if c.Status.Phase == releasing {
		c.Status.Target = v1alpha1.PhaseReleased
	}
	return c
}

func offer(state model.Freshness) *model.Offer {
	return &model.Offer{Flavor: &v1alpha1.Flavor{}, State: state, Since: after(-10 * time.Minute)}
}

// usable is all that a contract needs, as its consumer reports it.
func usable(c *v1alpha1.Contract, change func(*v1alpha1.ConsumerObservation)) v1alpha1.Observation {
	o := v1alpha1.ConsumerObservation{
		Reachable: true, Slice: v1alpha1.Present, VirtualNode: v1alpha1.Present, Node: v1alpha1.Present, NodeReady: true, Offloading: true,
		Granted: c.Spec.Resources, Allocatable: c.Spec.Resources,
	}
	if change != nil {
		change(&o)
	}
	return v1alpha1.Observation{Consumer: o}
}

func TestObserve(t *testing.T) {
	type view = lifecycle.View
	fresh := offer(model.Fresh)
	refusing := &model.Offer{Flavor: &v1alpha1.Flavor{Spec: v1alpha1.FlavorSpec{Refused: map[string]string{"c": "own work came first"}}}}
	for name, c := range map[string]struct {
		contract *v1alpha1.Contract
		sees     func(*v1alpha1.ConsumerObservation) // of what is usable; nil: nothing is observed
		view     view
		phase    v1alpha1.Phase
		why      string
	}{
		"nothing is observed":                          {contract("", reserved), nil, view{Offer: fresh}, reserved, ""},
		"all is there":                                 {contract("", reserved, peering), func(*v1alpha1.ConsumerObservation) {}, view{Offer: fresh}, active, ""},
		"no report from its provider":                  {contract("", reserved, active), nil, view{Offer: offer(model.Silent)}, degraded, "ProviderSilent"},
		"none for longer than its grace":               {contract("", reserved, active), nil, view{Offer: offer(model.Lost)}, degraded, "ProviderLost"},
		"none to a replica that has just started":      {contract("", reserved, active), nil, view{Offer: offer(model.Lost), Deaf: true}, active, ""},
		"its provider is known by a store":             {contract("", reserved, active), nil, view{Offer: offer(model.Elsewhere)}, active, ""},
		"withdrawn before its provider reports":        {contract("ProviderLost", active, degraded), nil, view{Offer: offer(model.Withdrawn), KeepsSilence: true}, degraded, "ProviderLost"},
		"known by a store before its provider reports": {contract("ProviderLost", active, degraded), nil, view{Offer: offer(model.Elsewhere), KeepsSilence: true}, degraded, "ProviderLost"},
		"withdrawn, by older rules":                    {contract("ProviderLost", active, degraded), nil, view{Offer: offer(model.Withdrawn)}, active, ""},
		"its provider refuses it":                      {contract("", reserved, active), nil, view{Offer: refusing}, degraded, "ProviderRefused"},
		"its provider accepts it again, without it":    {contract("ProviderRefused", active, degraded), func(*v1alpha1.ConsumerObservation) {}, view{Offer: fresh, Observed: v1alpha1.Observation{ProviderSeen: true}}, degraded, "NotHeld"},
		"its flavor is too small":                      {contract("", reserved, active), nil, view{Offer: fresh, Excess: true}, degraded, "FlavorShrunk"},
		"the flavor is large enough again":             {contract("FlavorShrunk", reserved, active, degraded), nil, view{Offer: fresh}, active, ""},
		"nobody knows the flavor yet":                  {contract("FlavorShrunk", reserved, active, degraded), nil, view{}, degraded, "FlavorShrunk"},
		"the slice is denied":                          {contract("", reserved), func(o *v1alpha1.ConsumerObservation) { o.SliceDenied = "no" }, view{Offer: fresh}, degraded, "SliceDenied"},
		"the slice is not answered":                    {contract("", reserved), func(o *v1alpha1.ConsumerObservation) { o.Granted = nil }, view{Offer: fresh}, peering, "GrantedLess"},
		"it cannot be applied":                         {contract("", reserved), func(o *v1alpha1.ConsumerObservation) { o.Slice, o.Message = v1alpha1.Absent, "forbidden" }, view{Offer: fresh}, reserved, "DeliveryFailed"},
		"a peer reaches its consumer":                  {contract("", reserved), func(o *v1alpha1.ConsumerObservation) { o.Reachable, o.Bystander, o.Message = false, true, "no route" }, view{Offer: fresh}, reserved, ""},
		"nobody reaches its consumer":                  {contract("", reserved), func(o *v1alpha1.ConsumerObservation) { o.Reachable, o.Message = false, "no route" }, view{Offer: fresh}, reserved, "ConsumerUnreachable"},
		"its Node was ready once":                      {contract("", reserved, active), func(o *v1alpha1.ConsumerObservation) { o.NodeReady = false }, view{Offer: fresh}, degraded, "NodeNotReady"},
		"pods that its provider does not take":         {contract("", reserved, active), func(o *v1alpha1.ConsumerObservation) { o.Offloading, o.OffloadingReason = false, "OffloadingBackOff" }, view{Offer: fresh}, degraded, "OffloadingBackOff"},
		"offloading is not ready":                      {contract("", reserved, active), func(o *v1alpha1.ConsumerObservation) { o.Offloading = false }, view{Offer: fresh}, degraded, "OffloadingNotReady"},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.view
			v.Now, v.Grace = noon, 5*time.Minute
			if c.sees != nil {
				v.Observed.Consumer = usable(c.contract, c.sees).Consumer
			}
			before := *c.contract
			got := lifecycle.Observe(c.contract, &v)
			if got.Phase != c.phase || got.Reason.Code != c.why {
				t.Errorf("got %s %+v, want %s %q", got.Phase, got.Reason, c.phase, c.why)
			}
			next, _ := got.Apply(books, c.contract, noon)
			if next.Status.Phase != c.phase || next.Status.Reason != c.why {
				t.Errorf("applied it is %s %q, want %s %q", next.Status.Phase, next.Status.Reason, c.phase, c.why)
			}
			if got.Moves(c.contract) != (next != c.contract) || !reflect.DeepEqual(before, *c.contract) {
				t.Errorf("moves %t, another version %t; it was %+v and is %+v", got.Moves(c.contract), next != c.contract, before, *c.contract)
			}
		})
	}
}

// A message alone is worth a version only where it is the newest trouble of a delivery,
// and a version that has no more than the status waits.
func TestTransition_Apply(t *testing.T) {
	waiting := contract(ledger.WaitsForDelivery, reserved)
	waiting.Status.Message = "after 30s"
	sick := contract(ledger.DegradedNodeNotReady, active, degraded)
	for name, c := range map[string]struct {
		contract                   *v1alpha1.Contract
		to                         lifecycle.Transition
		moves, rewords, statusOnly bool
	}{
		"the same":                {waiting, lifecycle.Transition{Phase: reserved, Reason: ledger.ReasonOf(waiting)}, false, false, false},
		"other numbers":           {waiting, lifecycle.Transition{Phase: reserved, Reason: ledger.Reason{Code: ledger.WaitsForDelivery, Message: "after 29s"}}, true, true, true},
		"another code":            {waiting, lifecycle.Transition{Phase: reserved, Reason: ledger.Reason{Code: ledger.WaitsForPeering}}, true, false, true},
		"another message, sick":   {sick, lifecycle.Transition{Phase: degraded, Reason: ledger.Reason{Code: ledger.DegradedNodeNotReady, Message: "new"}}, false, false, false},
		"another trouble":         {sick, lifecycle.Transition{Phase: degraded, Reason: ledger.Reason{Code: ledger.DegradedOffloading}}, true, false, true},
		"well again":              {sick, lifecycle.Transition{Phase: active}, true, false, true},
		"active at last":          {waiting, lifecycle.Transition{Phase: active}, true, false, false},
		"no step of the table":    {contract("", reserved, active), lifecycle.Transition{Phase: peering}, true, false, false},
		"a step back to the root": {contract("", active), lifecycle.Transition{Phase: reserved}, true, false, false},
	} {
		next, statusOnly := c.to.Apply(books, c.contract, noon)
		legal := ledger.Legal(c.contract.Status.Phase, c.to.Phase) || c.to.Phase == c.contract.Status.Phase
		if c.to.Moves(c.contract) != c.moves || c.to.Rewords(c.contract) != c.rewords || statusOnly != c.statusOnly || (next != c.contract) != (c.moves && legal) {
			t.Errorf("%s: got moves %t, rewords %t, status only %t, another version %t", name, c.to.Moves(c.contract), c.to.Rewords(c.contract), statusOnly, next != c.contract)
		}
	}
}

// What was resized a moment ago waits for its provider within the grace period.
func TestObserve_GrowingIsNoTrouble(t *testing.T) {
	c := contract("", reserved, active)
	c.Status.AccruedAt = after(-30 * time.Second)
	short := v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.Quantity("2").Amount("nvidia.com/gpu")}
	v := lifecycle.View{Now: noon, Grace: time.Minute, Offer: offer(model.Fresh), Observed: usable(c, func(o *v1alpha1.ConsumerObservation) { o.Granted = short })}
	if got := lifecycle.Observe(c, &v); got.Phase != active || got.Due != after(30*time.Second) {
		t.Errorf("within its grace got %+v, want Active and due in 30 s", got)
	}
	v.Now = after(30 * time.Second)
	if got := lifecycle.Observe(c, &v); got.Phase != degraded || got.Reason.Code != ledger.DegradedGrantedLess || !strings.HasPrefix(got.Reason.Message, "2 of 4 ") {
		t.Errorf("after it got %+v, want Degraded, GrantedLess: 2 of 4", got)
	}
}

// A contract that is released ends when it is seen gone on both sides, one step a
// second.
func TestProgress(t *testing.T) {
	gone := v1alpha1.ConsumerObservation{Slice: v1alpha1.Absent, VirtualNode: v1alpha1.Absent, Node: v1alpha1.Absent}
	drained := v1alpha1.ConsumerObservation{Slice: v1alpha1.Present, VirtualNode: v1alpha1.Absent, Node: v1alpha1.Absent}
	holding := &model.Offer{Flavor: &v1alpha1.Flavor{Spec: v1alpha1.FlavorSpec{Held: map[string]v1alpha1.Resources{"c": contract("", releasing).Spec.Resources}}}}
	static := &model.Offer{Flavor: &v1alpha1.Flavor{}, Static: true}
	for name, c := range map[string]struct {
		view    lifecycle.View
		stage   v1alpha1.Stage
		ends    v1alpha1.Phase // "": it does not
		drained bool
	}{
		"nothing is observed":          {lifecycle.View{Offer: static}, "", "", false},
		"drained":                      {lifecycle.View{Offer: static, Observed: v1alpha1.Observation{Consumer: drained}}, "", "", true},
		"gone, its provider unseen":    {lifecycle.View{Offer: offer(model.Fresh), Observed: v1alpha1.Observation{Consumer: gone}}, "", "", true},
		"gone, its provider holds it":  {lifecycle.View{Offer: holding, Observed: v1alpha1.Observation{Consumer: gone, ProviderSeen: true}}, "", "", true},
		"gone on both sides":           {lifecycle.View{Offer: offer(model.Fresh), Observed: v1alpha1.Observation{Consumer: gone, ProviderSeen: true}}, "", v1alpha1.PhaseReleased, false},
		"gone, without an agent":       {lifecycle.View{Offer: static, Observed: v1alpha1.Observation{Consumer: gone}}, "", v1alpha1.PhaseReleased, false},
		"never applied":                {lifecycle.View{Offer: offer(model.Fresh)}, v1alpha1.StageReserve, v1alpha1.PhaseReleased, false},
		"forced, nothing seen of it":   {lifecycle.View{Forced: ledger.Reason{Code: "Forced"}}, "", v1alpha1.PhaseFailed, false},
		"forced, gone in the meantime": {lifecycle.View{Offer: static, Observed: v1alpha1.Observation{Consumer: gone}, Forced: ledger.Reason{Code: "Forced"}}, "", v1alpha1.PhaseFailed, false},
	} {
		is := contract("IntentRemoved", active, releasing)
		is.Spec.Stage = c.stage
		v := c.view
		v.Now = noon
		next, due := lifecycle.Progress(books, is, &v)
		var ends v1alpha1.Phase
		if next != nil && next.Status.Phase != releasing {
			ends = next.Status.Phase
		}
		if marked := next != nil && ends == "" && next.Status.Drained == noon; ends != c.ends || marked != c.drained || !due.IsZero() {
			t.Errorf("%s: got end %q, drained %t, due %s; want %q, %t", name, ends, marked, due, c.ends, c.drained)
		}
		// A step of the same second waits for the next.
		is.Status.Since = noon
		if next, due = lifecycle.Progress(books, is, &v); next != nil || due.IsZero() != (c.ends == "" && !c.drained) {
			t.Errorf("%s, released at this instant: got %v, due %s", name, next, due)
		}
	}
}

func TestRelease(t *testing.T) {
	c := contract("", reserved, active)
	v := lifecycle.View{Now: noon}
	next, err := lifecycle.Release(books, c, v1alpha1.PhasePreempted, ledger.Reason{Code: "Preempted", Message: "by nlp/serve"}, &v)
	if err != nil || next.Status.Target != v1alpha1.PhasePreempted || next.Status.Why() != "Preempted: by nlp/serve" || !next.Status.Drained.IsZero() {
		t.Fatalf("got %+v, %v", next, err)
	}
	if code, at := lifecycle.Trouble(next); code != "Preempted" || at != noon {
		t.Errorf("its trouble is %q at %s", code, at)
	}
	if code, _ := lifecycle.Trouble(c); code != "" {
		t.Errorf("an active one has the trouble %q", code)
	}
	c.Spec.Stage = v1alpha1.StageReserve
	if next, err = lifecycle.Release(books, c, v1alpha1.PhaseReleased, ledger.Reason{Code: "IntentRemoved"}, &v); err != nil || next.Status.Drained != noon {
		t.Errorf("never applied: got %+v, %v", next, err)
	}
	if _, err = lifecycle.Release(books, c, active, ledger.Reason{}, &v); err == nil {
		t.Error("Active is an end")
	}
}

func TestInterrupt(t *testing.T) {
	told := contract("", reserved, active)
	told.Status.Displaced = &v1alpha1.Displacement{Cause: v1alpha1.Interrupted, Leaves: after(time.Hour)}
	preempted := contract("", reserved, active)
	preempted.Status.Displaced = &v1alpha1.Displacement{Cause: v1alpha1.Preempted, By: "nlp/serve"}
	for name, c := range map[string]struct {
		contract *v1alpha1.Contract
		is       bool
		leaves   v1alpha1.Time // of the new version's notice
		changes  bool
	}{
		"taken back":             {contract("", reserved, active), true, after(time.Minute), true},
		"taken back already":     {told, true, v1alpha1.Time{}, false},
		"sold again":             {told, false, v1alpha1.Time{}, true},
		"never taken back":       {contract("", reserved, active), false, v1alpha1.Time{}, false},
		"gives way already":      {preempted, true, v1alpha1.Time{}, false},
		"gives way to an intent": {preempted, false, v1alpha1.Time{}, false},
	} {
		next := lifecycle.Interrupt(c.contract, c.is, noon, time.Minute)
		var leaves v1alpha1.Time
		if next != nil && next.Status.Displaced != nil {
			leaves = next.Status.Displaced.Leaves
		}
		if (next != nil) != c.changes || leaves != c.leaves {
			t.Errorf("%s: got %+v, want a change: %t, leaves %s", name, next, c.changes, c.leaves)
		}
	}
}

func TestLate(t *testing.T) {
	reached := v1alpha1.Observation{Consumer: v1alpha1.ConsumerObservation{Reachable: true}}
	for name, c := range map[string]struct {
		contract *v1alpha1.Contract
		limit    time.Duration
		seen     v1alpha1.Observation
		late     bool
		due      v1alpha1.Time
	}{
		"in time":         {contract("", reserved), 2 * time.Hour, reached, false, after(time.Hour)},
		"too late":        {contract("", reserved, peering), time.Hour, reached, true, noon},
		"usable":          {contract("", reserved, active), time.Hour, reached, false, v1alpha1.Time{}},
		"without a limit": {contract("", reserved), 0, reached, false, v1alpha1.Time{}},
		"nobody answers":  {contract("", reserved), time.Hour, v1alpha1.Observation{}, false, v1alpha1.Time{}},
	} {
		late, due := lifecycle.Late(c.contract, c.limit, &lifecycle.View{Now: noon, Observed: c.seen})
		if late != c.late || due != c.due {
			t.Errorf("%s: got %t, due %s; want %t, due %s", name, late, due, c.late, c.due)
		}
	}
}

func TestSchedule(t *testing.T) {
	night := []v1alpha1.Window{{From: "20:00", To: "24:00", Timezone: "UTC"}, {From: "00:00", To: "06:00", Timezone: "UTC"}}
	if open, _, next := lifecycle.OpenAt(books, night, noon); open || next != after(8*time.Hour) {
		t.Errorf("at noon got open %t, next %s", open, next)
	}
	if open, until, _ := lifecycle.OpenAt(books, night, after(10*time.Hour)); !open || until != after(18*time.Hour) {
		t.Errorf("windows that touch: got open %t until %s, want until 06:00", open, until)
	}
	s := &v1alpha1.Schedule{NotBefore: after(time.Hour), Windows: night}
	if at := lifecycle.FirstStart(books, s, noon); at != after(8*time.Hour) {
		t.Errorf("first start %s, want 20:00", at)
	}
	hours := func(n int) v1alpha1.Duration { return v1alpha1.Duration{Duration: time.Duration(n) * time.Hour} }
	for name, c := range map[string]struct {
		schedule v1alpha1.Schedule
		bounds   lifecycle.Bounds
		end      v1alpha1.Time
		code     string
	}{
		"open-ended":                  {v1alpha1.Schedule{}, lifecycle.Bounds{}, v1alpha1.Time{}, ""},
		"its duration":                {v1alpha1.Schedule{Duration: hours(2)}, lifecycle.Bounds{Duration: time.Hour}, after(2 * time.Hour), ""},
		"the fleet's duration":        {v1alpha1.Schedule{}, lifecycle.Bounds{Duration: time.Hour}, after(time.Hour), ""},
		"its deadline":                {v1alpha1.Schedule{Deadline: after(time.Hour)}, lifecycle.Bounds{}, after(time.Hour), ""},
		"longer than its deadline":    {v1alpha1.Schedule{Duration: hours(2), Deadline: after(time.Hour)}, lifecycle.Bounds{}, after(2 * time.Hour), lifecycle.CodeDeadline},
		"longer than the tenant may":  {v1alpha1.Schedule{Duration: hours(2)}, lifecycle.Bounds{Most: hours(1)}, after(2 * time.Hour), lifecycle.CodeMaxDuration},
		"without an end, and may not": {v1alpha1.Schedule{}, lifecycle.Bounds{Most: hours(1)}, v1alpha1.Time{}, lifecycle.CodeMaxDuration},
	} {
		if got := lifecycle.TermOf(&c.schedule, c.bounds, noon); got.End != c.end || got.Code != c.code || (got.Refused == "") != (c.code == "") {
			t.Errorf("%s: got %+v, want end %s, code %q", name, got, c.end, c.code)
		}
	}
	late := &v1alpha1.Schedule{Deadline: after(time.Hour)}
	if why := lifecycle.StartsTooLate(late, lifecycle.Bounds{}, after(2*time.Hour)); !strings.Contains(why, "cannot start before 2026-11-20T14:00:00Z") {
		t.Errorf("a start after the deadline: %q", why)
	}
	if why := lifecycle.StartsTooLate(late, lifecycle.Bounds{}, after(time.Minute)); why != "" {
		t.Errorf("a start before it: %q", why)
	}
}

func TestAfter(t *testing.T) {
	was := v1alpha1.IntentStatus{
		Path: "p", Digest: "d", State: v1alpha1.IntentQueued, Since: after(-time.Hour), Reason: "NothingFits", Message: "3 are too small",
		Displaced: after(-time.Hour), Frozen: &v1alpha1.Frozen{},
	}
	for name, c := range map[string]struct {
		outcome   lifecycle.Outcome
		message   string
		since     v1alpha1.Time
		displaced v1alpha1.Time
	}{
		"the same with other figures": {lifecycle.Outcome{State: v1alpha1.IntentQueued, Code: "NothingFits", Message: "4 are too small", Waits: true}, "3 are too small", was.Since, was.Displaced},
		"another code":                {lifecycle.Outcome{State: v1alpha1.IntentQueued, Code: "QuotaExceeded", Message: "wait", Waits: true}, "wait", was.Since, was.Displaced},
		"another file":                {lifecycle.Outcome{Asked: true, Path: "p", Digest: "e", State: v1alpha1.IntentQueued, Code: "NothingFits", Message: "new", Waits: true}, "new", noon, v1alpha1.Time{}},
		"placed":                      {lifecycle.Outcome{State: v1alpha1.IntentPlaced, Message: "best of 3"}, "", noon, v1alpha1.Time{}},
		"has to give way":             {lifecycle.Outcome{State: v1alpha1.IntentPlaced, Code: "Preempting", Message: "by x", Displacing: true, Waits: true}, "by x", noon, noon},
		"done before":                 {lifecycle.Outcome{State: v1alpha1.IntentDone, Code: "Done", Message: "m", Since: after(-time.Minute), Waits: true}, "m", after(-time.Minute), was.Displaced},
	} {
		got := lifecycle.After(&was, &c.outcome, noon)
		if got.Message != c.message || got.Since != c.since || got.Displaced != c.displaced || got.Frozen != nil {
			t.Errorf("%s: got %+v, want %q since %s, displaced %s, not frozen", name, got, c.message, c.since, c.displaced)
		}
	}
}

// Who is frozen is notified once a day, with the first reason.
func TestFreeze(t *testing.T) {
	since := after(-30 * time.Hour)
	was := v1alpha1.IntentStatus{Frozen: &v1alpha1.Frozen{Since: since, Told: since, Reason: "line 3"}}
	got := lifecycle.Freeze(&was, true, since, "line 4", noon).Frozen
	if told := v1alpha1.TimeOf(since.Add(24 * time.Hour)); got.Told != told || got.Reason != "line 4" {
		t.Errorf("a day later got %+v, want line 4 told at %s", got, told)
	}
	again := lifecycle.Freeze(&v1alpha1.IntentStatus{Frozen: got}, true, since, "line 5", after(time.Hour)).Frozen
	if !reflect.DeepEqual(got, again) {
		t.Errorf("within the day got %+v, want %+v", again, got)
	}
	if next := lifecycle.NextTold(since, noon); next != v1alpha1.TimeOf(since.Add(48*time.Hour)) {
		t.Errorf("told next at %s", next)
	}
	if got := lifecycle.Freeze(&was, false, since, "line 4", noon).Frozen; got != nil {
		t.Errorf("one that holds nothing is %+v", got)
	}
}
