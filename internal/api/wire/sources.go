package wire

import (
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// SourceStatus is what a daemon knows of a source (Fleet.spec.sources).
type SourceStatus struct {
	Name string `json:"name"`
	URL  string `json:"url,omitempty"`
	// Tenants whose intents may come from it.
	Tenants []string `json:"tenants,omitempty"`
	// Copied is the commit that is acted on, Head the newest that was seen.
	Copied string `json:"copied,omitempty"`
	Head   string `json:"head,omitempty"`
	// Frozen is why nothing new is taken from it, "" when it is in order; Since when.
	Frozen string    `json:"frozen,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// ReadAt is when it answered last.
	ReadAt time.Time `json:"readAt,omitzero"`
	// Ignored are paths of its head, below intents/, that are not taken.
	Ignored []string `json:"ignored,omitempty"`
}

// PodsPath is where a daemon shows which pods use what contracts hold: a list of
// PodsReport. For operators; an agent is shown its own cluster's alone, a reader nothing.
const PodsPath = "/pods"

// PodsReport is what a consumer's agent last reported of pods on virtual nodes.
type PodsReport struct {
	Cluster string `json:"cluster"`
	// At is when the daemon last heard of the cluster; zero when it has not since it started.
	At v1alpha1.Time `json:"at,omitzero"`
	// Contracts are the pods on each contract's virtual node, those of DaemonSets left out.
	Contracts map[string]int64 `json:"contracts"`
}

// HeaderSources goes with a daemon's market, for operators: FrozenSources in JSON.
const HeaderSources = "Fleetbroker-Sources"

// FrozenSources are those of a daemon's sources that are frozen.
type FrozenSources struct {
	// Sources that are followed.
	Sources int `json:"sources"`
	// Frozen are some of those that are, with name, reason and time; More is how many are
	// left out.
	Frozen []SourceStatus `json:"frozen"`
	More   int            `json:"more,omitempty"`
}

// Bounds of FrozenSources: a header has a few KiB.
const (
	maxFrozen = 15
	maxReason = 200 // bytes
)

// FrozenOf picks the frozen ones of a list.
func FrozenOf(list []SourceStatus) FrozenSources {
	out := FrozenSources{Sources: len(list), Frozen: []SourceStatus{}}
	for _, s := range list {
		switch {
		case s.Frozen == "":
		case len(out.Frozen) == maxFrozen:
			out.More++
		default:
			why := s.Frozen
			if len(why) > maxReason {
				why = strings.ToValidUTF8(why[:maxReason], "") + "…"
			}
			out.Frozen = append(out.Frozen, SourceStatus{Name: s.Name, Frozen: why, Since: s.Since})
		}
	}
	return out
}
