package fleet

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Remote namespaces: what a tenant's namespaces are called at providers. A
// provider has one namespace of a name, whoever maps to it from whichever
// consumer, and Liqo lets the last one who maps to it use and delete it. So a
// name belongs to one tenant:
//
//   - the one whose file lists it under remoteNamespaces or, exactly, under
//     namespaces (an exact entry beats a pattern); what a pattern covers and is
//     another tenant's by default belongs to neither, until one of them is changed;
//   - else, if it is what Liqo calls a tenant's namespace by default
//     (<namespace>-<the consumer's id>), that one, and nobody may choose it;
//   - else the one with the longest name of which it is, or begins with that and
//     a dash.

// remoteClaims is who may choose which remote namespace.
type remoteClaims struct {
	listed *claims
	// tenants and clusters of the fleet: names follow from both.
	tenants  map[string]*v1alpha1.Tenant
	clusters map[string]*v1alpha1.Cluster
}

// remoteClaimsOf gathers what all tenants list, and the overlaps.
func remoteClaimsOf(tenants map[string]*v1alpha1.Tenant, clusters map[string]*v1alpha1.Cluster) (*remoteClaims, []overlap) {
	asked := map[string]*v1alpha1.Tenant{}
	for name, t := range tenants {
		one := *t
		one.Spec.Namespaces = t.Spec.RemoteNamespaces
		if len(one.Spec.Namespaces) > 0 {
			asked[name] = &one
		}
	}
	listed, overlaps := claimsOf(asked)
	return &remoteClaims{listed: listed, tenants: tenants, clusters: clusters}, overlaps
}

// chosen says why a tenant may not have a namespace of its own called so at
// providers, "" when it may.
func (rc *remoteClaims) chosen(own *claims, tenant, remote string) string {
	if forbiddenNamespace(remote) {
		return fmt.Sprintf("namespace %s belongs to the provider or its tools", remote)
	}
	if cluster := own.liqo[remote]; cluster != "" {
		return fmt.Sprintf("namespace %s is Liqo's, says %s/%s.yaml", remote, clustersDir, cluster)
	}
	ask := fmt.Sprintf("list it under spec.remoteNamespaces of %s/%s.yaml", tenantsDir, tenant)
	if who, listed := rc.listed.exact[remote]; listed {
		switch who {
		case tenant:
			return ""
		case "":
			return fmt.Sprintf("remote namespace %s is listed by several tenants", remote)
		}
		return fmt.Sprintf("remote namespace %s belongs to tenant %s", remote, who)
	}
	mine := false
	for _, p := range rc.listed.matching(remote) {
		if p.tenant != tenant {
			return fmt.Sprintf("remote namespace %s belongs to tenant %s (%s)", remote, p.tenant, p.pattern)
		}
		mine = !p.void
	}
	if who, named := own.exact[remote]; named && who != tenant {
		return fmt.Sprintf("namespace %s belongs to tenant %s", remote, who)
	} else if named {
		return ""
	}
	if who := rc.byDefault(own, remote); who != "" && who != tenant {
		return fmt.Sprintf("%s is what a namespace of tenant %s is called at providers", remote, who)
	}
	if mine {
		return ""
	}
	if who := rc.longest(remote); who == tenant {
		return ""
	} else if who != "" {
		return fmt.Sprintf("remote namespace %s is tenant %s's by its name; %s", remote, who, ask)
	}
	return fmt.Sprintf("remote namespace %s does not begin with %s-: choose one that does, or %s", remote, tenant, ask)
}

// longest is the tenant whose name a namespace has, or begins with, "" for none.
func (rc *remoteClaims) longest(remote string) string {
	for name := remote; name != ""; {
		if rc.tenants[name] != nil {
			return name
		}
		at := strings.LastIndexByte(name, '-')
		name = name[:max(at, 0)]
	}
	return ""
}

// covered is another tenant's pattern that a remote namespace matches, nil for
// none: its tenant might choose that name.
func (rc *remoteClaims) covered(remote, tenant string) *claim {
	for _, p := range rc.listed.matching(remote) {
		if p.tenant != tenant {
			return &p
		}
	}
	return nil
}

