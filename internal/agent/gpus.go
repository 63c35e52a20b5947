package agent

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/agent/notes"
	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// gpuResources are the extended resources that are accelerators, by the names
// their device plugins give them, with their vendors. NVIDIA's MIG profiles
// (nvidia.com/mig-…) come on top.
var gpuResources = map[string]string{
	"nvidia.com/gpu":        "nvidia",
	"nvidia.com/gpu.shared": "nvidia", // time-slicing with renameByDefault
	"amd.com/gpu":           "amd",
	"gpu.intel.com/i915":    "intel",
	"gpu.intel.com/xe":      "intel",
	"habana.ai/gaudi":       "intel",
}

const migPrefix = "nvidia.com/mig-"

// maxUnits bounds the shares of a card.
const maxUnits = 1024

// isGPU reports whether a resource is an accelerator.
func isGPU(name string) bool { return gpuResources[name] != "" || strings.HasPrefix(name, migPrefix) }

// migShape reads a MIG profile: 1g.10gb, 3g.40gb; 1g.10gb.me in a resource's
// name, 1g.10gb+me in a product's.
var migShape = regexp.MustCompile(`^(\d)g\.(\d+)gb([.+][a-z0-9.]+)?$`)

// singleMIG ends the product's name where all cards are cut alike and the
// instances are counted as nvidia.com/gpu (MIG strategy "single").
var singleMIG = regexp.MustCompile(`-MIG-(\dg\.\d+gb(?:[.+][a-z0-9.]+)?)$`)

// computeSlices is how many compute slices the largest MIG-capable cards have
// (NVIDIA MIG user guide, "supported profiles").
const computeSlices = 7

// card is what is known of a node's GPUs before they are cut.
type card struct {
	gpu v1alpha1.FlavorGPU
	// count of cards on the node, 0 when unknown.
	count int64
	// profile when all cards are cut alike and counted as whole ones.
	profile string
	// replicas each card is shared by, 1 when it is not.
	replicas int32
}

// gpusOf are the kinds of accelerator a node offers, in order of resource name,
// and how many cards there are. Facts are GPU feature discovery's labels; what
// an annotation says goes before them.
func gpusOf(n *corev1.Node, a *notes.Notes) (kinds []v1alpha1.FlavorGPU, cards int64) {
	c := cardOf(n, a)
	for _, name := range sortedKeys(amounts(n.Status.Capacity)) {
		if !isGPU(name) || amounts(n.Status.Capacity)[name].IsZero() {
			continue
		}
		gpu := c.cut(name)
		if gpu.Vendor == "" {
			gpu.Vendor = gpuResources[name]
		}
		kinds = append(kinds, gpu)
		if units := int64(gpu.UnitsPerGPU); c.count == 0 && units > 0 {
			cards += (amounts(n.Status.Capacity)[name].Int64() + units - 1) / units
		}
	}
	return kinds, max(cards, c.count)
}

// cardOf reads labels and annotations.
func cardOf(n *corev1.Node, a *notes.Notes) card {
	product, memoryMiB, vendor := productOf(n.Labels)
	c := card{replicas: 1}
	if m := singleMIG.FindStringSubmatch(product); m != nil {
		// The label then tells an instance's memory; the card's follows from its name.
		c.profile, product, memoryMiB = m[1], strings.TrimSuffix(product, m[0]), 0
	}
	product = strings.TrimSuffix(product, "-SHARED")
	if model := a.Text("gpu/model"); model != "" {
		product = model
	}
	size := a.Memory("gpu/memory-per-gpu", "gpu/memory")
	if !size.IsZero() {
		memoryMiB = size.Int64() >> 20
	}
	if product != "" {
		var memory v1alpha1.Amount
		c.gpu.Vendor, c.gpu.Model, memory = gpunames.Normalize(product, memoryMiB)
		c.gpu.Memory = v1alpha1.MemorySize{Amount: memory}
	}
	if !size.IsZero() {
		c.gpu.Memory = size
	}
	c.gpu.Vendor = either(strings.ToLower(a.Text("gpu/vendor")), c.gpu.Vendor, vendor)
	c.gpu.Architecture = either(strings.ToLower(a.Text("gpu/architecture")), n.Labels["nvidia.com/gpu.family"])
	c.gpu.Tier = a.Text("gpu/tier")
	c.gpu.Interconnect = strings.ToLower(a.Text("gpu/interconnect"))
	c.gpu.ComputeCapability = a.Text("gpu/compute-capability")
	if major := n.Labels["nvidia.com/gpu.compute.major"]; c.gpu.ComputeCapability == "" && major != "" {
		c.gpu.ComputeCapability = major + "." + either(n.Labels["nvidia.com/gpu.compute.minor"], "0")
	}
	c.count = cardCount(n.Labels, a, c.profile)
	if replicas := positive(n.Labels["nvidia.com/gpu.replicas"]); replicas > 1 {
		c.replicas = int32(min(replicas, maxUnits))
	}
	c.gpu.Sharing = sharingOf(n.Labels, a, c.replicas)
	return c
}

