package ahead_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// TestBooking_SurvivesARestart: a daemon that starts after the start of a booking, and has
// heard nobody yet, or not its provider, gives nothing up; it begins when that is heard.
func TestBooking_SurvivesARestart(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *plantest.Builder) (back func()){
		"deaf": func(b *plantest.Builder) func() {
			b.W.Deaf = true
			return func() { b.W.Deaf = false }
		},
		"its provider is not heard yet": func(b *plantest.Builder) func() {
			offers := b.W.Offers
			b.W.Offers = nil
			b.Provider("oslo").Offer("oslo/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("9.5"))
			return func() { b.W.Offers = append(b.W.Offers, offers...) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := bookable().Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 48*time.Hour))
			atRest(t, b)
			was := only(t, b, "vision/train", v1alpha1.PhaseBooked)
			b.Tick(25 * time.Hour)
			back := change(b)
			for range 3 {
				b.Round()
				if c := only(t, b, "vision/train", v1alpha1.PhaseBooked); c.Metadata.Name != was.Metadata.Name || c.Status.Reason != "" {
					t.Fatalf("it is another one, or says %s", c.Status.Why())
				}
				b.Tick(time.Second)
			}
			back()
			atRest(t, b)
			if c := only(t, b, "vision/train", v1alpha1.PhaseActive); c.Metadata.Name != was.Metadata.Name {
				t.Error("another contract began")
			}
		})
	}
}

// TestBooking_BeginsInItsLeadBesideItsPredecessor: who runs until the start of what its
// tenant has booked for then has a quota for one of them at a time: the booking's lead does
// not ask for both.
func TestBooking_BeginsInItsLeadBesideItsPredecessor(t *testing.T) {
	t.Parallel()
	cards := int64(8)
	b := bookable().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: &cards, Book: true} }).
		Offer("paris/a100", plantest.Cards("nvidia-a100", 8, "80Gi"), plantest.Costs("1.5")).
		Intent("vision/first", plantest.Wants(8), plantest.For(24*time.Hour))
	atRest(t, b)
	only(t, b, "vision/first", v1alpha1.PhaseActive)
	b.Intent("vision/second", plantest.Wants(8), books(24*time.Hour, 24*time.Hour), plantest.With(func(s *v1alpha1.IntentSpec) { s.Resources.GPU.Models = []string{"nvidia-h100"} }))
	atRest(t, b)
	only(t, b, "vision/second", v1alpha1.PhaseBooked)
	b.Tick(23*time.Hour + 55*time.Minute)
	atRest(t, b)
	only(t, b, "vision/second", v1alpha1.PhaseActive)
	only(t, b, "vision/first", v1alpha1.PhaseActive)
}

// TestBooking_WhatIsNotKeptCostsNothing: who cancels a booking that the fleet cannot keep pays
// nothing for it, however late.
func TestBooking_WhatIsNotKeptCostsNothing(t *testing.T) {
	t.Parallel()
	b := bookable().Fleet(func(f *v1alpha1.FleetSpec) { f.Bookings.FreeUntil = v1alpha1.Duration{Duration: 48 * time.Hour} }).
		Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 48*time.Hour))
	atRest(t, b)
	name := only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name
	b.Offer("paris/h100", plantest.Cards("nvidia-h100", 4, "80Gi"), plantest.Costs("2.5"))
	atRest(t, b)
	if c := only(t, b, "vision/train", v1alpha1.PhaseBooked); c.Status.Reason != "BookingShort" {
		t.Fatalf("it says %q", c.Status.Why())
	}
	b.Remove("vision/train")
	b.Round()
	if c := b.W.Ledger.Contract(name); c.Status.Phase != v1alpha1.PhaseReleased || c.Status.Accrued != nil && !c.Status.Accrued.IsZero() {
		t.Errorf("%s, cost %v", c.Status.Phase, c.Status.Accrued)
	}
}

// TestBooking_AChangeNeedsTheSameRights: what may not be booked is not reached by changing a
// booking either; what was booked stays.
func TestBooking_AChangeNeedsTheSameRights(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *plantest.Builder){
		"too far ahead": func(b *plantest.Builder) {
			b.Intent("vision/train", plantest.Wants(8), books(3*365*24*time.Hour, 300*24*time.Hour))
		},
		"without the right": func(b *plantest.Builder) {
			b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = nil }).
				Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 72*time.Hour))
		},
	} {
		b := bookable().Intent("vision/train", plantest.Wants(8), books(24*time.Hour, 48*time.Hour))
		atRest(t, b)
		was := only(t, b, "vision/train", v1alpha1.PhaseBooked)
		change(b)
		p := atRest(t, b)
		d := plantest.Of(p, "vision/train")
		if now := only(t, b, "vision/train", v1alpha1.PhaseBooked); now.Metadata.Name != was.Metadata.Name || now.Spec.Term != was.Spec.Term || d.Code != "BookingNotAllowed" || !strings.Contains(d.Reason, "what was booked before stays") {
			t.Errorf("%s: %v, %s %s", name, now.Spec.Term, d.Code, d.Reason)
		}
		b.Tick(24 * time.Hour)
		atRest(t, b)
		only(t, b, "vision/train", v1alpha1.PhaseActive)
	}
}

// TestBooking_OutlastsWhatGetsSmaller: a contract that is made smaller, and may therefore
// last beyond the start of a booking, takes its new size of it then, though what is taken
// off is not sold in that round yet.
func TestBooking_OutlastsWhatGetsSmaller(t *testing.T) {
	t.Parallel()
	b := bookable().Intent("vision/train", plantest.Wants(6), books(24*time.Hour, 48*time.Hour))
	atRest(t, b)
	name := only(t, b, "vision/train", v1alpha1.PhaseBooked).Metadata.Name
	b.Intent("speech/job", plantest.Wants(3), plantest.With(func(s *v1alpha1.IntentSpec) { s.Preemption = &v1alpha1.Preemption{Yields: "booked"} }))
	atRest(t, b)
	if c := only(t, b, "speech/job", v1alpha1.PhaseActive); c.Spec.Term.End != plantest.Time("2026-11-21T12:00:00Z") {
		t.Fatalf("three of eight cards next to six that are booked end at %v", c.Spec.Term.End)
	}
	b.Intent("speech/job", plantest.Wants(2))
	b.Round()
	if c := only(t, b, "speech/job", v1alpha1.PhaseActive); c.Spec.GPUs.Count != 2 || !c.Spec.Term.End.IsZero() {
		t.Errorf("it has %d cards until %v, want 2 without an end", c.Spec.GPUs.Count, c.Spec.Term.End)
	}
	if c := only(t, b, "vision/train", v1alpha1.PhaseBooked); c.Metadata.Name != name || c.Status.Reason != "" {
		t.Errorf("the booking: %s, %s", c.Metadata.Name, c.Status.Why())
	}
}
