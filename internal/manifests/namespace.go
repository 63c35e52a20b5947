package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	offv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/podselector"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Names on namespaces.
const (
	// OffloadingName is what Liqo demands a NamespaceOffloading to be called.
	OffloadingName = "offloading"
	// quotaName is the ResourceQuota of an offloaded namespace.
	quotaName = "fleetbroker"
	// AnnotationCreate "false" on a Namespace says that it is only labelled
	// where it exists; who applies directly leaves a missing one missing.
	AnnotationCreate = v1alpha1.Group + "/create"
)

// neverPrune keeps Flux and Argo CD from deleting a Namespace, and with it a
// team's data, when its file goes.
var neverPrune = map[string]string{
	"kustomize.toolkit.fluxcd.io/prune": "disabled",
	"argocd.argoproj.io/sync-options":   "Prune=false",
}

// maxAnnotations is the limit of Kubernetes for all annotations of an object, in bytes.
const maxAnnotations = 256 << 10

func podStrategy(ns v1alpha1.OffloadNamespace) offv1beta1.PodOffloadingStrategyType {
	if ns.PodOffloadingStrategy == "" {
		return offv1beta1.LocalAndRemotePodOffloadingStrategyType
	}
	return offv1beta1.PodOffloadingStrategyType(ns.PodOffloadingStrategy)
}

func mappingStrategy(ns v1alpha1.OffloadNamespace) offv1beta1.NamespaceMappingStrategyType {
	if ns.NamespaceMappingStrategy == "" {
		return offv1beta1.DefaultNameMappingStrategyType
	}
	return offv1beta1.NamespaceMappingStrategyType(ns.NamespaceMappingStrategy)
}

// share is one contract's wish for a namespace.
type share struct {
	contract *v1alpha1.Contract
	wish     v1alpha1.OffloadNamespace
}

// reservedNamespace reports whether a namespace is never offloaded: it belongs
// to Kubernetes, Liqo, the broker or a GitOps tool.
func reservedNamespace(name string) bool {
	return v1alpha1.SystemNamespace(name)
}

// namespaceObjects renders an offloaded namespace, merged over the contracts
// that name it, oldest first. Releasing contracts still count, so that nothing
// is torn away from pods that are being evicted; only the list of intents is
// already without them.
func (r *render) namespaceObjects(consumer, name string, contracts []*v1alpha1.Contract) ([]any, []Problem) {
	if reservedNamespace(name) {
		return nil, []Problem{{Consumer: consumer, Namespace: name, Message: "this namespace is never offloaded: take it out of the intents' offload.namespaces"}}
	}
	shares, problems := sharesOf(consumer, name, contracts)
	ns := r.offloadedNamespace(name, shares)
	if n := annotationBytes(ns); n > maxAnnotations {
		problems = append(problems, Problem{Consumer: consumer, Namespace: name, Message: fmt.Sprintf(
			"its annotations would have %d bytes, Kubernetes allows %d: spread the intents over more namespaces", n, maxAnnotations)})
	}
	out := []any{ns, r.namespaceOffloading(name, shares)}
	if quota := r.resourceQuota(name, shares); quota != nil {
		out = append(out, quota)
	}
	return out, problems
}

// sharesOf are the wishes that can be merged; the oldest decides, and what
// contradicts it is a problem.
func sharesOf(consumer, name string, contracts []*v1alpha1.Contract) ([]share, []Problem) {
	var shares []share
	var problems []Problem
	for _, c := range contracts {
		for _, wish := range offloaded(c) {
			if wish.Name != name {
				continue
			}
			if len(shares) == 0 {
				shares = append(shares, share{c, wish})
				continue
			}
			first := shares[0]
			problem := Problem{Contract: c.Metadata.Name, Consumer: consumer, Namespace: name}
			if first.contract.Metadata.Namespace != c.Metadata.Namespace {
				problem.Message = fmt.Sprintf("tenant %s already offloads this namespace: contract %s of tenant %s cannot use it",
					first.contract.Metadata.Namespace, c.Metadata.Name, c.Metadata.Namespace)
				problems = append(problems, problem)
				continue
			}
			if podStrategy(first.wish) != podStrategy(wish) || mappingStrategy(first.wish) != mappingStrategy(wish) || first.wish.RemoteNamespaceName != wish.RemoteNamespaceName {
				problem.Message = fmt.Sprintf("its strategies differ from those of contract %s, which came first and decides: make the intents' offload.namespaces entries equal", first.contract.Metadata.Name)
				problems = append(problems, problem)
			}
			shares = append(shares, share{c, wish})
		}
	}
	return shares, problems
}

