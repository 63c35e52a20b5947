package fleet

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/wildcards"
)

// claims says which tenant may offload which namespace. An exact claim beats a
// pattern; any other overlap of two tenants is a mistake of both and entitles
// neither.
type claims struct {
	exact    map[string]string // namespace → tenant; "" when several claim it
	patterns []claim
	index    *wildcards.Set    // of patterns
	liqo     map[string]string // namespaces in which a cluster's Liqo works → cluster
}

type claim struct {
	tenant, pattern string
	void            bool
}

// overlap is one claim that another tenant's contradicts.
type overlap struct {
	tenant, other string
	// index of the entry in the tenant's namespaces; −1 for its own name, which nobody wrote.
	index   int
	message string
}

func namespacesOf(t *v1alpha1.Tenant) ([]string, bool) {
	if len(t.Spec.Namespaces) == 0 {
		return []string{t.Metadata.Name}, false
	}
	return t.Spec.Namespaces, true
}

// claimsOf gathers what all tenants claim, and the overlaps in their order.
func claimsOf(tenants map[string]*v1alpha1.Tenant) (*claims, []overlap) {
	type entry struct {
		tenant, text string
		index        int
	}
	byName := map[string][]entry{}
	var patterns []entry
	for _, name := range sortedKeys(tenants) {
		list, written := namespacesOf(tenants[name])
		for i, n := range list {
			e := entry{name, n, i}
			if !written {
				e.index = -1
			}
			if strings.Contains(n, "*") {
				patterns = append(patterns, e)
				continue
			}
			byName[n] = append(byName[n], e)
		}
	}
	c := &claims{exact: map[string]string{}}
	var found []overlap
	for _, n := range sortedKeys(byName) {
		list := byName[n]
		c.exact[n] = list[0].tenant
		for _, e := range list {
			for _, o := range list {
				if o.tenant != e.tenant {
					c.exact[n] = ""
					found = append(found, overlap{e.tenant, o.tenant, e.index, fmt.Sprintf("namespace %s is claimed by tenant %s too; one of them must give it up, until then neither has it", n, o.tenant)})
					break
				}
			}
		}
	}
	texts := make([]string, len(patterns))
	for i, e := range patterns {
		texts[i] = e.text
	}
	c.index = wildcards.NewSet(texts)
	for _, e := range patterns {
		cl := claim{tenant: e.tenant, pattern: e.text}
		for _, i := range c.index.Meeting(e.text) {
			if o := patterns[i]; o.tenant != e.tenant {
				cl.void = true
				found = append(found, overlap{e.tenant, o.tenant, e.index, fmt.Sprintf("pattern %s overlaps %s of tenant %s; narrow one of them, until then neither holds", e.text, o.text, o.tenant)})
				break
			}
		}
		c.patterns = append(c.patterns, cl)
	}
	return c, found
}

// matching are the patterns that a namespace matches, in their order.
func (c *claims) matching(namespace string) []claim {
	var out []claim
	for _, i := range c.index.Meeting(namespace) {
		out = append(out, c.patterns[i])
	}
	return out
}

// entitled says why a tenant may not offload a namespace, "" when it may.
func (c *claims) entitled(tenant, namespace string) string {
	if forbiddenNamespace(namespace) {
		return fmt.Sprintf("namespace %s belongs to the cluster or its tools and is never offloaded", namespace)
	}
	if cluster := c.liqo[namespace]; cluster != "" {
		return fmt.Sprintf("namespace %s is Liqo's, says %s/%s.yaml, and is never offloaded", namespace, clustersDir, cluster)
	}
	if who, ok := c.exact[namespace]; ok {
		switch who {
		case tenant:
			return ""
		case "":
			return fmt.Sprintf("namespace %s is claimed by several tenants", namespace)
		}
		return fmt.Sprintf("namespace %s belongs to tenant %s", namespace, who)
	}
	for _, p := range c.matching(namespace) {
		if p.tenant == tenant {
			if p.void {
				return fmt.Sprintf("namespace %s: tenant %s's pattern %s overlaps another tenant's", namespace, tenant, p.pattern)
			}
			return ""
		}
	}
	return fmt.Sprintf("tenant %s may not offload namespace %s; list it under spec.namespaces of %s/%s.yaml", tenant, namespace, tenantsDir, tenant)
}
