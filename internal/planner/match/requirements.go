package match

import "strings"

// Requirements an offer can fail, in the order in which they are checked:
// facts, then capacity, then money. They are in `rejected`, so they are part
// of what scripts rely on.
const (
	ReqSelf      = "self"            // the provider is the consumer itself
	ReqRole      = "role"            // the cluster is unknown or no provider
	ReqSilent    = "provider.silent" // no recent report from its agent
	ReqLost      = "provider.lost"   // … past its grace
	ReqWithdrawn = "withdrawn"       // no longer offered
	ReqCordon    = "cordon"          // sells nothing new
	ReqDrain     = "drain"           // being emptied

	ReqFlavorType         = "flavorType"
	ReqTenantProviders    = "tenant.providers"
	ReqPlacementProviders = "placement.providers"
	ReqGPU                = "gpu" // the flavor has none
	ReqGPUVendor          = "gpu.vendor"
	ReqGPUModel           = "gpu.model"
	ReqGPUMemory          = "gpu.memory"
	ReqGPUTier            = "gpu.tier"
	ReqGPUArchitecture    = "gpu.architecture"
	ReqGPUInterconnect    = "gpu.interconnect"
	ReqGPUCapability      = "gpu.computeCapability"
	ReqGPUProfile         = "gpu.profile"
	ReqGPUSharing         = "gpu.sharing"
	ReqResource           = "resource." // + the extended resource that is not offered
	ReqRegions            = "placement.regions"
	ReqZones              = "placement.zones"
	ReqArchitectures      = "placement.architectures"
	ReqLabels             = "placement.labels"
	ReqLatency            = "placement.maxLatency"
	ReqEnforcement        = "enforcement"
	ReqAvailability       = "sla.availability" // the flavor's reliability is less, or unknown
	ReqWhere              = "placement.where"
	ReqPolicy             = "policy." // + the policy's name
	ReqPartition          = "partition"

	ReqDenied  = "denied"  // denied this intent a slice not long ago
	ReqRefuses = "refuses" // of a provider that is kept out of the market, because it denied what it advertised
	// What an intent names at a provider: a namespace that another mapping has
	// there, a Secret that its tenant's file does not declare.
	ReqRemoteNamespace = "offload.remoteNamespace"
	ReqSecret          = "virtualNode.kubeconfigSecretRef"
	// Rules on where replicas and intents are to each other, asked after
	// capacity and the intent's money.
	ReqSpread   = "placement.spread"
	ReqTogether = "placement.together"
	ReqApart    = "placement.apart"

	ReqCapacity = "capacity." // + gpu, cpu, memory, pods, ephemeral-storage or the extended resource

	// ReqCard: enough units are free and no card has so many: a share lies on one.
	ReqCard = ReqCapacity + "card"

	ReqPrice           = "price"         // unpriced, or in a currency without a rate
	ReqTransfer        = "data.transfer" // no price is known for moving the intent's data there, and it has a budget
	ReqPurchase        = "purchase"      // sold in none of the acceptable price classes
	ReqMaxHourly       = "budget.maxHourly"
	ReqMaxHourlySpot   = "budget.maxHourlySpot"
	ReqMaxHourlyPerGPU = "budget.maxHourlyPerGPU"
	ReqMaxTotal        = "budget.maxTotal"
)

// Tier ranks requirements for people: 0 for those that only a change of a file
// can meet, 1 for those that time may.
func Tier(req string) int {
	switch req {
	case ReqSilent, ReqLost, ReqWithdrawn, ReqCordon, ReqDrain, ReqDenied, ReqRefuses, ReqSpread, ReqTogether, ReqApart:
		return 1
	}
	if strings.HasPrefix(req, ReqCapacity) {
		return 1
	}
	return 0
}
