// Package links is who of a tenant's intents must be on one provider with whom
// (placement.together), over any number of steps.
//
// Pure functions; safe for concurrent use. Package fleet checks intents by them.
package links

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
)

// Find is an intent by its name among those sorted by it, nil when there is
// none.
func Find(all []*model.Intent, name string) *model.Intent {
	i, ok := slices.BinarySearchFunc(all, name, func(in *model.Intent, name string) int { return strings.Compare(in.Metadata.Name, name) })
	if !ok {
		return nil
	}
	return all[i]
}

// Way is the shortest way from one intent to another by what each names
// under placement.together, both ends included; nil when there is none.
func Way(all []*model.Intent, from, to string) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			var way []string
			for name := to; name != ""; name = cameFrom[name] {
				way = append(way, name)
			}
			slices.Reverse(way)
			return way
		}
		in := Find(all, queue[0])
		if in == nil {
			continue
		}
		for _, next := range in.Spec.Placement.Together {
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// Of are, for each intent, those that it names under placement.together
// and those that name it.
func Of(all []*model.Intent) map[string][]string {
	links := map[string][]string{}
	for _, in := range all {
		for _, name := range in.Spec.Placement.Together {
			links[in.Metadata.Name] = append(links[in.Metadata.Name], name)
			links[name] = append(links[name], in.Metadata.Name)
		}
	}
	return links
}

// Belong reports whether two intents must be on one provider, over any
// number of links.
func Belong(links map[string][]string, name, other string) bool {
	seen := map[string]bool{name: true}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		for _, next := range links[queue[0]] {
			if next == other {
				return true
			}
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return false
}
