package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// What a consumer and a provider show when all is well.
const (
	onRome = `
kind: Namespace
metadata: {name: liqo-tenant-paris, labels: {liqo.io/tenant-namespace: "true", liqo.io/remote-cluster-id: paris, fleetbroker.io/managed: "true"}}
---
kind: Namespace
metadata: {name: vision, labels: {fleetbroker.io/tenant: vision, liqo.io/scheduling-enabled: "true"}, annotations: {fleetbroker.io/intents: "vision.other,vision.train"}}
---
kind: Secret
metadata:
  name: kubeconfig-controlplane-paris
  namespace: liqo-tenant-paris
  labels: {liqo.io/remote-cluster-id: paris}
  annotations: {fleetbroker.io/renew-after: "2026-11-24T00:00:00Z", liqo.io/remote-tenant-namespace: liqo-tenant-rome}
---
kind: ForeignCluster
metadata: {name: paris}
status: {conditions: [{type: APIServerStatus, status: Established}]}
---
kind: ResourceSlice
metadata:
  name: train
  namespace: liqo-tenant-paris
  labels: {liqo.io/remoteID: paris, liqo.io/remote-cluster-id: paris, liqo.io/replication: "true"}
  annotations: {liqo.io/create-virtual-node: "true"}
spec: {class: fleetbroker, resources: {cpu: "8", nvidia.com/gpu: "2"}}
status: {resources: {cpu: "8", nvidia.com/gpu: "2"}, conditions: [{type: Authentication, status: Accepted}, {type: Resources, status: Accepted}]}
---
kind: VirtualNode
metadata: {name: train, namespace: liqo-tenant-paris, ownerReferences: [{kind: ResourceSlice, name: train}]}
spec: {taints: [{key: fleetbroker.io/intent, value: vision.train, effect: NoSchedule}]}
---
kind: Node
metadata: {name: train, labels: {liqo.io/type: virtual-node}}
status: {conditions: [{type: Ready, status: "True"}], allocatable: {cpu: "8", memory: 32Gi, nvidia.com/gpu: "2"}}
---
kind: NamespaceOffloading
metadata: {name: offloading, namespace: vision, generation: 1, creationTimestamp: "2026-11-20T11:00:00Z"}
spec: {clusterSelector: {nodeSelectorTerms: []}}
status: {offloadingPhase: Ready, observedGeneration: 1}
---
kind: Pod
metadata: {name: one, namespace: vision, labels: {app: train}, creationTimestamp: "2026-11-20T11:30:00Z"}
spec: {nodeName: train}
status: {phase: Running}
---
kind: PodDisruptionBudget
metadata: {name: train, namespace: vision}
spec: {selector: {matchLabels: {app: train}}}
status: {disruptionsAllowed: 0}
`
	onParis = `
kind: Namespace
metadata: {name: liqo-tenant-rome, labels: {liqo.io/tenant-namespace: "true", liqo.io/remote-cluster-id: rome}}
---
kind: Tenant
metadata: {name: rome, namespace: liqo-tenant-rome}
spec: {clusterID: rome, tenantCondition: Active}
---
kind: ResourceSlice
metadata: {name: train, namespace: liqo-tenant-rome}
status: {conditions: [{type: Resources, status: Accepted}]}
---
kind: Quota
metadata: {name: train-0123456789ab, namespace: liqo-tenant-rome}
spec: {limitsEnforcement: None, resources: {cpu: "8", nvidia.com/gpu: "2"}}
---
kind: Node
metadata: {name: gpu, labels: {fleetbroker.io/pool: h100}}
`
)

