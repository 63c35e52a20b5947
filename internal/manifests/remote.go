package manifests

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// RemoteConflicts are the mappings of namespaces that must not reach a cluster,
// by consumer and namespace, with why: what a namespace of another tenant,
// consumer or name is called at the same provider. Of those that share a remote
// namespace the one with the oldest contract keeps it, the others are named. A
// provider's own namespaces are nobody's. Planning never makes such a contract;
// what applies looks again, because to apply one hands a tenant's namespace,
// with what is in it, to another.
func RemoteConflicts(contracts iter.Seq[*v1alpha1.Contract], clusters map[string]*v1alpha1.Cluster) map[[2]string]string {
	type remote struct{ provider, name string }
	type mapping struct{ tenant, consumer, namespace string }
	var list []*v1alpha1.Contract
	for c := range contracts {
		if Rendered(c) && len(offloaded(c)) > 0 {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *v1alpha1.Contract) int {
		return cmp.Or(a.Spec.Term.Start.Compare(b.Spec.Term.Start.Time), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	holders := map[remote]mapping{}
	out := map[[2]string]string{}
	for _, c := range list {
		for _, ns := range offloaded(c) {
			name := ns.RemoteName(LiqoID(clusters, c.Spec.Consumer))
			own := mapping{c.Metadata.Namespace, c.Spec.Consumer, ns.Name}
			at := remote{c.Spec.Provider, name}
			holder, held := holders[at]
			if !held {
				holders[at] = own
			}
			why := ""
			switch {
			case reservedNamespace(name):
				why = fmt.Sprintf("at %s it would be %s, which belongs to the provider: the intent must give it another name there", at.provider, name)
			case held && holder != own:
				why = fmt.Sprintf("at %s it would be %s, which namespace %s of tenant %s in %s has: the intent must give it another name there", at.provider, name, holder.namespace, holder.tenant, holder.consumer)
			}
			if k := [2]string{c.Spec.Consumer, ns.Name}; why != "" && out[k] == "" {
				out[k] = why
			}
		}
	}
	return out
}
