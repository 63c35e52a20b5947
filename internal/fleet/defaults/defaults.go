// Package defaults fills in what a fleet's policy leaves open. It is pure; the reader
// of a fleet calls it.
package defaults

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Of is a policy with everything that was left open filled in, as
// FORMATS section 3 gives it. The quantities are those that Liqo fills in for
// missing keys (v1.2.0). It does not touch its argument.
func Of(in v1alpha1.FleetSpec) *v1alpha1.FleetSpec {
	s := in
	fill(&s.Currency, "EUR")
	fill(&s.Timezone, "UTC")
	if s.Weights == nil {
		s.Weights = &v1alpha1.Weights{Resources: 0.7, Cost: 0.3}
	}
	fillQuantity(&s.Defaults.CPU, "4")
	fillQuantity(&s.Defaults.Memory, "8Gi")
	fillQuantity(&s.Defaults.Pods, "110")
	fillQuantity(&s.Defaults.EphemeralStorage, "20Gi")
	fillDuration(&s.Defaults.GracePeriod, 5*time.Minute)
	fill(&s.Defaults.Delivery, "direct")
	fill(&s.WriteBack.Mode, "push")
	fill(&s.WriteBack.Inputs, "main")
	fill(&s.WriteBack.Branch, s.WriteBack.Inputs)
	fill(&s.WriteBack.Author.Name, "fleetbroker")
	fill(&s.WriteBack.Author.Email, "fleetbroker@localhost")
	fillDuration(&s.WriteBack.StatusInterval, 30*time.Second)
	fill(&s.Verification.Mode, "none")
	fillDuration(&s.Retention.Ended, 168*time.Hour)
	fillDuration(&s.Retention.Market, 720*time.Hour)
	fillDuration(&s.Safety.FrozenFor, 24*time.Hour)
	fillDuration(&s.Bookings.MaxAhead, v1alpha1.DefaultMaxAhead)
	fillDuration(&s.Bookings.Lead, v1alpha1.DefaultLead)
	if s.Bookings.MaxShare == 0 {
		s.Bookings.MaxShare = 100
	}
	contracts := s.Limits.Contracts // what holds where it is open is a rule of the planner's, of which earlier rounds had another
	s.Limits = s.Limits.Filled()
	s.Limits.Contracts = contracts
	fill(&s.Consolidation.Mode, "off")
	fill(&s.Enrollment, "closed")
	if s.Peering.Auto == nil {
		yes := true
		s.Peering.Auto = &yes
	}
	return &s
}

func fill(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

func fillQuantity(field **v1alpha1.Quantity, value v1alpha1.Quantity) {
	if *field == nil {
		*field = &value
	}
}

func fillDuration(field *v1alpha1.Duration, value time.Duration) {
	if field.Duration == 0 {
		field.Duration = value
	}
}