// productOf is the product's name, its memory as the driver tells it (MiB) and
// the vendor whose labels said so.
func productOf(labels map[string]string) (product string, memoryMiB int64, vendor string) {
	if product = labels["nvidia.com/gpu.product"]; product != "" {
		return product, mebibytes(positive(labels["nvidia.com/gpu.memory"])), "nvidia"
	}
	// AMD's node labeller, formerly under beta.amd.com.
	for _, prefix := range []string{"amd.com/gpu.", "beta.amd.com/gpu."} {
		if product = labels[prefix+"product-name"]; product != "" {
			if q, err := v1alpha1.ParseQuantity(labels[prefix+"vram"]); err == nil {
				memoryMiB = mebibytes(q.Value() >> 20)
			}
			return product, memoryMiB, "amd"
		}
	}
	if product = labels["gpu.intel.com/product"]; product != "" {
		return product, 0, "intel"
	}
	return "", 0, ""
}

// cardCount is the number of cards; where all are cut alike the label counts
// instances and says nothing.
func cardCount(labels map[string]string, a *notes.Notes, profile string) int64 {
	if n, ok := a.Whole("gpu/count"); ok {
		return n
	}
	if profile != "" {
		return 0
	}
	return positive(labels["nvidia.com/gpu.count"])
}

func sharingOf(labels map[string]string, a *notes.Notes, replicas int32) string {
	strategy := strings.ToLower(either(a.Text("gpu/sharing-strategy"), labels["nvidia.com/gpu.sharing-strategy"]))
	switch strategy {
	case "mps", "time-slicing":
		return strategy
	}
	if replicas > 1 {
		return "time-slicing"
	}
	return "none"
}

// cut is the sellable unit that a resource counts: a whole card, a share of
// one, or a MIG instance. Memory is the unit's.
func (c card) cut(name string) v1alpha1.FlavorGPU {
	gpu := c.gpu
	gpu.ResourceName, gpu.UnitsPerGPU = name, 1
	profile, isMIG := strings.CutPrefix(name, migPrefix)
	if !isMIG {
		profile = c.profile
	}
	if m := migShape.FindStringSubmatch(profile); m != nil {
		compute, gigabytes := positive(m[1]), positive(m[2])
		gpu.Sharing, gpu.Profile = "mig", profile
		gpu.UnitsPerGPU = instances(c.gpu.Memory.Int64()>>30, compute, gigabytes, m[3])
		gpu.Memory = v1alpha1.MemorySize{Amount: v1alpha1.AmountOf(gigabytes << 30)}
		return gpu
	}
	if c.replicas > 1 {
		// A share has no memory of its own (MPS limits it to just this).
		gpu.UnitsPerGPU = c.replicas
		gpu.Memory = v1alpha1.MemorySize{Amount: v1alpha1.AmountOf(gpu.Memory.Int64() / int64(c.replicas))}
	} else {
		gpu.Sharing = "none"
	}
	return gpu
}

// instances is how many instances of a MIG profile one card makes: bounded by
// compute slices and by memory, whose share is rounded (an H200 of 141 GB makes
// two of 71). Profiles with media extensions (me) exist once a card. Agrees
// with the tables of NVIDIA's MIG user guide for A30, A100, H100, H200 and B200.
func instances(cardGi, compute, gigabytes int64, extension string) int32 {
	if strings.Contains(extension, "me") {
		return 1
	}
	n := int64(computeSlices)
	if compute > 0 {
		n = computeSlices / compute
	}
	if cardGi > 0 && gigabytes > 0 {
		n = min(n, (2*cardGi+gigabytes)/(2*gigabytes))
	}
	return int32(max(n, 1))
}

// mebibytes is a GPU's memory, nothing if it cannot be one's.
func mebibytes(n int64) int64 {
	if n < 0 || n > notes.MaxMemory>>20 {
		return 0
	}
	return n
}

func positive(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func either(options ...string) string {
	for _, s := range options {
		if s != "" {
			return s
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
