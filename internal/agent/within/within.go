package within

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const (
	maxFlavors = 2000
	// maxNames of resources in a list.
	maxNames = 64
	maxLabel = 128
	// maxHeld slices of a flavor, and maxAll of a report; maxEntries of their lists together.
	maxHeld    = 5000
	maxAll     = 10_000
	maxEntries = 100_000
	// most of a resource in a list, and most that one object can have of it: a PiB.
	most    = 1 << 60
	mostOne = 1 << 50
)

// Amounts are a Kubernetes resource list in our units. What cannot be counted
// (negative, a fraction of a device) or is no resource's name counts as nothing.
func Amounts(list corev1.ResourceList) v1alpha1.Resources {
	out := make(v1alpha1.Resources, len(list))
	for name, quantity := range list {
		if a, err := v1alpha1.AmountOfQuantity(string(name), quantity); err == nil && isResource(string(name)) {
			out[string(name)] = upTo(a, mostOne)
		}
	}
	return out
}

// isResource reports whether brokers take a name for a resource's: plain, or qualified by a
// domain. It is asked of each resource of each pod, for which an expression takes too long.
func isResource(name string) bool {
	if domain, rest, qualified := strings.Cut(name, "/"); qualified {
		if len(domain) > 253 || !isForm(domain, func(c byte) bool { return lower(c) || c == '-' || c == '.' }, lower) {
			return false
		}
		name = rest
	}
	return len(name) <= 63 && isForm(name, func(c byte) bool { return letter(c) || c == '-' || c == '.' || c == '_' }, letter)
}

// isForm reports whether a text has such characters, and such at its ends.
func isForm(text string, within, ends func(byte) bool) bool {
	for i := range len(text) {
		if !within(text[i]) {
			return false
		}
	}
	return text != "" && ends(text[0]) && ends(text[len(text)-1])
}

func lower(c byte) bool  { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
func letter(c byte) bool { return lower(c) || 'A' <= c && c <= 'Z' }

func upTo(a v1alpha1.Amount, most int64) v1alpha1.Amount {
	if bound := v1alpha1.AmountOf(most); bound.Less(a) {
		return bound
	}
	return a
}

// Names are the resources that any node of the cluster has. Nothing else can be used up:
// pods may ask for what no node has, where who makes them names their node.
type Names map[string]bool

// NamesOf are those of nodes.
func NamesOf(nodes []*corev1.Node) Names {
	out := Names{}
	for _, n := range nodes {
		for _, list := range []corev1.ResourceList{n.Status.Allocatable, n.Status.Capacity} {
			for name := range list {
				out[string(name)] = true
			}
		}
	}
	return out
}

// Add has the resources of a contract count too: while a pool is scaled to nothing no node
// has them, and they are held all the same.
func (n Names) Add(r v1alpha1.Resources) {
	for name := range r {
		n[name] = true
	}
}

// Of is r without what no node has; usual resources stay.
func (n Names) Of(r v1alpha1.Resources, usual func(string) bool) v1alpha1.Resources {
	maps.DeleteFunc(r, func(name string, _ v1alpha1.Amount) bool { return !n[name] && !usual(name) })
	return r
}

// list bounds names and amounts; those of first stay before others, and among both the usual ones,
// which are not qualified by a domain.
func list(r, first v1alpha1.Resources) v1alpha1.Resources {
	if len(r) > maxNames {
		rank := func(name string) int {
			_, listed := first[name]
			switch {
			case !strings.Contains(name, "/"):
				return 0
			case listed:
				return 1
			}
			return 2
		}
		names := slices.SortedFunc(maps.Keys(r), func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b)) })
		cut := make(v1alpha1.Resources, maxNames)
		for _, name := range names[:maxNames] {
			cut[name] = r[name]
		}
		r = cut
	}
	for name, a := range r {
		r[name] = upTo(a, most)
	}
	return r
}

