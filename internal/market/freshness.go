package market

import (
	"cmp"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// ProviderState is what is known of a provider.
type ProviderState struct {
	// State is Fresh, Silent or Lost.
	State model.Freshness
	// Since is when it was last heard (Silent, Lost), or when the market began to listen to one that was never heard.
	Since v1alpha1.Time
	// GraceEnds is when a silent one counts as lost.
	GraceEnds v1alpha1.Time
	// Static: it has only offers from files, no agent.
	Static bool
	// Heard is true when a report has come since the start, or the provider is static.
	Heard bool
}

// freshness is a provider's state at a time. One without an agent has only
// files, which do not age.
func (m *Market) freshness(name string, p *provider, now time.Time) model.Freshness {
	return age(p, m.silence(), m.grace(name), now)
}

func age(p *provider, silence, grace time.Duration, now time.Time) model.Freshness {
	if !p.agent {
		return model.Fresh
	}
	switch silent := now.Sub(p.heard); {
	case silent < silence && p.unheard:
		return model.Elsewhere
	case silent < silence:
		return model.Fresh
	case silent < grace:
		return model.Silent
	}
	return model.Lost
}

// grace is how long a provider may be silent before it counts as lost: its
// cluster's own, else the fleet's, else the default. It is never shorter than
// the time after which it counts as silent, because a provider whose reports
// come on time is not lost between two of them.
func (m *Market) grace(name string) time.Duration {
	return max(graceOf(&m.inputs, name), m.silence())
}

// silence is how long a provider may go unheard and still sell: the fleet's, else the
// daemon's.
func (m *Market) silence() time.Duration {
	return cmp.Or(m.inputs.Fleet.Safety.Silence.Duration, m.opts.Silence)
}

func graceOf(in *Inputs, name string) time.Duration {
	if c := in.Clusters[name]; c != nil && c.Spec.Agent.GracePeriod.Duration > 0 {
		return c.Spec.Agent.GracePeriod.Duration
	}
	if d := in.Fleet.Defaults.GracePeriod.Duration; d > 0 {
		return d
	}
	return DefaultGrace
}

// Deaf reports whether the daemon hears too little to act, given the providers
// that hold contracts: it must then move, refuse and queue nothing (DESIGN,
// invariant 6). It is deaf
//
//   - while fewer than half of the holders are heard: more likely our own ears
//     fail than half of the fleet at once;
//   - while nobody can be heard at all (Market.Cut);
//   - just after the start, until half of the fleet's providers are heard or
//     the warm-up is over: agents that report every interval have not had their
//     turn, and their offers would be missing from every decision.
//
// A provider that has only offers from files is always heard.
func (s *Snapshot) Deaf(holders []string) bool {
	if s.cut || !s.half(holders) {
		return true
	}
	if s.at.Sub(s.listens) >= s.warmup {
		return false
	}
	var providers []string
	for name, c := range s.inputs.Clusters {
		if c.HasRole("provider") {
			providers = append(providers, name)
		}
	}
	return !s.half(providers)
}

// half reports whether half of some providers or more are heard. The answer for the
// list that was asked of last is remembered by the list's address: every round asks of the
// ledger's, which never changes, and time alone changes no answer.
func (s *Snapshot) half(names []string) bool {
	if len(names) == 0 {
		return true
	}
	if last := s.halves.Load(); last != nil && last.first == &names[0] && last.n == len(names) {
		return last.half
	}
	now := &halfOf{first: &names[0], n: len(names), half: 2*s.heard(names) >= len(names)}
	s.halves.Store(now)
	return now.half
}

// halfOf is whether half of the providers of one list are heard.
type halfOf struct {
	first *string
	n     int
	half  bool
}

// heard counts the providers of a list that are heard and fresh: by one walk over all
// rows, because to look one up costs as much as to pass some dozen.
func (s *Snapshot) heard(names []string) int {
	if !slices.IsSorted(names) {
		names = slices.Sorted(slices.Values(names))
	}
	heard, rows := 0, s.listings()
	for _, name := range names {
		for len(rows) > 0 && rows[0].provider < name {
			rows = rows[1:]
		}
		if len(rows) > 0 && rows[0].provider == name && rows[0].state.Heard && rows[0].state.State == model.Fresh {
			heard++
		}
	}
	return heard
}
