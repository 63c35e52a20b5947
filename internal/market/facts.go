package market

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Facts that an agent cannot know (what its electricity emits, how often it failed, what
// it was certified for, in which steps it sells) are stated in files that people review:
// for all flavors of a cluster in its file (properties), for one in a file of its name
// under flavors/ that has no capacity. They go over what the agent reports, and hold while
// it does. A file with a capacity is an offer of its own: where an agent reports a flavor
// of that name too, nobody knows which is meant, and nothing new of it is sold until one is
// renamed.

// isFacts reports whether a file adds facts to what an agent reports.
func isFacts(f *v1alpha1.Flavor) bool { return f.Spec.Capacity == nil }

// Unreported are messages on the files that add facts to a flavor which its provider, whose
// flavors are among those reported, does not report: with the name that was probably meant.
func Unreported(files, reported []*v1alpha1.Flavor) (out []string) {
	names := map[string][]string{}
	for _, f := range reported {
		names[f.Metadata.Namespace] = append(names[f.Metadata.Namespace], f.Metadata.Name)
	}
	for _, f := range files {
		of, name := f.Metadata.Namespace, f.Metadata.Name
		if !isFacts(f) || len(names[of]) == 0 || slices.Contains(names[of], name) {
			continue
		}
		slices.Sort(names[of])
		meant := "it reports " + strings.Join(names[of][:min(len(names[of]), 5)], ", ")
		if near := nearest.Of(name, names[of]); near != "" {
			meant = fmt.Sprintf("did you mean %q?", near)
		}
		out = append(out, fmt.Sprintf("flavor %s/%s has a file of facts, and cluster %[1]s reports no such flavor (%[3]s); the facts are not used", of, name, meant))
	}
	return out
}

// stated is a reported flavor with what files state of it: the very same where they
// state nothing.
func (m *Market) stated(f *v1alpha1.Flavor, twice bool) *v1alpha1.Flavor {
	facts := m.facts[f.Ref()]
	var cluster *v1alpha1.FlavorProperties
	if c := m.inputs.Clusters[f.Metadata.Namespace]; c != nil && !c.Spec.Properties.IsZero() {
		cluster = &c.Spec.Properties
	}
	if facts == nil && cluster == nil && !twice {
		return f
	}
	out := *f
	s := &out.Spec
	s.Cordon = s.Cordon || twice
	if cluster != nil {
		s.Properties = cluster.Over(s.Properties)
	}
	if facts == nil {
		return &out
	}
	s.Properties = facts.Spec.Properties.Over(s.Properties)
	if facts.Spec.Partition != nil {
		s.Partition = facts.Spec.Partition
	}
	if len(facts.Spec.Labels) > 0 {
		s.Labels = maps.Clone(s.Labels)
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		maps.Copy(s.Labels, facts.Spec.Labels)
	}
	return &out
}

// priced is the price that a file of facts states for a flavor, nil where it states none,
// or windows alone.
func (m *Market) priced(f *v1alpha1.Flavor) *v1alpha1.Price {
	facts := m.facts[f.Ref()]
	if facts == nil || facts.Spec.Price == nil {
		return nil
	}
	p := facts.Spec.Price
	if !sellsOnDemand(p) && len(p.Spot) == 0 && p.Reserved == nil {
		return nil
	}
	return m.currency(*p)
}

// windowed is a price with the windows that a file of facts states for the flavor.
func (m *Market) windowed(f *v1alpha1.Flavor, p *v1alpha1.Price) *v1alpha1.Price {
	facts := m.facts[f.Ref()]
	if p == nil || facts == nil || facts.Spec.Price == nil || len(facts.Spec.Price.Windows) == 0 || sellsOnDemand(facts.Spec.Price) {
		return p // those of a price of its own came with it
	}
	out := *p
	out.Windows = facts.Spec.Price.Windows
	return &out
}