// Capacities bounds what a flavor has before anything is held of it.
func Capacities(f *v1alpha1.Flavor) (problems []string) {
	s := &f.Spec
	problem := func(format string, a ...any) {
		problems = append(problems, "flavor "+f.Metadata.Name+": "+fmt.Sprintf(format, a...))
	}
	if n := len(s.Capacity); n > maxNames {
		problem("its nodes have %d resources, and %d are offered", n, maxNames)
	}
	s.Capacity = list(s.Capacity, s.Capacity)
	s.Used = list(s.Used, s.Capacity)
	s.ScalableTo = list(s.ScalableTo, s.Capacity)
	if text := s.Architecture; len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		s.Architecture = ""
		problem("its nodes' architecture is no name")
	}
	if year := s.Drain.UTC().Year(); year < 0 || year > 9999 {
		s.Drain = v1alpha1.Time{}
		problem("its drain is ignored: the year %d cannot be written", year)
	}
	return problems
}

// Ranks of slices' names: which stay when there are too many.
const (
	OfContract = iota + 1
	Granted
	Unknown
)

// Held bounds what slices hold of flavors. What those hold that are too many counts as the
// provider's own use.
func Held(flavors []*v1alpha1.FlavorSpec, rank func(slice string) int) (problems []string) {
	type one struct {
		flavor, rank int
		slice        string
	}
	var all []one
	for i, s := range flavors {
		for slice, r := range s.Held {
			s.Held[slice] = list(r, s.Capacity)
			all = append(all, one{i, rank(slice), slice})
		}
	}
	slices.SortFunc(all, func(a, b one) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.slice, b.slice), cmp.Compare(a.flavor, b.flavor))
	})
	count, entries, folded := make([]int, len(flavors)), 0, 0
	for i, o := range all {
		s := flavors[o.flavor]
		count[o.flavor]++
		entries += 2 + len(s.Held[o.slice])
		if i < maxAll && entries <= maxEntries && count[o.flavor] <= maxHeld {
			continue
		}
		if s.Used == nil {
			s.Used = v1alpha1.Resources{}
		}
		for name, a := range s.Held[o.slice] {
			if _, listed := s.Capacity[name]; listed {
				s.Used[name] = upTo(s.Used[name].Add(a), most)
			}
		}
		delete(s.Held, o.slice)
		folded++
	}
	if folded > 0 {
		problems = append(problems, fmt.Sprintf("%d slices are held or have pods, which is more than a report can have: what %d of them have counts as the cluster's own use", len(all), folded))
	}
	for _, s := range flavors { // what runs on nodes that are not offered is in both
		s.Capacity = list(s.Capacity, s.Capacity)
		s.Used = list(s.Used, s.Capacity)
	}
	return problems
}

// Flavors bounds what is made of the rest, and how many there are: those of which something
// is held stay before others.
func Flavors(flavors []v1alpha1.Flavor) (kept []v1alpha1.Flavor, problems []string) {
	for i := range flavors {
		s := &flavors[i].Spec
		for _, key := range slices.Backward(slices.Sorted(maps.Keys(s.Labels))) {
			if len(s.Labels) > maxLabel && key != v1alpha1.LabelEnforcement {
				delete(s.Labels, key)
			}
		}
		if err := onnodes.Report(s); err != nil {
			s.Nodes, s.HeldOn = nil, nil
			problems = append(problems, fmt.Sprintf("flavor %s is not reported node by node: %v", flavors[i].Metadata.Name, err))
		}
	}
	if len(flavors) <= maxFlavors {
		return flavors, problems
	}
	problems = append(problems, fmt.Sprintf("%d flavors are more than a report can have: offer equal nodes as one, under one label of a pool", len(flavors)))
	slices.SortStableFunc(flavors, func(a, b v1alpha1.Flavor) int { return cmp.Compare(min(len(b.Spec.Held), 1), min(len(a.Spec.Held), 1)) })
	kept = flavors[:maxFlavors]
	slices.SortFunc(kept, func(a, b v1alpha1.Flavor) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return kept, problems
}