// side reads a cluster's objects; every kind of the role has been read.
func side(t *testing.T, name, role, docs string) *Cluster {
	t.Helper()
	c := &Cluster{Name: name, Form: v1alpha1.AdmissionV1, Serves: []string{v1alpha1.AdmissionV1}, Unread: map[Kind]string{}, Objects: map[Kind][]unstructured.Unstructured{}}
	for k, from := range sources {
		if from.consumer && role == "consumer" || from.provider && role == "provider" {
			c.Objects[k] = nil
		}
	}
	for _, doc := range strings.Split(docs, "---\n") {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		c.Objects[Kind(u.GetKind())] = append(c.Objects[Kind(u.GetKind())], u)
	}
	if role == "provider" {
		var u unstructured.Unstructured
		u.SetName(classDefault)
		c.Objects[Validating], c.Objects[ValidatingBindings] = []unstructured.Unstructured{u}, []unstructured.Unstructured{u}
	}
	for k, names := range policyNames {
		if role != "consumer" {
			break
		}
		for _, policy := range names {
			var u unstructured.Unstructured
			u.SetName(policy)
			c.Objects[k] = append(c.Objects[k], u)
			c.Objects[k+"Binding"] = append(c.Objects[k+"Binding"], u)
		}
	}
	return c
}

// well is a picture in which nothing is wrong.
func well(t *testing.T) *Picture {
	t.Helper()
	gpu := v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(8), "nvidia.com/gpu": v1alpha1.AmountOf(2)}
	cpu, err := v1alpha1.ParseAmount(v1alpha1.CPU, "8")
	if err != nil {
		t.Fatal(err)
	}
	gpu[v1alpha1.CPU] = cpu
	c := &v1alpha1.Contract{
		Metadata: v1alpha1.Metadata{Name: "train", Namespace: "vision"},
		Spec: v1alpha1.ContractSpec{
			Intent: v1alpha1.ContractIntent{Name: "train", Path: "intents/vision/train.yaml"}, Consumer: "rome", Provider: "paris", Resources: gpu, Class: "fleetbroker",
			Offload: &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: "vision"}}},
		},
		Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseActive},
	}
	return &Picture{
		Now: now, Contract: c, Wanted: true, Manifest: true, Auto: true,
		ConsumerID: "rome", ProviderID: "paris", OnConsumer: "liqo-tenant-paris", OnProvider: "liqo-tenant-rome",
		Consumer: side(t, "rome", "consumer", onRome), Provider: side(t, "paris", "provider", onParis),
	}
}

// drop takes the objects of a kind away; none names all.
func drop(c *Cluster, k Kind, names ...string) {
	c.Objects[k] = slices.DeleteFunc(slices.Clone(c.Objects[k]), func(u unstructured.Unstructured) bool {
		return len(names) == 0 || slices.Contains(names, u.GetName())
	})
}

// set changes a field of the first object of a kind with this name.
func set(t *testing.T, c *Cluster, k Kind, name string, value any, path ...string) {
	t.Helper()
	for i := range c.Objects[k] {
		if c.Objects[k][i].GetName() != name {
			continue
		}
		if value == nil {
			unstructured.RemoveNestedField(c.Objects[k][i].Object, path...)
		} else if err := unstructured.SetNestedField(c.Objects[k][i].Object, value, path...); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("there is no %s %s", k, name)
}

// add puts an object in.
func add(t *testing.T, c *Cluster, doc string) {
	t.Helper()
	var u unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
		t.Fatal(err)
	}
	c.Objects[Kind(u.GetKind())] = append(c.Objects[Kind(u.GetKind())], u)
}

func TestWell(t *testing.T) {
	d := Diagnose(well(t))
	if len(d.Findings) > 0 || len(d.Checked) != len(links) {
		t.Fatalf("%+v", d)
	}
}

// A virtual node that Liqo did not make is as it should be without an owner.
func TestWellByHand(t *testing.T) {
	p := well(t)
	p.Contract.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{Shares: []v1alpha1.Resources{{}}}
	set(t, p.Consumer, Slices, "train", "false", "metadata", "annotations", annotationCreate)
	for _, k := range []Kind{VirtualNodes, Nodes} {
		set(t, p.Consumer, k, "train", "train.1", "metadata", "name")
	}
	set(t, p.Consumer, VirtualNodes, "train.1", nil, "metadata", "ownerReferences")
	set(t, p.Consumer, VirtualNodes, "train.1", map[string]any{"hard": map[string]any{"cpu": "8", "nvidia.com/gpu": "2"}}, "spec", "resourceQuota")
	if d := Diagnose(p); len(d.Findings) > 0 {
		t.Fatalf("%+v", d)
	}
}

