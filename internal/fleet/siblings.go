package fleet

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/links"
)

// checkSiblings holds what an intent says of others of its tenant against
// those that there are (sorted by name). Few intents name others, so all of a
// tenant's are checked whenever one changes.
func (tr *tenantReading) checkSiblings(in *model.Intent, all []*model.Intent, linked func() map[string][]string, open func(*model.Intent) *strictyaml.Document) *model.Intent {
	from, renamed := in.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]
	together, apart := in.Spec.Placement.Together, in.Spec.Placement.Apart
	if !renamed && len(together) == 0 && len(apart) == 0 {
		return in
	}
	exists := func(name string) bool { return links.Find(all, name) != nil }
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
					if way := links.Way(all, name, in.Metadata.Name); way != nil {
						c.warnf(p, "Cycle", "%s goes round: %s; to name it on one side is enough, and with both none of them is placed before the other", p, strings.Join(append([]string{in.Metadata.Name}, way...), " → "))
					}
				case links.Belong(linked(), in.Metadata.Name, name):
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

func namesOf(all []*model.Intent) []string {
	out := make([]string, len(all))
	for i, in := range all {
		out[i] = in.Metadata.Name
	}
	return out
}
