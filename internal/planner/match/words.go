package match

import "strings"

// wording is how people read a requirement that is no entry of requirements: as its
// words and later are there.
type wording struct {
	words string
	later bool
}

// wordings are those of what all offers of a trait have in common, of the rules on where
// replicas and intents are to each other, of cards and of money.
var wordings = map[string]wording{
	ReqSelf:               {"is the consumer itself", false},
	ReqRole:               {"is on a cluster that is unknown or no provider", false},
	ReqSilent:             {"is on a provider that is not heard", true},
	ReqLost:               {"is on a provider that is lost", true},
	ReqWithdrawn:          {"is no longer offered", true},
	ReqCordon:             {"sells nothing new (cordon)", true},
	ReqDrain:              {"is being emptied (drain)", true},
	ReqFlavorType:         {"is of another flavorType", false},
	ReqTenantProviders:    {"is on a provider that its tenant may not use", false},
	ReqPlacementProviders: {"is on a provider that placement.providers leaves out", false},
	ReqGPU:                {"has no GPU", false},
	ReqGPUVendor:          {"has GPUs of another vendor", false},
	ReqGPUModel:           {"has another GPU model", false},
	ReqGPUMemory:          {"has GPUs with another memory size", false},
	ReqGPUTier:            {"has GPUs of another tier", false},
	ReqGPUArchitecture:    {"has GPUs of another architecture", false},
	ReqGPUInterconnect:    {"has GPUs with another interconnect", false},
	ReqGPUCapability:      {"has GPUs of a lower computeCapability", false},
	ReqGPUProfile:         {"has GPUs of another MIG profile", false},
	ReqGPUSharing:         {"has GPUs that are shared in another way", false},
	ReqRegions:            {"is in another region than placement.regions names", false},
	ReqZones:              {"is in another zone than placement.zones names", false},
	ReqArchitectures:      {"is of another CPU architecture than placement.architectures names", false},
	ReqAccelerators:       {"has accelerators, which are left to who asks for some (placement.allowAccelerators)", false},
	ReqPartition:          {"would round it up to more than there is (partition)", false},
	ReqDenied:             {"has denied it a slice not long ago", true},
	ReqRefuses:            {"is of a provider that has denied what it advertised", true},
	ReqRemoteNamespace:    {"has its remote namespace in use by another", false},
	ReqSecret:             {"has no Secret that its tenant may use", false},
	ReqTogether:           {"would break placement.together", true},
	ReqApart:              {"would break placement.apart", true},
	ReqBooked:             {"is booked by others before it would end", true},
	ReqBookedCards:        {"sells shares of cards, which are not booked ahead", false},
	ReqBookedParts:        {"books no more than one unit of a card ahead, the smallest share that it sells", false},
	ReqBookedShare:        {"has as much booked then as the fleet allows (bookings.maxShare)", true},
	ReqBookedMany:         {"has bookings that begin at 64 instants already", true},
	ReqCard:               {"has no card with enough left", true},
	ReqNode:               {"has no node with all of what a pod asks for free", true},
	ReqPrice:              {"has no price to go by", false},
	ReqTransfer:           {"has no known price for moving its data there", false},
	ReqPurchase:           {"is sold in no price class of purchase", false},
	ReqMaxHourly:          {"costs more than budget.maxHourly", false},
	ReqMaxHourlySpot:      {"costs more than budget.maxHourlySpot", false},
	ReqMaxHourlyPerGPU:    {"costs more a GPU than budget.maxHourlyPerGPU", false},
	ReqMaxTotal:           {"costs more in all than budget.maxTotal", false},
}

// wordingOf is the wording of any requirement, without words for a name that is of none.
func wordingOf(req string) wording {
	for i := range requirements {
		if r := &requirements[i]; r.name == req {
			return wording{r.words, r.later}
		}
	}
	if w, known := wordings[req]; known {
		return w
	}
	if name, is := strings.CutPrefix(req, ReqPolicy); is {
		return wording{"is forbidden by the fleet's policy " + name, false}
	}
	if name, is := strings.CutPrefix(req, ReqPriceOf); is {
		return wording{"has no price for " + name, false}
	}
	if name, is := strings.CutPrefix(req, ReqResource); is {
		return wording{"has no " + name, false}
	}
	switch name, is := strings.CutPrefix(req, ReqCapacity); {
	case !is:
		return wording{}
	case name == "gpu":
		return wording{"has too few GPUs free", true}
	case name == "pods":
		return wording{"has room for too few pods", true}
	default:
		return wording{"has too little " + name + " free", true}
	}
}

// Words are what is wrong with one offer that fails a requirement, the verb first, so
// that it also fits several; "" for a name that is of none. Names of fields show what
// to change.
func Words(req string) string { return wordingOf(req).words }

// Tier ranks requirements for people: 0 for those that only a change of a file
// can meet, 1 for those that time may.
func Tier(req string) int {
	if wordingOf(req).later {
		return 1
	}
	return 0
}
