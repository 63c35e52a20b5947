package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Names written on Kubernetes objects. Agents, delivery and admission policies
// meet through them.
const (
	// LabelContract, LabelTenant and LabelIntent are on every object of a
	// contract; LabelTenant also on offloaded Namespaces. LabelIntent's value
	// is IntentValue's.
	LabelContract = Group + "/contract"
	LabelTenant   = Group + "/tenant"
	LabelIntent   = Group + "/intent"
	// LabelFleet is the id of the fleet whose an object is: on a contract's objects,
	// offloadings and quotas a label, on an offloaded Namespace an annotation.
	LabelFleet = Group + "/fleet"
	// LabelManaged marks the Liqo tenant namespaces in which virtual nodes are guarded.
	LabelManaged = Group + "/managed"
	// LabelManagedBy with ManagedBy is on every object the broker alone writes.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "fleetbroker"
	// AnnotationIntents on an offloaded Namespace lists, comma-separated, the
	// IntentValues its pods may use.
	AnnotationIntents = Group + "/intents"
	// AnnotationPodsPrefix and an IntentValue name the Namespace annotation
	// that limits which pods use that intent, as "label=value,label=value".
	AnnotationPodsPrefix = "pods." + Group + "/"
	// AnnotationFlavor on a slice names the contract's flavor: Liqo copies it to
	// the provider, whose agent tells by it what each slice holds of which flavor.
	AnnotationFlavor = Group + "/flavor"
	// LabelNode on a provider's node is its hash, which its agent puts there and reports:
	// virtual nodes that lie on one node are pinned to it by this label.
	LabelNode = Group + "/node"
	// LabelEnforcement on a flavor is the limits enforcement of Liqo on its
	// cluster, as the Quotas there say: None, Soft or Hard.
	LabelEnforcement = Group + "/enforcement"
	// ClassFleetbroker is the ResourceSlice class whose controller, in the provider's
	// agent, grants exactly what the ledger states.
	ClassFleetbroker = "fleetbroker"
	// TaintIntent with an IntentValue is the NoSchedule taint of a virtual node.
	TaintIntent = Group + "/intent"
	// TaintRemote is the PreferNoSchedule taint that keeps pods without
	// accelerators at home where a namespace may run in both places.
	TaintRemote = Group + "/remote"
	// FieldManager of everything the broker applies for a fleet without an id; with
	// one it is followed by a dash and the id.
	FieldManager = "fleetbroker"
)

// Annotations of the intents under requests/, which came through the API, and
// the one by which an agent publishes its cluster's API server. On a file that
// people wrote they mean nothing.
const (
	// AnnotationRequestedBy is the cluster whose agent asked.
	AnnotationRequestedBy = Group + "/requested-by"
	// AnnotationRequestedAt is when, RFC 3339.
	AnnotationRequestedAt = Group + "/requested-at"
	// AnnotationIdempotencyKey is the key that makes a retry safe.
	AnnotationIdempotencyKey = Group + "/idempotency-key"
	// AnnotationRequestDigest names the content of the request, "sha256:…".
	AnnotationRequestDigest = Group + "/request-digest"
	// AnnotationRequester is the object in the cluster on whose behalf it asked, "<namespace>/<name>".
	AnnotationRequester = Group + "/requester"
	// AnnotationRequesterUID is that object's UID.
	AnnotationRequesterUID = Group + "/requester-uid"
	// AnnotationOwner is who made that object.
	AnnotationOwner = Group + "/owner"
	// AnnotationEndpoint on a flavor is the address of its cluster's API server.
	AnnotationEndpoint = Group + "/endpoint"
)

// Labels of a virtual node that describe its cards, in FLUIDOS's names.
const (
	LabelCardModel  = "gpu.fluidos.eu/model"
	LabelCardMemory = "gpu.fluidos.eu/memory"
	LabelCardTier   = "gpu.fluidos.eu/tier"
	LabelCardVendor = "gpu.fluidos.eu/vendor"
)

// CardLabels describe cards on a virtual node. What is not known, or is no
// label's value, is left out.
func CardLabels(vendor, model, tier string, memory MemorySize) map[string]string {
	out := map[string]string{LabelCardVendor: vendor, LabelCardModel: model, LabelCardTier: tier}
	if !memory.IsZero() {
		out[LabelCardMemory] = memory.Canonical(Memory)
	}
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" || len(validation.IsValidLabelValue(value)) > 0 })
	return out
}

// FleetTenant owns what belongs to the fleet itself, such as warm pools. No
// team can be called so.
const FleetTenant = "fleetbroker"

// maxLabelValue is what Kubernetes allows for a label's or taint's value.
const maxLabelValue = 63

// IntentValue is how an intent is named in taints, tolerations and labels:
// <tenant>.<intent>, cut with a hash where Kubernetes allows no more. A dot
// cannot stand in either name, so values that are not cut differ. By this value
// the guards tell tenants apart: 80 bits of SHA-256 leave no chance of making two
// long names equal.
func IntentValue(tenant, intent string) string {
	return cutName(tenant+"."+intent, maxLabelValue, 10)
}

// ShortIntentValue is what it was in renderings 1 and 2, cut with 32 bits.
func ShortIntentValue(tenant, intent string) string { return CutName(tenant+"."+intent, maxLabelValue) }

// CutName is s when it has at most limit bytes, else its beginning, '-' and
// the first 8 hexadecimal digits of its SHA-256.
func CutName(s string, limit int) string { return cutName(s, limit, 4) }

// cutName keeps that many bytes of the hash.
func cutName(s string, limit, bytes int) string {
	if len(s) <= limit {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return s[:limit-2*bytes-1] + "-" + hex.EncodeToString(sum[:bytes])
}

// IntentShard is the directory in which the contracts and manifests of an
// intent stand: the first two hexadecimal digits of the SHA-256 of its name,
// so that no directory grows with the number of a tenant's intents.
func IntentShard(intent string) string {
	sum := sha256.Sum256([]byte(intent))
	return hex.EncodeToString(sum[:1])
}
