package doctor

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Kind names a kind of objects that is looked at, as in the objects' kind.
type Kind string

// The kinds that are looked at.
const (
	Slices             Kind = "ResourceSlice"
	Tenants            Kind = "Tenant"
	VirtualNodes       Kind = "VirtualNode"
	Offloadings        Kind = "NamespaceOffloading"
	Quotas             Kind = "Quota"
	Foreign            Kind = "ForeignCluster"
	Nodes              Kind = "Node"
	Namespaces         Kind = "Namespace"
	Pods               Kind = "Pod"
	Budgets            Kind = "PodDisruptionBudget"
	DaemonSets         Kind = "DaemonSet"
	Validating         Kind = "ValidatingAdmissionPolicy"
	ValidatingBindings Kind = "ValidatingAdmissionPolicyBinding"
	Mutating           Kind = "MutatingAdmissionPolicy"
	MutatingBindings   Kind = "MutatingAdmissionPolicyBinding"
	// Webhooks are looked at where the agent's webhook is the form of admission.
	Webhooks Kind = "MutatingWebhookConfiguration"
	// Identities are the Secrets from which Liqo reaches a provider, without
	// their data.
	Identities Kind = "Secret"
	// Deployments are those of Liqo's controller manager.
	Deployments Kind = "Deployment"
)

// Cluster is what could be seen of a cluster.
type Cluster struct {
	// Name in the fleet.
	Name string
	// NoAccess is why there is no way to it, Unreachable why it does not answer;
	// "" when there is, and it does.
	NoAccess, Unreachable string
	// NotServed are the kinds that the cluster does not know, Unread those that
	// could not be listed, with why.
	NotServed []Kind
	Unread    map[Kind]string
	// Form of admission that the cluster's file names (v1alpha1.ClusterSpec.Admission), and
	// the versions of MutatingAdmissionPolicy that it serves: nil where that is not known.
	Form   string
	Serves []string
	// LiqoHidden: the account may not list Liqo's Deployments, which say its version.
	LiqoHidden bool
	// Objects by kind, for kinds that were read.
	Objects map[Kind][]unstructured.Unstructured
}

// Picture is what is known of one contract's chain. Of the clusters only what
// concerns the contract matters; both may be shared by many pictures.
type Picture struct {
	// Now is the time of looking.
	Now      time.Time
	Contract *v1alpha1.Contract
	// Wanted: an intent's file names the contract's intent. Frozen is why that
	// file is not acted on, "" when it is.
	Wanted bool
	Frozen string
	// Manifest: the contract's slice stands in git.
	Manifest bool
	// Enforcement that the intent demands, "" for none.
	Enforcement v1alpha1.Enforcement
	// Auto: the fleet peers its clusters by itself.
	Auto bool
	// OnNetwork and OffNetwork are those of the two clusters whose files have
	// Liqo's network module connect them, or another network.
	OnNetwork, OffNetwork []string
	// ConsumerID and ProviderID are Liqo's ids, OnConsumer and OnProvider its
	// namespaces for the other side.
	ConsumerID, ProviderID, OnConsumer, OnProvider string
	Consumer, Provider                             *Cluster
}

// read reports whether objects of a kind are known.
func (c *Cluster) read(k Kind) bool {
	_, ok := c.Objects[k]
	return ok
}

// all are a kind's objects that pick picks.
func (c *Cluster) all(k Kind, pick func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i := range c.Objects[k] {
		if u := &c.Objects[k][i]; pick(u) {
			out = append(out, u)
		}
	}
	return out
}

// one is an object by its name, nil when there is none.
func (c *Cluster) one(k Kind, namespace, name string) *unstructured.Unstructured {
	for i := range c.Objects[k] {
		if u := &c.Objects[k][i]; u.GetName() == name && u.GetNamespace() == namespace {
			return u
		}
	}
	return nil
}

// text is a string field of an object, "" when it has none.
func text(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

// condition is the newest entry of a type: Liqo writes some types twice.
func condition(u *unstructured.Unstructured, kind string) map[string]any {
	return conditionAt(u, kind, "status", "conditions")
}

// conditionAt is the newest condition of a type in a list somewhere else.
func conditionAt(u *unstructured.Unstructured, kind string, at ...string) map[string]any {
	list, _, _ := unstructured.NestedSlice(u.Object, at...)
	var found map[string]any
	for _, entry := range list {
		c, ok := entry.(map[string]any)
		if !ok || c["type"] != kind {
			continue
		}
		if found == nil || field(c, "lastTransitionTime") >= field(found, "lastTransitionTime") {
			found = c
		}
	}
	return found
}

func field(c map[string]any, name string) string {
	s, _ := c[name].(string)
	return s
}

// amounts are quantities of an object; one that cannot be read is left out.
func amounts(u *unstructured.Unstructured, path ...string) v1alpha1.Resources {
	raw, _, _ := unstructured.NestedMap(u.Object, path...)
	out := make(v1alpha1.Resources, len(raw))
	for name, v := range raw {
		s, _ := v.(string)
		if amount, err := v1alpha1.ParseAmount(name, s); err == nil {
			out[name] = amount
		}
	}
	return out
}