// byDefault is the tenant of which a namespace has this name by default, seen
// from any consumer of the fleet; "" for none.
func (rc *remoteClaims) byDefault(own *claims, remote string) string {
	for _, id := range sortedKeys(rc.clusters) {
		c := rc.clusters[id]
		if !c.HasRole(v1alpha1.RoleConsumer) {
			continue
		}
		namespace, is := strings.CutSuffix(remote, "-"+v1alpha1.LiqoID(rc.clusters, id))
		if !is {
			continue
		}
		if who, named := own.exact[namespace]; named {
			return who
		}
		for _, p := range own.matching(namespace) {
			if !p.void {
				return p.tenant
			}
		}
	}
	return ""
}

// remoteNames holds what an intent's namespaces are called at providers against
// whom these names belong to.
func (ctx *context) remoteNames(c *checker, in *v1alpha1.ResourceIntent) {
	id := v1alpha1.LiqoID(ctx.clusters, ctx.tenant.Spec.ConsumerOf(&in.Spec))
	for i := range in.Spec.Offload.Namespaces {
		n := &in.Spec.Offload.Namespaces[i]
		p, remote := at("spec", "offload", "namespaces", i, "name"), n.RemoteName(id)
		switch {
		case n.NamespaceMappingStrategy == "EnforceSameName":
			if why := ctx.remote.chosen(ctx.claims, ctx.tenantName, remote); why != "" {
				c.errorf(p, "RemoteNamespaceNotEntitled", "%s", why)
			}
		case n.NamespaceMappingStrategy == "SelectedName":
			if why := ctx.remote.chosen(ctx.claims, ctx.tenantName, remote); remote != "" && why != "" {
				c.errorf(at("spec", "offload", "namespaces", i, "remoteNamespaceName"), "RemoteNamespaceNotEntitled", "%s", why)
			}
		case forbiddenNamespace(n.Name): // it is said already that it is never offloaded
		case forbiddenNamespace(remote):
			c.errorf(p, "RemoteNamespaceNotEntitled", "at providers it would be called %s, which belongs to the provider or its tools", remote)
		default:
			if who := ctx.remote.listed.exact[remote]; who != "" && who != ctx.tenantName {
				c.errorf(p, "RemoteNamespaceNotEntitled", "at providers it would be called %s, which belongs to tenant %s; choose another name with SelectedName", remote, who)
			} else if other := ctx.remote.covered(remote, ctx.tenantName); who == "" && other != nil {
				c.errorf(p, "RemoteNamespaceNotEntitled", "at providers it would be called %s, which pattern %s of tenant %s covers; choose another name with SelectedName, or narrow the pattern in %s/%[3]s.yaml", remote, other.pattern, other.tenant, tenantsDir)
			}
		}
	}
}

// secrets refuses a Secret that the tenant's file does not declare for the
// consumer. In which of its namespaces depends on the provider: the planner
// looks at that.
func (ctx *context) secrets(c *checker, in *v1alpha1.ResourceIntent) {
	v := in.Spec.VirtualNode
	if v == nil || v.KubeconfigSecretRef == nil {
		return
	}
	consumer := ctx.tenant.Spec.ConsumerOf(&in.Spec)
	for _, s := range ctx.tenant.Spec.Secrets {
		if s.Consumer == consumer && s.Name == v.KubeconfigSecretRef.Name {
			return
		}
	}
	c.errorf(at("spec", "virtualNode", "kubeconfigSecretRef", "name"), "SecretNotEntitled",
		"tenant %s may not use Secret %s of cluster %s; declare it under spec.secrets of %s/%[1]s.yaml: {consumer: %[3]s, namespace: <Liqo's for the provider>, name: %[2]s}",
		ctx.tenantName, v.KubeconfigSecretRef.Name, consumer, tenantsDir)
}

// tenantNames checks what a tenant's file lists at providers and of Secrets.
func (c *checker) tenantNames(spec place, s *v1alpha1.TenantSpec) {
	for i, n := range s.RemoteNamespaces {
		p := spec.in("remoteNamespaces", i)
		switch {
		case !namespacePattern.MatchString(n) || len(n) > 63:
			c.errorf(p, "BadName", "%s: %q is neither a namespace nor a pattern with *", p, n)
		case forbiddenNamespace(n):
			c.errorf(p, "NamespaceForbidden", "%s: namespace %s belongs to the provider or its tools and is never mapped to", p, n)
		}
	}
	for i, secret := range s.Secrets {
		p := spec.in("secrets", i)
		c.label(p.in("consumer"), secret.Consumer)
		c.label(p.in("namespace"), secret.Namespace)
		c.secret(p, v1alpha1.SecretKeyRef{Name: secret.Name})
	}
}
