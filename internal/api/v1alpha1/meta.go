package v1alpha1

// Group and Version of every kind here.
const (
	Group      = "fleetbroker.io"
	Version    = "v1alpha1"
	APIVersion = Group + "/" + Version
)

// Names of the kinds.
const (
	KindResourceIntent = "ResourceIntent"
	KindFlavor         = "Flavor"
	KindPriceTable     = "PriceTable"
	KindCluster        = "Cluster"
	KindTenant         = "Tenant"
	KindFleet          = "Fleet"
	KindContract       = "Contract"
	KindIntentState    = "IntentState"
	KindSpend          = "Spend"
	KindTrustRoot      = "TrustRoot"
	KindSetAside       = "SetAside"
	KindSourceCopy     = "SourceCopy"
)

// AnnotationRenamedFrom on an intent names what it was called before, so that
// its contracts stay.
const AnnotationRenamedFrom = Group + "/renamed-from"

// TypeMeta says what a document is.
type TypeMeta struct {
	// APIVersion is fleetbroker.io/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is the document's kind.
	Kind string `json:"kind"`
}

// Metadata is what identifies a document.
type Metadata struct {
	// Name is unique among documents of the kind (and namespace): lower-case letters, digits and '-', at most 63.
	Name string `json:"name"`
	// Namespace is the tenant of an intent or contract, the provider cluster of a flavor; other kinds have none.
	Namespace string `json:"namespace,omitempty"`
	// Labels are free; costs can be grouped by them and policies can match them.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are free; fleetbroker.io/renamed-from keeps an intent's contracts over a rename.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// SecretKeyRef names a key of a Secret in the daemon's namespace. No secret
// value ever stands in a fleet repo.
type SecretKeyRef struct {
	// Name of the Secret.
	Name string `json:"name"`
	// Key within the Secret.
	Key string `json:"key,omitempty"`
}

// Location is where a cluster or flavor stands. What a flavor's file states goes
// before its Cluster file, key by key; what a Cluster file states goes before
// what the cluster's agent reports, as a whole.
type Location struct {
	// Region such as eu-west-3.
	Region string `json:"region,omitempty"`
	// Zone such as eu-west-3a.
	Zone string `json:"zone,omitempty"`
	// Country as two letters, such as FR.
	Country string `json:"country,omitempty"`
	// City for people.
	City string `json:"city,omitempty"`
	// Network is a name of your own: clusters of one value reach each other at training speed (placement.within by network).
	Network string `json:"network,omitempty"`
}

// Over is l with o's non-empty keys in place of its own.
func (l Location) Over(o Location) Location {
	pick := func(base, over string) string {
		if over != "" {
			return over
		}
		return base
	}
	return Location{pick(l.Region, o.Region), pick(l.Zone, o.Zone), pick(l.Country, o.Country), pick(l.City, o.City), pick(l.Network, o.Network)}
}

// ClusterLists allows and denies clusters by id. An empty allow list allows
// all; deny wins.
type ClusterLists struct {
	// Allow lists the only clusters to use; empty means all.
	Allow []string `json:"allow,omitempty"`
	// Deny lists clusters never to use.
	Deny []string `json:"deny,omitempty"`
}