// Every trouble has its finding: one thing is changed about a chain that is
// well, and the first finding names it.
func TestTroubles(t *testing.T) {
	conditions := func(entries ...map[string]any) []any {
		var out []any
		for _, e := range entries {
			out = append(out, e)
		}
		return out
	}
	pending := func(t *testing.T, p *Picture, made string, tolerations []any) {
		set(t, p.Consumer, Pods, "one", nil, "spec", "nodeName")
		set(t, p.Consumer, Pods, "one", made, "metadata", "creationTimestamp")
		set(t, p.Consumer, Pods, "one", tolerations, "spec", "tolerations")
		set(t, p.Consumer, Pods, "one", map[string]any{"phase": "Pending", "conditions": conditions(map[string]any{
			"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available: 1 Insufficient nvidia.com/gpu."})}, "status")
	}
	ours := []any{map[string]any{"key": "fleetbroker.io/intent", "value": "vision.train"}}
	// The chain with a virtual node of people's Secret instead of Liqo's.
	byHand := func(t *testing.T, p *Picture) {
		p.Contract.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyRef{Name: "vision-at-paris"}}
		set(t, p.Consumer, Slices, "train", "false", "metadata", "annotations", annotationCreate)
		set(t, p.Consumer, VirtualNodes, "train", nil, "metadata", "ownerReferences")
		set(t, p.Consumer, VirtualNodes, "train", map[string]any{"hard": map[string]any{"cpu": "8", "nvidia.com/gpu": "2"}}, "spec", "resourceQuota")
	}
	for name, c := range map[string]struct {
		trouble func(*testing.T, *Picture)
		code    Code
		cause   string
	}{
		"a frozen file":  {func(_ *testing.T, p *Picture) { p.Frozen = "line 3: unknown field" }, IntentFrozen, "unknown field"},
		"no file":        {func(_ *testing.T, p *Picture) { p.Wanted = false }, IntentGone, "no file names this intent"},
		"not in git":     {func(_ *testing.T, p *Picture) { p.Manifest = false }, SliceNotInGit, "not in git"},
		"no kubeconfig":  {func(_ *testing.T, p *Picture) { p.Consumer = &Cluster{Name: "rome", NoAccess: "no file"} }, NoAccess, "no way to it"},
		"no provider's":  {func(_ *testing.T, p *Picture) { p.Provider = &Cluster{Name: "paris", NoAccess: "no file"} }, NoAccess, "no peering can be made"},
		"no answer":      {func(_ *testing.T, p *Picture) { p.Provider = &Cluster{Name: "paris", Unreachable: "refused"} }, NoAnswer, "does not answer"},
		"no Liqo":        {func(_ *testing.T, p *Picture) { p.Provider.NotServed = []Kind{Slices} }, NoLiqo, "does not serve Liqo's kinds ResourceSlice"},
		"old Kubernetes": {func(_ *testing.T, p *Picture) { p.Consumer.Serves = []string{} }, NoPolicyKinds, "does not serve MutatingAdmissionPolicy"},
		"older still":    {func(_ *testing.T, p *Picture) { p.Consumer.NotServed = []Kind{Validating} }, NoPolicyKinds, "does not serve ValidatingAdmissionPolicy"},
		"other version":  {func(_ *testing.T, p *Picture) { p.Consumer.Serves = []string{"v1beta1"} }, NoPolicyKinds, "serves MutatingAdmissionPolicy as v1beta1 and not as v1"},
		"old provider":   {func(_ *testing.T, p *Picture) { p.Provider.Form, p.Provider.Serves = "v1beta1", []string{"v1"} }, NoPolicyKinds, "as v1 and not as v1beta1"},
		"an old Liqo": {func(t *testing.T, p *Picture) {
			add(t, p.Provider, `{kind: Deployment, metadata: {name: liqo-controller-manager, namespace: liqo, labels: {app.kubernetes.io/version: v0.10.3}}}`)
		}, LiqoTooOld, "runs Liqo v0.10.3, which is too old"},
		"no rights":    {func(_ *testing.T, p *Picture) { p.Consumer.Unread = map[Kind]string{Pods: "Forbidden"} }, Unreadable, "cannot read Pod"},
		"never peered": {func(_ *testing.T, p *Picture) { drop(p.Consumer, Namespaces, "liqo-tenant-paris") }, TenantNamespaceMissing, "never peered"},
		"being deleted": {func(t *testing.T, p *Picture) {
			set(t, p.Provider, Namespaces, "liqo-tenant-rome", "2026-11-20T11:00:00Z", "metadata", "deletionTimestamp")
		}, TenantNamespaceDeleting, "is being deleted"},
		"without labels": {func(t *testing.T, p *Picture) {
			set(t, p.Provider, Namespaces, "liqo-tenant-rome", nil, "metadata", "labels")
		}, TenantNamespaceUnlabelled, "has no labels by which"},
		"leftovers": {func(t *testing.T, p *Picture) {
			add(t, p.Provider, `{kind: Namespace, metadata: {name: liqo-tenant-old, labels: {liqo.io/tenant-namespace: "true", liqo.io/remote-cluster-id: rome}}}`)
		}, TenantNamespaceTwice, "2 namespaces"},
		"another's name": {func(_ *testing.T, p *Picture) { p.OnProvider = "liqo-rome" }, TenantNamespaceOther, "Liqo's namespace for rome is this one"},
		"no identity":    {func(_ *testing.T, p *Picture) { drop(p.Consumer, Identities) }, IdentityMissing, "slices are not replicated"},
		"an identity that ends": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Identities, "kubeconfig-controlplane-paris", "2026-11-20T11:00:00Z", "metadata", "deletionTimestamp")
		}, IdentityDeleting, "ends only with the last slice"},
		"an identity elsewhere": {func(t *testing.T, p *Picture) {
			add(t, p.Consumer, `{kind: Secret, metadata: {name: old, namespace: default, labels: {liqo.io/remote-cluster-id: paris}}}`)
		}, IdentityElsewhere, "not in liqo-tenant-paris"},
		"a Tenant elsewhere": {func(t *testing.T, p *Picture) {
			set(t, p.Provider, Tenants, "rome", "liqo-tenant-old", "metadata", "namespace")
		}, TenantElsewhere, "not in namespace liqo-tenant-rome"},
		"without CPU": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Nodes, "train", map[string]any{}, "status")
		}, NodeWithoutCPU, "not ready"},
		"old credentials": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Identities, "kubeconfig-controlplane-paris", "2026-11-20T09:00:00Z", "metadata", "annotations", annotationRenew)
		}, IdentityOld, "to be renewed"},
		"a wrong way": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Identities, "kubeconfig-controlplane-paris", "elsewhere", "metadata", "annotations", annotationRemote)
		}, IdentityLeadsElsewhere, "leads to namespace elsewhere"},
		"unknown to Liqo": {func(_ *testing.T, p *Picture) { drop(p.Consumer, Foreign) }, ForeignMissing, "does not know of the provider"},
		"an outage": {func(t *testing.T, p *Picture) {
			p.Provider, p.Auto = &Cluster{Name: "paris", Unreachable: "refused"}, false
			set(t, p.Consumer, Foreign, "paris", conditions(map[string]any{"type": "APIServerStatus", "status": "Error", "message": "timeout"}), "status", "conditions")
		}, ForeignUnreachable, "does not reach the provider's API server: timeout"},
		"an identity that is refused": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Foreign, "paris", conditions(map[string]any{"type": "APIServerStatus", "status": "Error", "message": "timeout"}), "status", "conditions")
		}, IdentityRefused, "is not taken there"},
		"no Tenant": {func(_ *testing.T, p *Picture) { drop(p.Provider, Tenants) }, TenantMissing, "failed getting quota"},
		"cordoned": {func(t *testing.T, p *Picture) {
			set(t, p.Provider, Tenants, "rome", "Cordoned", "spec", "tenantCondition")
		}, TenantCordoned, "Cordoned"},
		"drained": {func(t *testing.T, p *Picture) {
			set(t, p.Provider, Tenants, "rome", "Drained", "spec", "tenantCondition")
		}, TenantDrained, "Drained"},
		"no policy": {func(_ *testing.T, p *Picture) { drop(p.Consumer, Validating, "fleetbroker-intent-guard") }, PolicyMissing, "tenants are not kept apart"},
		"unbound":   {func(_ *testing.T, p *Picture) { drop(p.Consumer, MutatingBindings) }, PolicyUnbound, "its policy does nothing"},
		"unguarded": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Namespaces, "liqo-tenant-paris", nil, "metadata", "labels", v1alpha1.LabelManaged)
		}, NamespaceUnguarded, "not guarded"},
		"no slice": {func(_ *testing.T, p *Picture) { drop(p.Consumer, Slices) }, SliceMissing, "does not exist"},
		"a slice of that name": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Slices, "train", "liqo-tenant-milan", "metadata", "namespace")
		}, SliceElsewhere, "in another namespace"},
		"no remoteID": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Slices, "train", nil, "metadata", "labels", labelRemoteID)
		}, SliceNoRemoteID, "status stays empty"},
		"a changed id": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Slices, "train", "milan", "metadata", "labels", labelRemoteID)
		}, SliceNoRemoteID, `"milan" and not paris`},
		"no cluster id": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Slices, "train", nil, "metadata", "labels", labelRemoteCluster)
		}, SliceNoClusterID, "gets no virtual node"},
		"not replicated": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Slices, "train", nil, "metadata", "labels", labelReplication)
		}, SliceNotReplicated, "nothing is replicated"},
		"no annotation": {func(t *testing.T, p *Picture) { set(t, p.Consumer, Slices, "train", nil, "metadata", "annotations") }, SliceNoNode, annotationCreate},
		"one network": {func(_ *testing.T, p *Picture) {
			p.OnNetwork, p.OffNetwork = []string{"rome"}, []string{"paris"}
		}, NetworkOneSided, "connects both or none"},
		"no network": {func(_ *testing.T, p *Picture) { p.OnNetwork = []string{"rome", "paris"} }, NetworkMissing, "nobody has connected"},
		"a network that is down": {func(t *testing.T, p *Picture) {
			p.OnNetwork = []string{"rome", "paris"}
			network(t, p, "Error")
		}, NetworkDown, "gateways are not connected, so that nothing reaches the pods on its nodes from here: ConnectionError"},
		"stuck": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Slices, "train", "2026-11-20T11:00:00Z", "metadata", "deletionTimestamp")
		}, SliceDeleting, "waits for its copy"},
		"unanswered": {func(t *testing.T, p *Picture) { set(t, p.Consumer, Slices, "train", nil, "status") }, SliceUnanswered, "has not answered"},
		"nobody's class": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Slices, "train", conditions(map[string]any{"type": "Authentication", "status": "Accepted"}), "status", "conditions")
		}, SliceClassUnanswered, "nobody on the provider answers slices of class fleetbroker"},
		"an open class": {func(_ *testing.T, p *Picture) { drop(p.Provider, ValidatingBindings, classDefault) }, SliceClassOpen, "class default is open to rome"},
		"opened for one": {func(t *testing.T, p *Picture) {
			set(t, p.Provider, Namespaces, "liqo-tenant-rome", "open", "metadata", "labels", labelDoor)
		}, SliceClassOpen, "whatever the contracts say"},
		"a closed class, not enforced": {func(t *testing.T, p *Picture) {
			p.Contract.Spec.Class = ""
			set(t, p.Consumer, Slices, "train", "default", "spec", "class")
			set(t, p.Consumer, Slices, "train", nil, "status")
		}, SliceUnanswered, "refuses slices of class default"},
		"denied": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Slices, "train", conditions(map[string]any{"type": "Resources", "status": "Denied", "message": "full"}), "status", "conditions")
		}, SliceDenied, "denies it: full"},
		"shrunk": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Slices, "train", "1", "status", "resources", "nvidia.com/gpu")
		}, SliceShrunk, "1 of 2 nvidia.com/gpu"},
		"kept keys": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Slices, "train", "1", "status", "resources", "rdma/hca")
		}, SliceKeptKey, "not asked for"},
		"no virtual node": {func(_ *testing.T, p *Picture) { drop(p.Consumer, VirtualNodes) }, VirtualNodeMissing, "does not exist"},
		"a Node of that name": {func(t *testing.T, p *Picture) {
			drop(p.Consumer, VirtualNodes)
			set(t, p.Consumer, Nodes, "train", nil, "metadata", "labels")
		}, VirtualNodeNameTaken, "a Node of the slice's name exists"},
		"bare": {func(t *testing.T, p *Picture) { set(t, p.Consumer, VirtualNodes, "train", nil, "spec", "taints") }, VirtualNodeUntainted, "has no taint of its intent"},
		"an orphan": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, VirtualNodes, "train", nil, "metadata", "ownerReferences")
		}, VirtualNodeOrphan, "has not adopted it"},
		"a blocked drain": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, VirtualNodes, "train", "2026-11-20T11:00:00Z", "metadata", "deletionTimestamp")
		}, DrainBlocked, "PodDisruptionBudget train"},
		"a drain": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, VirtualNodes, "train", "2026-11-20T11:00:00Z", "metadata", "deletionTimestamp")
			drop(p.Consumer, Budgets)
		}, DrainWaits, "1 pods are left"},
		"Liqo's beside ours": {func(t *testing.T, p *Picture) {
			byHand(t, p)
			set(t, p.Consumer, Slices, "train", "true", "metadata", "annotations", annotationCreate)
		}, SliceDoubleNode, "Liqo makes a virtual node of all of it"},
		"another size": {func(t *testing.T, p *Picture) {
			byHand(t, p)
			set(t, p.Consumer, VirtualNodes, "train", "3", "spec", "resourceQuota", "hard", "nvidia.com/gpu")
		}, VirtualNodeSize, "its resourceQuota has 3 nvidia.com/gpu, its share is 2"},
		"one of two shares": {func(t *testing.T, p *Picture) {
			byHand(t, p)
			p.Contract.Spec.VirtualNode.Shares = []v1alpha1.Resources{{}, {}}
		}, VirtualNodeMissing, "does not exist"},
		"no Secret": {func(t *testing.T, p *Picture) {
			byHand(t, p)
			drop(p.Consumer, Nodes)
		}, NodeMissing, "there is none"},
		"no Node":   {func(_ *testing.T, p *Picture) { drop(p.Consumer, Nodes) }, NodeMissing, "there is none"},
		"not ready": {func(t *testing.T, p *Picture) { set(t, p.Consumer, Nodes, "train", nil, "status", "conditions") }, NodeNotReady, "not ready"},
		"small": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Nodes, "train", "1", "status", "allocatable", "nvidia.com/gpu")
		}, NodeSmall, "1 of 2 nvidia.com/gpu"},
		"cordoned by hand": {func(t *testing.T, p *Picture) { set(t, p.Consumer, Nodes, "train", true, "spec", "unschedulable") }, NodeCordoned, "it is cordoned"},
		"no namespace":     {func(_ *testing.T, p *Picture) { drop(p.Consumer, Namespaces, "vision") }, NamespaceMissing, "does not exist"},
		"not allowed": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Namespaces, "vision", "vision.other", "metadata", "annotations", v1alpha1.AnnotationIntents)
		}, NamespaceUnlisted, "does not list vision.train"},
		"unlabelled":    {func(t *testing.T, p *Picture) { set(t, p.Consumer, Namespaces, "vision", nil, "metadata", "labels") }, NamespaceUnlabelled, "the policies do not see it"},
		"not offloaded": {func(_ *testing.T, p *Picture) { drop(p.Consumer, Offloadings) }, OffloadingMissing, "OffloadingBackOff"},
		"no selector": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Offloadings, "offloading", nil, "spec", "clusterSelector")
		}, SelectorMissing, "not written out"},
		"a narrow selector": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Offloadings, "offloading", []any{map[string]any{"matchExpressions": []any{map[string]any{"key": "kubernetes.io/hostname"}}}}, "spec", "clusterSelector", "nodeSelectorTerms")
		}, SelectorNarrow, "creates the remote namespace again"},
		"not looked at": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Offloadings, "offloading", int64(2), "metadata", "generation")
		}, OffloadingUnseen, "has not looked at it"},
		"no cluster": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Offloadings, "offloading", "NoClusterSelected", "status", "offloadingPhase")
		}, OffloadingUnmatched, "NoClusterSelected"},
		"some failed": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Offloadings, "offloading", "SomeFailed", "status", "offloadingPhase")
		}, OffloadingFailed, "SomeFailed"},
		"not scheduled": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Namespaces, "vision", nil, "metadata", "labels", labelScheduling)
		}, NamespaceUnscheduled, labelScheduling},
		"a DaemonSet": {func(t *testing.T, p *Picture) {
			add(t, p.Consumer, "{kind: DaemonSet, metadata: {name: logs, namespace: vision}}")
		}, DaemonSetInside, "without end"},
		"back-off": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Pods, "one", map[string]any{"phase": "Pending", "reason": "OffloadingBackOff"}, "status")
		}, PodBackOff, "OffloadingBackOff"},
		"aborted": {func(t *testing.T, p *Picture) {
			set(t, p.Consumer, Pods, "one", map[string]any{"phase": "Failed", "reason": "OffloadingAborted"}, "status")
		}, PodAborted, "this is final"},
		"bound":      {func(t *testing.T, p *Picture) { set(t, p.Consumer, Pods, "one", "Pending", "status", "phase") }, PodNotRunning, "does not run on the provider"},
		"too early":  {func(t *testing.T, p *Picture) { pending(t, p, "2026-11-20T10:00:00Z", nil) }, PodTooOld, "older than the namespace's offloading"},
		"too large":  {func(t *testing.T, p *Picture) { pending(t, p, "2026-11-20T11:30:00Z", ours) }, PodFitsNowhere, "fits no node: 0/2 nodes"},
		"not copied": {func(_ *testing.T, p *Picture) { drop(p.Provider, Slices) }, CopyMissing, "no copy of the slice"},
		"no Quota":   {func(_ *testing.T, p *Picture) { drop(p.Provider, Quotas) }, QuotaMissing, "failed getting quota"},
		"another Quota": {func(t *testing.T, p *Picture) {
			set(t, p.Provider, Quotas, "train-0123456789ab", "1", "spec", "resources", "nvidia.com/gpu")
		}, QuotaDiffers, "it allows 1 nvidia.com/gpu"},
		"a cordoned Quota": {func(t *testing.T, p *Picture) {
			set(t, p.Provider, Quotas, "train-0123456789ab", true, "spec", "cordoned")
		}, QuotaCordoned, "it is cordoned"},
		"weak":            {func(_ *testing.T, p *Picture) { p.Enforcement = v1alpha1.EnforceHard }, EnforcementWeak, "limits enforcement there is None"},
		"nothing offered": {func(t *testing.T, p *Picture) { set(t, p.Provider, Nodes, "gpu", nil, "metadata", "labels") }, NothingOffered, "no node of it is offered"},
	} {
		t.Run(name, func(t *testing.T) {
			p := well(t)
			c.trouble(t, p)
			d := Diagnose(p)
			if len(d.Findings) == 0 {
				t.Fatal("nothing was found")
			}
			f := d.Findings[0]
			if f.Code != c.code || !strings.Contains(f.Cause, c.cause) || f.Remedy == "" || f.Where == "" {
				t.Fatalf("found %+v, want %s: %s", d.Findings, c.code, c.cause)
			}
		})
	}
}