func (r *render) offloadedNamespace(name string, shares []share) *corev1.Namespace {
	annotations := r.ofFleet(maps.Clone(neverPrune))
	granted := map[string]bool{}
	create := false
	for _, s := range shares {
		create = create || s.wish.Create
		if releasing(s.contract) {
			continue
		}
		value := r.intentValue(s.contract)
		granted[value] = true
		if selector := podselector.Annotation(s.wish.PodSelector); selector != "" {
			annotations[v1alpha1.AnnotationPodsPrefix+value] = selector
		}
	}
	// Written even when empty: what is left out would stay on the cluster
	// wherever somebody else applied it too.
	annotations[v1alpha1.AnnotationIntents] = strings.Join(slices.Sorted(maps.Keys(granted)), ",")
	if !create {
		annotations[AnnotationCreate] = "false"
	}
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{v1alpha1.LabelTenant: shares[0].contract.Metadata.Namespace},
			Annotations: annotations,
		},
	}
}

func annotationBytes(ns *corev1.Namespace) int {
	n := 0
	for k, v := range ns.Annotations {
		n += len(k) + len(v)
	}
	return n
}

// namespaceOffloading selects whole providers only: a selector that matches
// some virtual nodes of a provider and not others makes Liqo v1.2.0 delete and
// recreate the remote namespace every 5 s. The terms are always written out:
// without them Liqo's controller never gets the object ready.
func (r *render) namespaceOffloading(name string, shares []share) *offv1beta1.NamespaceOffloading {
	providers := map[string]bool{}
	for _, s := range shares {
		providers[LiqoID(r.clusters, s.contract.Spec.Provider)] = true
	}
	first := shares[0]
	spec := offv1beta1.NamespaceOffloadingSpec{
		PodOffloadingStrategy:    podStrategy(first.wish),
		NamespaceMappingStrategy: mappingStrategy(first.wish),
		ClusterSelector: corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key:      LabelRemoteClusterID,
				Operator: corev1.NodeSelectorOpIn,
				Values:   slices.Sorted(maps.Keys(providers)),
			}},
		}}},
	}
	if spec.NamespaceMappingStrategy == offv1beta1.SelectedNameMappingStrategyType {
		spec.RemoteNamespaceName = first.wish.RemoteNamespaceName
	}
	return &offv1beta1.NamespaceOffloading{
		TypeMeta:   metav1.TypeMeta{APIVersion: offv1beta1.SchemeGroupVersion.String(), Kind: "NamespaceOffloading"},
		ObjectMeta: metav1.ObjectMeta{Name: OffloadingName, Namespace: name, Labels: r.ownedLabels(first.contract.Metadata.Namespace)},
		Spec:       spec,
	}
}

// resourceQuota is what is contracted for the namespace by intents that asked
// for a quota, or nil when none did.
func (r *render) resourceQuota(name string, shares []share) *corev1.ResourceQuota {
	sum := v1alpha1.Resources{}
	asked := false
	for _, s := range shares {
		if !s.wish.Quota {
			continue
		}
		asked = true
		for resourceName, amount := range s.contract.Spec.Resources {
			if releasing(s.contract) {
				amount = v1alpha1.Amount{}
			}
			sum[resourceName] = sum[resourceName].Add(amount)
		}
	}
	if !asked {
		return nil
	}
	hard := corev1.ResourceList{}
	for resourceName, amount := range sum {
		limited := "requests." + resourceName
		if resourceName == v1alpha1.Pods {
			limited = resourceName
		}
		hard[corev1.ResourceName(limited)] = resource.MustParse(amount.Canonical(resourceName))
	}
	return &corev1.ResourceQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
		ObjectMeta: metav1.ObjectMeta{Name: quotaName, Namespace: name, Labels: r.ownedLabels(shares[0].contract.Metadata.Namespace)},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	}
}

func (r *render) ownedLabels(tenant string) map[string]string {
	return r.ofFleet(map[string]string{v1alpha1.LabelTenant: tenant, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})
}

// peeringNamespace is a namespace in which Liqo keeps a peering, marked so that
// virtual nodes in it are guarded. Liqo finds it by its two labels, so that it
// may be there before the peering is.
func peeringNamespace(clusters map[string]*v1alpha1.Cluster, name string, providers []string) *corev1.Namespace {
	labels := map[string]string{v1alpha1.LabelManaged: "true"}
	if len(providers) == 1 {
		labels[labelTenantNamespace] = "true"
		labels[LabelRemoteClusterID] = LiqoID(clusters, providers[0])
	}
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: maps.Clone(neverPrune)},
	}
}
