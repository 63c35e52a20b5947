package place

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// shortfalls are what is wrong with one offer that fails a requirement, in words:
// the verb first, so that it also fits several. Names of fields show what to
// change.
var shortfalls = map[string]string{
	match.ReqSelf:               "is the consumer itself",
	match.ReqRole:               "is on a cluster that is unknown or no provider",
	match.ReqSilent:             "is on a provider that is not heard",
	match.ReqLost:               "is on a provider that is lost",
	match.ReqWithdrawn:          "is no longer offered",
	match.ReqCordon:             "sells nothing new (cordon)",
	match.ReqDrain:              "is being emptied (drain)",
	match.ReqFlavorType:         "is of another flavorType",
	match.ReqTenantProviders:    "is on a provider that its tenant may not use",
	match.ReqPlacementProviders: "is on a provider that placement.providers leaves out",
	match.ReqGPU:                "has no GPU",
	match.ReqGPUVendor:          "has GPUs of another vendor",
	match.ReqGPUModel:           "has another GPU model",
	match.ReqGPUMemory:          "has GPUs with another memory size",
	match.ReqGPUTier:            "has GPUs of another tier",
	match.ReqGPUArchitecture:    "has GPUs of another architecture",
	match.ReqGPUInterconnect:    "has GPUs with another interconnect",
	match.ReqGPUCapability:      "has GPUs of a lower computeCapability",
	match.ReqGPUProfile:         "has GPUs of another MIG profile",
	match.ReqGPUSharing:         "has GPUs that are shared in another way",
	match.ReqRegions:            "is in another region than placement.regions names",
	match.ReqZones:              "is in another zone than placement.zones names",
	match.ReqArchitectures:      "is of another CPU architecture than placement.architectures names",
	match.ReqLabels:             "lacks a label of placement.labels",
	match.ReqLatency:            "is farther away than placement.maxLatency",
	match.ReqEnforcement:        "enforces less than enforcement asks for",
	match.ReqAvailability:       "promises less than sla.availability",
	match.ReqWhere:              "does not meet placement.where",
	match.ReqPartition:          "would round it up to more than there is (partition)",
	match.ReqDenied:             "has denied it a slice not long ago",
	match.ReqRefuses:            "is of a provider that has denied what it advertised",
	match.ReqRemoteNamespace:    "has its remote namespace in use by another",
	match.ReqSecret:             "has no Secret that its tenant may use",
	match.ReqSpread:             "would break placement.spread",
	match.ReqTogether:           "would break placement.together",
	match.ReqApart:              "would break placement.apart",
	match.ReqCard:               "has no card with enough left",
	match.ReqPrice:              "has no price to go by",
	match.ReqTransfer:           "has no known price for moving its data there",
	match.ReqPurchase:           "is sold in no price class of purchase",
	match.ReqMaxHourly:          "costs more than budget.maxHourly",
	match.ReqMaxHourlySpot:      "costs more than budget.maxHourlySpot",
	match.ReqMaxHourlyPerGPU:    "costs more a GPU than budget.maxHourlyPerGPU",
	match.ReqMaxTotal:           "costs more in all than budget.maxTotal",
	ReqQuotaGPU:                 "would exceed its tenant's quota of GPUs",
	ReqQuotaCPU:                 "would exceed its tenant's quota of CPU",
	ReqQuotaCount:               "would be more contracts than its tenant may hold",
	ReqQuotaMemory:              "would exceed its tenant's quota of memory",
	ReqQuotaByModel:             "would exceed its tenant's quota of that GPU model",
	ReqTenantHourly:             "costs more than is left of its tenant's hourly budget",
	ReqTenantMonthly:            "costs more than is left of its tenant's monthly budget",
}

// plurals of the verbs that begin shortfalls.
var plurals = map[string]string{
	"is": "are", "has": "have", "does": "do", "sells": "sell", "lacks": "lack", "enforces": "enforce",
	"promises": "promise", "would": "would", "costs": "cost",
}

// shortfall is what is wrong with one offer that fails a requirement, in words;
// "" for a code that is none.
func shortfall(req string) string {
	if text, known := shortfalls[req]; known {
		return text
	}
	if name, is := strings.CutPrefix(req, match.ReqPolicy); is {
		return "is forbidden by the fleet's policy " + name
	}
	if name, is := strings.CutPrefix(req, match.ReqResource); is {
		return "has no " + name
	}
	switch name, is := strings.CutPrefix(req, match.ReqCapacity); {
	case !is:
		return ""
	case name == "gpu":
		return "has too few GPUs free"
	case name == "pods":
		return "has room for too few pods"
	default:
		return "has too little " + name + " free"
	}
}

// saidOf is what is wrong with n offers that fail a requirement.
func saidOf(req string, n int) string {
	text := cmp.Or(shortfall(req), "fails "+req) // a plan of another version
	does, what, _ := strings.Cut(text, " ")
	return verb(does, n) + " " + what
}

// Shortfall is what is wrong with several offers that fail a requirement, in
// words; "" for a code that is none.
func Shortfall(req string) string {
	if shortfall(req) == "" {
		return ""
	}
	return saidOf(req, 2)
}

// verb is one of plurals in the form for n.
func verb(one string, n int) string {
	if many, known := plurals[one]; known && n != 1 {
		return many
	}
	return one
}

// NothingFits is the sentence for offers of which none fits, by the first
// requirement that each fails.
func NothingFits(considered int, rejected map[string]int) string {
	if considered == 0 {
		return "nothing is offered"
	}
	reqs := draft.SortedByCount(rejected)
	if considered == 1 && len(reqs) == 1 {
		return "the only offer does not fit: it " + saidOf(reqs[0], 1)
	}
	parts := make([]string, len(reqs))
	for i, req := range reqs {
		parts[i] = fmt.Sprintf("%d %s", rejected[req], saidOf(req, rejected[req]))
	}
	text := fmt.Sprintf("none of %d offers fits", considered)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}