// network is what Liqo says of its connection.
func network(t *testing.T, p *Picture, status string) {
	t.Helper()
	set(t, p.Consumer, Foreign, "paris", map[string]any{
		"enabled": true, "conditions": []any{map[string]any{"type": "NetworkConnectionStatus", "status": status, "reason": "Connection" + status}},
	}, "status", "modules", "networking")
}

// Where another network connects the clusters nothing is expected of Liqo's, and
// one that stands is no trouble.
func TestNetwork(t *testing.T) {
	p := well(t)
	network(t, p, "Error")
	p.OffNetwork = []string{"rome", "paris"}
	if d := Diagnose(p); len(d.Findings) > 0 {
		t.Errorf("without Liqo's network: %+v", d.Findings)
	}
	p.OnNetwork, p.OffNetwork = p.OffNetwork, nil
	network(t, p, "Established")
	if d := Diagnose(p); len(d.Findings) > 0 {
		t.Errorf("with Liqo's network: %+v", d.Findings)
	}
}

// What is not known is no trouble: nothing is concluded from it.
func TestUnknownProvesNothing(t *testing.T) {
	p := well(t)
	p.Consumer = &Cluster{Name: "rome", Unreachable: "refused"}
	p.Provider = &Cluster{Name: "paris", Unread: map[Kind]string{Tenants: "Forbidden"}}
	for _, f := range Diagnose(p).Findings {
		if f.Link != LinkAccess && f.Link != LinkRights {
			t.Errorf("found %+v", f)
		}
	}
	p = well(t)
	p.Contract.Spec.Stage = v1alpha1.StageReserve
	p.Consumer, p.Provider = &Cluster{Name: "rome", Unreachable: "refused"}, &Cluster{Name: "paris", Unreachable: "refused"}
	if d := Diagnose(p); len(d.Findings) > 0 {
		t.Errorf("of what is only reserved: %+v", d.Findings)
	}
}

