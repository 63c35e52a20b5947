package notify

import (
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Reasons of events of kind frozen.
const (
	ReasonFrozen = "Frozen"
	// ReasonSourceFrozen and ReasonSourceRead: nothing new is taken of a tenant's own
	// repository, and it is again.
	ReasonSourceFrozen = "SourceFrozen"
	ReasonSourceRead   = "SourceRead"
)

// settled is how long a source must be frozen before its tenants are told: a server that
// misses one request is no news.
const settled = 2 * time.Minute

// changed are the events of sources that froze since they were told of last, and of
// those that are read again. What was told survives a restart.
func (o *outbox) changed(s *Snapshot, now time.Time) []Event {
	var out []Event
	known := map[string]bool{}
	for i := range s.Sources {
		src := &s.Sources[i]
		known[src.Name] = true
		since, told := o.Sources[src.Name]
		switch {
		case src.Frozen != "" && !told && now.Sub(src.Since) >= settled:
			at := v1alpha1.TimeOf(src.Since)
			if o.Sources == nil {
				o.Sources = map[string]v1alpha1.Time{}
			}
			o.Sources[src.Name] = at
			out = append(out, ofSource(s, src, at, ReasonSourceFrozen, "is frozen since "+stamp(at)+because(src.Frozen)+
				". What was copied of it stays in force and nothing new is taken until that is repaired")...)
		case src.Frozen == "" && told && !src.ReadAt.IsZero():
			delete(o.Sources, src.Name)
			at := v1alpha1.TimeOf(src.ReadAt)
			out = append(out, ofSource(s, src, at, ReasonSourceRead, "is read again; it was frozen since "+stamp(since))...)
		}
	}
	for name := range o.Sources {
		if !known[name] && len(s.Sources) > 0 {
			delete(o.Sources, name) // its entry is gone
		}
	}
	return out
}

// ofSource is an event for each tenant of a source.
func ofSource(s *Snapshot, src *wire.SourceStatus, at v1alpha1.Time, reason, text string) []Event {
	var out []Event
	for _, tenant := range slices.Sorted(slices.Values(src.Tenants)) {
		e := Event{Kind: "frozen", At: at, Fleet: s.Fleet, Tenant: tenant, Source: src.Name, Reason: reason, Text: tenant + "'s repository " + src.Name + " " + text}
		out = append(out, named(e, src.Name+" "+reason+" "+stamp(at)))
	}
	return out
}
