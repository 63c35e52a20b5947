package doctor

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

func checkAccess(p *Picture) []Finding {
	out := reachable(p.Consumer, "nothing can be applied there")
	// Without peerings to make nobody but Liqo needs a way to the provider.
	if p.Auto {
		out = append(out, reachable(p.Provider, "no peering can be made or renewed with it")...)
	}
	return out
}

// reachable says why a cluster cannot be looked at.
func reachable(c *Cluster, consequence string) []Finding {
	switch {
	case c.NoAccess != "":
		return finding(NoAccess, "cluster "+c.Name, "there is no way to it, so that "+consequence+": "+c.NoAccess,
			"give access.kubeconfigSecretRef in clusters/%s.yaml, or %[1]s.kubeconfig in --kubeconfigs-dir: fleetbroker kubeconfig %[1]s makes it", c.Name)
	case c.Unreachable != "":
		return finding(NoAnswer, "cluster "+c.Name, "its API server does not answer, so that "+consequence+": "+c.Unreachable,
			"see whether the API server runs, and whether the server and the certificates of its kubeconfig are still right")
	}
	return nil
}

func checkInstalled(p *Picture) []Finding {
	return append(installed(p.Consumer), installed(p.Provider)...)
}

// installed says what a cluster does not serve.
func installed(c *Cluster) []Finding {
	var liqo, policies []string
	for _, k := range c.NotServed {
		switch k {
		case Validating, ValidatingBindings:
			policies = append(policies, string(k))
		default:
			liqo = append(liqo, string(k))
		}
	}
	var out []Finding
	if len(liqo) > 0 {
		out = finding(NoLiqo, "cluster "+c.Name, "it does not serve Liqo's kinds "+strings.Join(liqo, ", "), "install Liqo v1.2 there (install/liqo)")
	}
	out = append(out, liqoTooOld(c)...)
	if len(policies) > 0 {
		out = append(out, finding(NoPolicyKinds, "cluster "+c.Name, "it does not serve "+strings.Join(policies, ", "),
			"ValidatingAdmissionPolicy is v1 since Kubernetes 1.30: upgrade the cluster")...)
	}
	out = append(out, admissionForm(c)...)
	for i := range out {
		out[i].Link = LinkInstalled
	}
	return out
}

func checkRights(p *Picture) []Finding { return append(unread(p.Consumer), unread(p.Provider)...) }

// unread says what could not be looked at, so that its checks found nothing.
func unread(c *Cluster) []Finding {
	byWhy := map[string][]string{}
	for k, why := range c.Unread {
		byWhy[why] = append(byWhy[why], string(k))
	}
	var out []Finding
	for why, kinds := range byWhy {
		slices.Sort(kinds)
		out = append(out, Finding{
			Code: Unreadable, Link: LinkRights, Where: "cluster " + c.Name, Cause: "cannot read " + strings.Join(kinds, ", ") + ": " + why,
			Remedy: "use a kubeconfig that may list them: what rests on them was not checked",
		})
	}
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.Cause, b.Cause) })
	return out
}

// policyNames are what keeps tenants apart on a consumer (package manifests).
var policyNames = map[Kind][]string{
	Validating: {"fleetbroker-intent-guard", "fleetbroker-namespace-guard", "fleetbroker-no-daemonsets", "fleetbroker-virtualnode-guard"},
	Mutating:   {"fleetbroker-intent-tolerations"},
}

// has reports whether a policy stands, under its name or that of a fleet with an
// id (fleetbroker-<id>-intent-guard).
func (c *Cluster) has(k Kind, name string) bool {
	return len(c.all(k, func(u *unstructured.Unstructured) bool {
		return u.GetName() == name || "fleetbroker-"+manifests.PolicyName(u.GetName()) == name
	})) > 0
}

func checkPolicies(p *Picture) []Finding {
	c := p.Consumer
	var out []Finding
	out = append(out, checkWebhook(c)...)
	for _, k := range []Kind{Validating, Mutating} {
		if k == Mutating && c.Form == v1alpha1.AdmissionWebhook {
			continue
		}
		bindings := k + "Binding"
		for _, name := range policyNames[k] {
			if c.read(k) && !c.has(k, name) {
				out = append(out, finding(PolicyMissing, at(c, k, "", name), "it is missing: tenants are not kept apart, or pods get no toleration",
					"the daemon puts it back within seconds: see why it cannot in its log, and what deletes it")...)
			}
			if c.read(bindings) && !c.has(bindings, name) {
				out = append(out, finding(PolicyUnbound, at(c, bindings, "", name), "it is missing, so that its policy does nothing",
					"the daemon puts it back within seconds: see why it cannot in its log, and what deletes it")...)
			}
		}
	}
	if ns := c.one(Namespaces, "", p.OnConsumer); ns != nil && ns.GetLabels()[v1alpha1.LabelManaged] == "" {
		out = append(out, finding(NamespaceUnguarded, at(c, Namespaces, "", p.OnConsumer), "it has no label "+v1alpha1.LabelManaged+": virtual nodes in it are not guarded",
			"the daemon labels it: see why it cannot in its log")...)
	}
	return out
}

// tenantNamespaces are Liqo's namespaces on a cluster for another one.
func tenantNamespaces(c *Cluster, other string) []string {
	var out []string
	for _, ns := range c.all(Namespaces, func(u *unstructured.Unstructured) bool {
		return u.GetLabels()[labelTenantNamespace] == "true" && u.GetLabels()[labelRemoteCluster] == other
	}) {
		out = append(out, ns.GetName())
	}
	slices.Sort(out)
	return out
}

// quoted is a list for people.
func quoted(list []string) string { return fmt.Sprintf("%q", list) }