// A cluster alone is judged by its roles.
func TestCluster(t *testing.T) {
	old := &Cluster{Name: "rome", Form: "v1", Serves: []string{}}
	if got := DiagnoseCluster(old, []string{"provider"}); len(got) != 1 || got[0].Code != NoPolicyKinds { // its agent's base has one
		t.Errorf("%+v", got)
	}
	served := &Cluster{Name: "rome", Form: "webhook", Serves: []string{}, Objects: map[Kind][]unstructured.Unstructured{Webhooks: {}}}
	if got := DiagnoseCluster(served, []string{"consumer"}); len(got) != 1 || got[0].Code != PolicyMissing {
		t.Errorf("%+v", got)
	}
	add(t, served, "kind: MutatingWebhookConfiguration\nmetadata: {name: fleetbroker-f3k9q2abu7-intent-tolerations}\nwebhooks: [{clientConfig: {caBundle: eA==}}, {clientConfig: {}}]\n")
	if got := DiagnoseCluster(served, []string{"consumer"}); len(got) != 1 || got[0].Code != PolicyUnbound {
		t.Errorf("%+v", got)
	}
	set(t, served, Webhooks, "fleetbroker-f3k9q2abu7-intent-tolerations", []any{map[string]any{"clientConfig": map[string]any{"caBundle": "eA=="}}}, "webhooks")
	if got := DiagnoseCluster(served, []string{"consumer"}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		form   string
		serves []string
		want   string
	}{
		{"v1", []string{"v1", "v1beta1"}, "cluster rome: pods get their tolerations by MutatingAdmissionPolicy v1"},
		{"v1beta1", []string{"v1beta1"}, "cluster rome: pods get their tolerations by MutatingAdmissionPolicy v1beta1"},
		{"webhook", []string{}, "cluster rome: pods get their tolerations by the webhook of its agent"},
		{"v1", []string{"v1beta1"}, "cluster rome: pods get their tolerations by MutatingAdmissionPolicy v1beta1, which it serves, where a daemon or agent delivers, and else by none: its file asks for v1"},
		{"v1", []string{}, "cluster rome: pods get no tolerations: its file asks for MutatingAdmissionPolicy v1, and it serves none"},
		{"v1", nil, ""},
	} {
		if got := (&Cluster{Name: "rome", Form: c.form, Serves: c.serves}).Admission(); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.form, c.serves, got, c.want)
		}
	}
	if got := DiagnoseCluster(old, []string{"consumer"}); len(got) != 1 || got[0].Link != LinkInstalled {
		t.Errorf("%+v", got)
	}
	for role, want := range map[string]string{"consumer": "nothing can be applied there", "provider": "no peering can be made"} {
		got := DiagnoseCluster(&Cluster{Name: "rome", NoAccess: "no file"}, []string{role})
		if len(got) != 1 || got[0].Link != LinkAccess || !strings.Contains(got[0].Cause, want) || !strings.Contains(got[0].Remedy, "fleetbroker kubeconfig rome") {
			t.Errorf("%s: got %+v, want %q", role, got, want)
		}
	}
}
