package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// bookingWorld has so many providers of eight GPUs each, a tenant whose gangs book more than
// all of them have, each by several alternatives, and another that books one.
func bookingWorld(providers, intents int) *Builder {
	may := func(t *v1alpha1.TenantSpec) { t.Quota = &v1alpha1.TenantQuota{Book: true} }
	books := func(s *v1alpha1.IntentSpec) {
		s.Schedule.NotBefore = v1alpha1.TimeOf(Start.Add(48 * time.Hour))
		s.Schedule.Duration = v1alpha1.Duration{Duration: time.Hour}
		s.Schedule.Book = true
	}
	b := New().Consumer("rome").Tenant("vision", "rome", may).Tenant("nlp", "rome", may)
	for i := range providers {
		p := fmt.Sprintf("p%03d", i)
		b.Provider(p).Offer(p+"/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("2.50"))
	}
	for i := range intents {
		b.Intent(fmt.Sprintf("vision/i%04d", i), Wants(8, "H100"), Times(int32(providers+1)), With(books), With(func(s *v1alpha1.IntentSpec) { //nolint:gosec // some tens
			for k := range int32(8) {
				s.Alternatives = append(s.Alternatives, v1alpha1.ResourceRequest{GPU: &v1alpha1.GPURequest{Count: 5 + k%4, Models: []string{"H100"}}})
			}
		}))
	}
	return b.Intent("nlp/good", Wants(1, "H100"), With(books))
}

// What is looked for bookings counts against limits.work; who wants more gets that as the reason, and
// others are served.
func TestWorkOfBookings(t *testing.T) {
	const work = 200_000
	b := bookingWorld(40, 30)
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = work })
	p, did := planner.CountWork(b.W)
	if d := Of(p, "nlp/good"); d.Action != planner.Place {
		t.Errorf("the other tenant's intent: %s, %s", d.Action, d.Reason)
	}
	waits, explained := 0, 0
	for _, d := range p.Intents {
		if d.Tenant == "vision" && d.Code == lifecycle.CodeWork {
			waits++
			if strings.Contains(d.Reason, "spec.limits.work") {
				explained++
			}
		}
	}
	if waits == 0 || explained != waits || p.Due.IsZero() || p.Due.Sub(b.W.Now.Time) > time.Minute {
		t.Errorf("%d wait for their turn, %d are told why, due %s", waits, explained, p.Due)
	}
	// The turn in which it is used up may look at what 41 replicas look at; so may each that
	// has its turn after it.
	if turn := int64(41 * 40); did.Parts < work || did.Parts > work+30*turn {
		t.Errorf("%d looks, want some %d", did.Parts, work)
	}
	again, other := planner.CountWork(b.W)
	if other.Parts != did.Parts {
		t.Errorf("the same world again: %d looks, were %d", other.Parts, did.Parts)
	}
	for i := range p.Intents {
		if p.Intents[i].Reason != again.Intents[i].Reason {
			t.Errorf("the same world again: %q, was %q", again.Intents[i].Reason, p.Intents[i].Reason)
		}
	}
}

// Bookings that do not fit into one round are made in later ones, each in its turn.
func TestWorkOfBookings_EachHasItsTurn(t *testing.T) {
	b := bookingWorld(40, 0)
	for i := range 12 {
		b.Intent(fmt.Sprintf("vision/one%02d", i), Wants(1, "H100"), With(func(s *v1alpha1.IntentSpec) {
			s.Schedule.NotBefore = v1alpha1.TimeOf(Start.Add(48 * time.Hour))
			s.Schedule.Duration = v1alpha1.Duration{Duration: time.Hour}
			s.Schedule.Book = true
		}))
	}
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 1 })
	had := -1
	for round := range 14 {
		b.Round()
		n := b.W.Ledger.Booked()
		if n == had && n < 13 {
			t.Fatalf("round %d books nothing: %d of 13 are booked", round, n)
		}
		had = n
		b.Tick(10 * time.Second)
	}
	if had != 13 {
		t.Fatalf("%d of 13 are booked", had)
	}
}

// A session, which keeps what it worked out, puts the same off.
func TestWorkOfBookings_InASession(t *testing.T) {
	b := bookingWorld(20, 12)
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 30_000 })
	var s planner.Session
	for i := range 4 {
		p, want := s.Decide(b.W), planner.Decide(b.W)
		if len(p.Contracts) != len(want.Contracts) || len(p.States) != len(want.States) || p.Due != want.Due {
			t.Fatalf("round %d: %d contracts, %d states, due %s; want %d, %d, %s", i, len(p.Contracts), len(p.States), p.Due, len(want.Contracts), len(want.States), want.Due)
		}
		for k := range p.Intents {
			if got, as := p.Intents[k], want.Intents[k]; got.Reason != as.Reason || got.Code != as.Code {
				t.Fatalf("round %d, %s: %s %q\nwant %s %q", i, got.Name, got.Code, got.Reason, as.Code, as.Reason)
			}
		}
		b.Apply(p)
		b.Tick(10 * time.Second)
	}
}

// What was decided by the rules of before is decided so again.
func TestWorkOfBookings_OlderRules(t *testing.T) {
	b := bookingWorld(6, 3)
	b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Work = 1 })
	b.W.Rules = 17
	p, did := planner.CountWork(b.W)
	if did.Parts != 0 {
		t.Errorf("%d looks are counted by rules 17", did.Parts)
	}
	for _, d := range p.Intents {
		if d.Code == lifecycle.CodeWork || d.Code == lifecycle.CodePlanning {
			t.Errorf("%s/%s: %s %s", d.Tenant, d.Name, d.Code, d.Reason)
		}
	}
}
