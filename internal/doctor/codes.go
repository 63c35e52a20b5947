package doctor

// Code names a diagnosis for good: words may change, a code does not.
type Code string

// The diagnoses, by the links that are checked. Each one is made on real Liqo by
// a test of test/e2e/liqo.
const (
	// Of LinkIntent and LinkManifest.
	IntentFrozen  Code = "intent-frozen"
	IntentGone    Code = "intent-gone"
	SliceNotInGit Code = "slice-not-in-git"

	// Of LinkAccess, LinkInstalled and LinkRights.
	NoAccess      Code = "no-access"
	NoAnswer      Code = "no-answer"
	NoLiqo        Code = "no-liqo"
	LiqoTooOld    Code = "liqo-too-old"
	NoPolicyKinds Code = "no-policy-kinds"
	Unreadable    Code = "unreadable"

	// Of LinkPeering.
	TenantNamespaceTwice      Code = "tenant-namespace-twice"
	TenantNamespaceOther      Code = "tenant-namespace-other"
	TenantNamespaceMissing    Code = "tenant-namespace-missing"
	TenantNamespaceDeleting   Code = "tenant-namespace-deleting"
	TenantNamespaceUnlabelled Code = "tenant-namespace-unlabelled"
	IdentityMissing           Code = "identity-missing"
	IdentityDeleting          Code = "identity-deleting"
	IdentityElsewhere         Code = "identity-elsewhere"
	IdentityLeadsElsewhere    Code = "identity-leads-elsewhere"
	IdentityRefused           Code = "identity-refused"
	IdentityOld               Code = "identity-old"
	ForeignMissing            Code = "foreign-missing"
	ForeignUnreachable        Code = "foreign-unreachable"
	NetworkOneSided           Code = "network-one-sided"
	NetworkMissing            Code = "network-missing"
	NetworkDown               Code = "network-down"
	TenantMissing             Code = "tenant-missing"
	TenantCordoned            Code = "tenant-cordoned"
	TenantDrained             Code = "tenant-drained"
	TenantElsewhere           Code = "tenant-elsewhere"

	// Of LinkPolicies.
	PolicyMissing      Code = "policy-missing"
	PolicyUnbound      Code = "policy-unbound"
	NamespaceUnguarded Code = "namespace-unguarded"

	// Of LinkSlice.
	SliceElsewhere       Code = "slice-elsewhere"
	SliceMissing         Code = "slice-missing"
	SliceDeleting        Code = "slice-deleting"
	SliceNoRemoteID      Code = "slice-no-remote-id"
	SliceNoClusterID     Code = "slice-no-cluster-id"
	SliceNotReplicated   Code = "slice-not-replicated"
	SliceDoubleNode      Code = "slice-double-node"
	SliceNoNode          Code = "slice-no-node"
	SliceDenied          Code = "slice-denied"
	SliceUnanswered      Code = "slice-unanswered"
	SliceClassUnanswered Code = "slice-class-unanswered"
	SliceClassOpen       Code = "slice-class-open"
	SliceShrunk          Code = "slice-shrunk"
	SliceKeptKey         Code = "slice-kept-key"

	// Of LinkVirtualNode and LinkNode.
	VirtualNodeNameTaken Code = "virtual-node-name-taken"
	VirtualNodeMissing   Code = "virtual-node-missing"
	VirtualNodeUntainted Code = "virtual-node-untainted"
	VirtualNodeSize      Code = "virtual-node-size"
	VirtualNodeOrphan    Code = "virtual-node-orphan"
	DrainBlocked         Code = "drain-blocked"
	DrainWaits           Code = "drain-waits"
	NodeMissing          Code = "node-missing"
	NodeNotReady         Code = "node-not-ready"
	NodeWithoutCPU       Code = "node-without-cpu"
	NodeSmall            Code = "node-small"
	NodeCordoned         Code = "node-cordoned"

	// Of LinkOffloading.
	NamespaceMissing     Code = "namespace-missing"
	NamespaceUnlisted    Code = "namespace-unlisted"
	NamespaceUnlabelled  Code = "namespace-unlabelled"
	NamespaceUnscheduled Code = "namespace-unscheduled"
	OffloadingMissing    Code = "offloading-missing"
	SelectorMissing      Code = "selector-missing"
	SelectorNarrow       Code = "selector-narrow"
	OffloadingUnseen     Code = "offloading-unseen"
	OffloadingUnmatched  Code = "offloading-unmatched"
	OffloadingFailed     Code = "offloading-failed"

	// Of LinkPods.
	DaemonSetInside Code = "daemon-set-inside"
	PodBackOff      Code = "pod-back-off"
	PodAborted      Code = "pod-aborted"
	PodNotRunning   Code = "pod-not-running"
	PodTooOld       Code = "pod-too-old"
	PodFitsNowhere  Code = "pod-fits-nowhere"

	// Of LinkProvider.
	CopyMissing     Code = "copy-missing"
	NothingOffered  Code = "nothing-offered"
	QuotaMissing    Code = "quota-missing"
	QuotaDiffers    Code = "quota-differs"
	QuotaCordoned   Code = "quota-cordoned"
	EnforcementWeak Code = "enforcement-weak"
)
