package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/links"
)

// checkSiblings holds what an intent says of others of its tenant against
// those that there are (sorted by name). Few intents name others, so all of a
// tenant's are checked whenever one changes.
func (tr *tenantReading) checkSiblings(in *model.Intent, all []*model.Intent, linked func() *links.Graph, open func(*model.Intent) *strictyaml.Document) *model.Intent {
	from, renamed := in.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]
	together, apart := in.Spec.Placement.Together, in.Spec.Placement.Apart
	if !renamed && len(together) == 0 && len(apart) == 0 {
		return in
	}
	exists := func(name string) bool { return links.Find(all, name) != nil }
	check := func(c *checker) {
		circled := false
		if renamed && exists(from) && from != in.Metadata.Name {
			c.errorf(at("metadata", "annotations", v1alpha1.AnnotationRenamedFrom), "RenamedFromExists", "intent %s still exists, so this is no renaming; delete it or remove the annotation", from)
		}
		if n := linked().Size(in.Metadata.Name); len(together) > 0 && n > links.MaxGroup {
			c.errorf(at("spec", "placement", "together"), model.TooManyTogether, "spec.placement.together: %d intents belong together, by what they name and what others do, and at most %d may: one intent with replicas is placed in one domain too (placement.within)", n, links.MaxGroup)
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
					c.errorf(p, "BadName", "%s: %s is not the name of an intent; write the bare name of an intent of tenant %s; those of other tenants cannot be named", p, name, tr.against.tenantName)
				case !exists(name) && len(tr.frozen) > 0: // a file that cannot be read may hold it
				case !exists(name):
					c.warnf(p, "UnknownIntent", "%s: tenant %s has no intent %s%s", p, tr.against.tenantName, name, did(name, linked().Known()))
				case list.field == "together":
					if circle := linked().Circle(in.Metadata.Name, name); circle != "" && !circled { // one of an intent is enough
						circled = true
						c.warnf(p, "Cycle", "%s goes round: %s; to name it on one side is enough, and with both none of them is placed before the other", p, circle)
					}
				case slices.Contains(together, name): // the file by itself says so
				case linked().Belong(in.Metadata.Name, name):
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
