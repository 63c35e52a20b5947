package view

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
)

// States of a source.
const (
	// SourceFrozen: nothing new is taken. SourceCurrent: in order. SourceUncopied: nothing
	// of it is acted on yet. SourceUnknown: no daemon was asked whether it is in order.
	SourceFrozen   = "Frozen"
	SourceCurrent  = "Current"
	SourceUncopied = "NotCopied"
	SourceUnknown  = "Unknown"
)

// SourceRow is a tenant's own repository (Fleet.spec.sources).
type SourceRow struct {
	Name    string   `json:"name"`
	URL     string   `json:"url"`
	Branch  string   `json:"branch"`
	Tenants []string `json:"tenants"`
	State   string   `json:"state"`
	// Copied is the commit that is acted on, with its Files of intents, who signed it, and
	// when it was read; absent before the first.
	Copied string        `json:"copied,omitempty"`
	Files  int           `json:"files"`
	Signer string        `json:"signer,omitempty"`
	At     v1alpha1.Time `json:"at,omitzero"`
	// Frozen is why nothing new is taken, Since when.
	Frozen string        `json:"frozen,omitempty"`
	Since  v1alpha1.Time `json:"since,omitzero"`
	// Head is the newest commit that the daemon saw, Read when it answered last, Ignored
	// its paths below intents/ that are not taken.
	Head    string        `json:"head,omitempty"`
	Read    v1alpha1.Time `json:"read,omitzero"`
	Ignored []string      `json:"ignored,omitempty"`
}

// Sources are those of a fleet, in the order of its entries, with what a daemon knows of
// them; known: one was asked.
func Sources(f *fleet.Fleet, seen []wire.SourceStatus, known bool) []SourceRow {
	out := []SourceRow{}
	if f == nil || f.Policy == nil {
		return out
	}
	of := map[string]*wire.SourceStatus{}
	for i := range seen {
		of[seen[i].Name] = &seen[i]
	}
	for i := range f.Policy.Sources {
		e := &f.Policy.Sources[i]
		r := SourceRow{Name: e.Name, URL: e.URL, Branch: e.Ref(), Tenants: e.Tenants, State: SourceUncopied}
		if c := f.Copies[e.Name]; c != nil {
			r.Copied, r.Files, r.Signer, r.At, r.State = c.Commit, len(c.Files), c.Signer, c.ReadAt, SourceCurrent
			if !known {
				r.State = SourceUnknown
			}
		}
		if s := of[e.Name]; s != nil {
			r.Head, r.Frozen, r.Ignored = s.Head, s.Frozen, s.Ignored
			if !s.Since.IsZero() {
				r.Since = v1alpha1.TimeOf(s.Since)
			}
			if !s.ReadAt.IsZero() {
				r.Read = v1alpha1.TimeOf(s.ReadAt)
			}
			if s.Frozen != "" {
				r.State = SourceFrozen
			}
		}
		out = append(out, r)
	}
	return out
}

// sourcesOf are the sources of which a tenant is seen, those that are frozen first.
func (m *Model) sourcesOf(s Sight) []SourceRow {
	frozen, rest := []SourceRow{}, []SourceRow(nil)
	for _, r := range Sources(m.snap.Fleet, m.snap.Sources, true) {
		switch {
		case !s.All() && !anyOf(r.Tenants, s.Of):
		case r.Frozen != "":
			frozen = append(frozen, r)
		default:
			rest = append(rest, r)
		}
	}
	return append(frozen, rest...)
}

func anyOf(list []string, is func(string) bool) bool {
	for _, x := range list {
		if is(x) {
			return true
		}
	}
	return false
}
