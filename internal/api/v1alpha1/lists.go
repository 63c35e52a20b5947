package v1alpha1

// Most entries of the lists of an intent: validation and planning refuse longer
// ones, which multiply the work of others' plans and deliveries.
const (
	MaxAlternatives = 32
	MaxWindows      = 64
	MaxSpread       = 8
	MaxPurchase     = 8
	MaxModels       = 64
	MaxOffload      = 100
	MaxTaints       = 64
	MaxShares       = 32
	MaxExpressions  = 16 // of a selector, each with MaxValues: all are read for each new pod
	MaxValues       = 32
	// MaxLabels of a virtual node (they stand in each contract of it), a selector or a placement.
	MaxLabels    = 64
	MaxResources = 64  // named quantities of a request, an alternative, a pod or a share
	MaxNames     = 256 // for lists of names without a bound of their own
	// MaxKustomizations of one tenant.
	MaxKustomizations = 500
)

// MaxItems are these bounds by type and field as written, for schemas (gpuFields
// is the object form of a request for GPUs).
var MaxItems = map[string]map[string]uint64{
	"IntentSpec":      {"alternatives": MaxAlternatives, "purchase": MaxPurchase},
	"Schedule":        {"windows": MaxWindows},
	"Offload":         {"namespaces": MaxOffload},
	"VirtualNodeSpec": {"taints": MaxTaints, "shares": MaxShares},
	"gpuFields":       {"models": MaxModels}, "ClusterLists": {"allow": MaxNames, "deny": MaxNames},
	"LabelSelector": {"matchExpressions": MaxExpressions}, "LabelExpression": {"values": MaxValues},
	"Placement": {
		"regions": MaxNames, "zones": MaxNames, "architectures": MaxNames, "spread": MaxSpread, "together": MaxNames, "apart": MaxNames,
	},
}
