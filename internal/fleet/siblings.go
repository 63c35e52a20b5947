package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// checkSiblings holds what an intent says of others of its tenant against
// those that there are (sorted by name). Few intents name others, so all of a
// tenant's are checked whenever one changes.
func (tr *tenantReading) checkSiblings(in *model.Intent, all []*model.Intent, links func() map[string][]string, open func(*model.Intent) *strictyaml.Document) *model.Intent {
	from, renamed := in.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]
	together, apart := in.Spec.Placement.Together, in.Spec.Placement.Apart
	if !renamed && len(together) == 0 && len(apart) == 0 {
		return in
	}
	exists := func(name string) bool { return find(all, name) != nil }
	check := func(c *checker) {
		if renamed && exists(from) && from != in.Metadata.Name {
			c.errorf(at("metadata", "annotations", v1alpha1.AnnotationRenamedFrom), "RenamedFromExists", "intent %s still exists, so this is no renaming; delete it or remove the annotation", from)
		}
		for _, list := range []struct {
			field string
			names []string
		}{{"together", together}, {"apart", apart}} {
			for i, name := range list.names {
				p := at("spec", "placement", list.field, i)
				switch {
				case name == in.Metadata.Name:
					c.errorf(p, "BadValue", "%s: an intent cannot name itself", p)
				case strings.Contains(name, "/"):
					c.errorf(p, "BadName", "%s: %s is not the name of an intent; those of tenant %s can be named, without it: where another tenant's run is not told", p, name, tr.against.tenantName)
				case !exists(name) && len(tr.frozen) > 0: // a file that cannot be read may hold it
				case !exists(name):
					c.warnf(p, "UnknownIntent", "%s: tenant %s has no intent %s%s", p, tr.against.tenantName, name, did(name, namesOf(all)))
				case list.field == "together":
					if way := leads(all, name, in.Metadata.Name); way != nil {
						c.warnf(p, "Cycle", "%s goes round: %s; to name it on one side is enough, and with both none of them is placed before the other", p, strings.Join(append([]string{in.Metadata.Name}, way...), " → "))
					}
				case belonging(links(), in.Metadata.Name, name):
					c.errorf(p, "Contradiction", "%s: %s must be together with %s, by what placement.together says of them or of others between them; take one of the two out", p, in.Metadata.Name, name)
				}
			}
		}
	}
	trial := &checker{file: in.Path}
	if check(trial); len(trial.diags) == 0 {
		return in
	}
	c := &checker{file: in.Path, doc: open(in)}
	check(c)
	for i := range c.diags {
		c.diags[i].Intent = fmt.Sprintf("%s/%s", in.Metadata.Namespace, in.Metadata.Name)
	}
	tr.diags = append(tr.diags, c.diags...)
	problem, code := firstError(c.diags)
	if problem == "" || in.Problem != "" {
		return in
	}
	refused := *in // the intent itself is shared with earlier Fleets
	refused.Problem, refused.ProblemCode = problem, code
	return &refused
}

// find is an intent by its name among those sorted by it, nil when there is
// none.
func find(all []*model.Intent, name string) *model.Intent {
	i, ok := slices.BinarySearchFunc(all, name, func(in *model.Intent, name string) int { return strings.Compare(in.Metadata.Name, name) })
	if !ok {
		return nil
	}
	return all[i]
}

func namesOf(all []*model.Intent) []string {
	out := make([]string, len(all))
	for i, in := range all {
		out[i] = in.Metadata.Name
	}
	return out
}

// leads is the shortest way from one intent to another by what each names
// under placement.together, both ends included; nil when there is none.
func leads(all []*model.Intent, from, to string) []string {
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
		in := find(all, queue[0])
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

// linksOf are, for each intent, those that it names under placement.together
// and those that name it.
func linksOf(all []*model.Intent) map[string][]string {
	links := map[string][]string{}
	for _, in := range all {
		for _, name := range in.Spec.Placement.Together {
			links[in.Metadata.Name] = append(links[in.Metadata.Name], name)
			links[name] = append(links[name], in.Metadata.Name)
		}
	}
	return links
}

// belonging reports whether two intents must be on one provider, over any
// number of links.
func belonging(links map[string][]string, name, other string) bool {
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
