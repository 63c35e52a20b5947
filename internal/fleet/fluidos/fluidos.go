// Package fluidos is the documents of FLUIDOS that a fleet repo may hold, as their own
// types: a Solver under intents/, a Flavor under flavors/. Package fleet turns them into
// ours, and reports what they say that ours cannot.
//
// Facts are of fluidos-project/node (apis/nodecore/v1alpha1) and, for GPU filters, of its
// fork in clastix/flare. Pure types and functions; safe for concurrent use.
package fluidos

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// API is the group and version of FLUIDOS's kinds.
const API = "nodecore.fluidos.eu/v1alpha1"

// Metadata allows what Kubernetes writes into an exported object.
type Metadata struct {
	v1alpha1.Metadata `json:",inline"`
	UID               string          `json:"uid,omitempty"`
	ResourceVersion   string          `json:"resourceVersion,omitempty"`
	Generation        int64           `json:"generation,omitempty"`
	CreationTimestamp v1alpha1.Time   `json:"creationTimestamp,omitzero"`
	ManagedFields     json.RawMessage `json:"managedFields,omitempty"`
	OwnerReferences   json.RawMessage `json:"ownerReferences,omitempty"`
	Finalizers        []string        `json:"finalizers,omitempty"`
}

// Solver is what a consumer asks for, and how far to go.
type Solver struct {
	v1alpha1.TypeMeta `json:",inline"`
	Metadata          Metadata        `json:"metadata"`
	Status            json.RawMessage `json:"status,omitempty"`
	Spec              struct {
		Selector         *Selector `json:"selector,omitempty"`
		IntentID         string    `json:"intentID"`
		FindCandidate    bool      `json:"findCandidate,omitempty"`
		ReserveAndBuy    bool      `json:"reserveAndBuy,omitempty"`
		EstablishPeering bool      `json:"establishPeering,omitempty"`
	} `json:"spec"`
}

// Selector says of what type, and within which filters.
type Selector struct {
	FlavorType string   `json:"flavorType"`
	Filters    *Filters `json:"filters,omitempty"`
}

// Filters of a K8Slice.
type Filters struct {
	Architecture *Filter         `json:"architectureFilter,omitempty"`
	CPU          *Filter         `json:"cpuFilter,omitempty"`
	Memory       *Filter         `json:"memoryFilter,omitempty"`
	Pods         *Filter         `json:"podsFilter,omitempty"`
	Storage      *Filter         `json:"storageFilter,omitempty"`
	GPU          []GPUFilter     `json:"gpuFilters,omitempty"`
	Category     json.RawMessage `json:"categoryFilter,omitempty"`
	Tags         json.RawMessage `json:"tagsFilter,omitempty"`
}

// Filter of one quantity or string: Match has value, Range has min and max (of a quantity) or
// regex (of a string).
type Filter struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
}

// GPUFilter bounds one field of the cards.
type GPUFilter struct {
	Field  string          `json:"field"`
	Filter string          `json:"filter"`
	Data   json.RawMessage `json:"data"`
}

// Flavor is what a node of FLUIDOS offers.
type Flavor struct {
	v1alpha1.TypeMeta `json:",inline"`
	Metadata          Metadata        `json:"metadata"`
	Status            json.RawMessage `json:"status,omitempty"`
	Spec              struct {
		ProviderID string `json:"providerID,omitempty"`
		FlavorType struct {
			TypeIdentifier string   `json:"typeIdentifier"`
			TypeData       TypeData `json:"typeData"`
		} `json:"flavorType"`
		Owner               json.RawMessage `json:"owner,omitempty"`
		Price               Price           `json:"price,omitzero"`
		Availability        bool            `json:"availability"`
		NetworkPropertyType json.RawMessage `json:"networkPropertyType,omitempty"`
		Location            struct {
			Latitude        string `json:"latitude,omitempty"`
			Longitude       string `json:"longitude,omitempty"`
			Country         string `json:"country,omitempty"`
			City            string `json:"city,omitempty"`
			AdditionalNotes string `json:"additionalNotes,omitempty"`
		} `json:"location,omitzero"`
	} `json:"spec"`
}

// TypeData describes a K8Slice.
type TypeData struct {
	Characteristics struct {
		Architecture string            `json:"architecture,omitempty"`
		CPU          v1alpha1.Quantity `json:"cpu"`
		Memory       v1alpha1.Quantity `json:"memory"`
		Pods         v1alpha1.Quantity `json:"pods,omitempty"`
		Storage      v1alpha1.Quantity `json:"storage,omitempty"`
		GPU          *struct {
			Vendor            string            `json:"vendor,omitempty"`
			Model             string            `json:"model,omitempty"`
			Cores             v1alpha1.Quantity `json:"cores,omitempty"`
			Memory            v1alpha1.Quantity `json:"memory,omitempty"`
			Tier              string            `json:"tier,omitempty"`
			Count             int64             `json:"count,omitempty"`
			Architecture      string            `json:"architecture,omitempty"`
			Interconnect      string            `json:"interconnect,omitempty"`
			ComputeCapability string            `json:"compute_capability,omitempty"`
		} `json:"gpu,omitempty"`
	} `json:"characteristics"`
	Properties Properties `json:"properties,omitzero"`
	Policies   struct {
		Partitionability struct {
			CPUMin     v1alpha1.Quantity `json:"cpuMin,omitempty"`
			MemoryMin  v1alpha1.Quantity `json:"memoryMin,omitempty"`
			PodsMin    v1alpha1.Quantity `json:"podsMin,omitempty"`
			GPUMin     v1alpha1.Quantity `json:"gpuMin,omitempty"`
			CPUStep    v1alpha1.Quantity `json:"cpuStep,omitempty"`
			MemoryStep v1alpha1.Quantity `json:"memoryStep,omitempty"`
			PodsStep   v1alpha1.Quantity `json:"podsStep,omitempty"`
			GPUStep    v1alpha1.Quantity `json:"gpuStep,omitempty"`
		} `json:"partitionability,omitzero"`
	} `json:"policies,omitzero"`
}

// Architectures that Go and Kubernetes know; a Range is a regular expression
// over them.
var Architectures = []string{"386", "amd64", "arm", "arm64", "ppc64le", "riscv64", "s390x"}

// Name makes a name of FLUIDOS's (which may have dots) one of ours.
func Name(name string) string { return strings.ReplaceAll(strings.ToLower(name), ".", "-") }

// Floor reads a CPU capacity down to milli-CPU: FLUIDOS writes nano-CPU,
// and what is offered must not be rounded up.
func Floor(name, text string) (v1alpha1.Amount, error) {
	a, err := v1alpha1.ParseAmount(name, text)
	if err != nil || name != v1alpha1.CPU {
		return a, err
	}
	q, err := v1alpha1.ParseQuantity(text)
	if err != nil {
		return a, fmt.Errorf("%s: %w", name, err)
	}
	if whole := resource.NewMilliQuantity(a.Int64(), resource.DecimalSI); whole.Cmp(q) > 0 {
		return a.Sub(v1alpha1.AmountOf(1)), nil
	}
	return a, nil
}

// Properties are the facts of a K8Slice beside what it is made of.
type Properties struct {
	Latency           *int64   `json:"latency,omitempty"`
	SecurityStandards []string `json:"securityStandards,omitempty"`
	Carbon            struct {
		Embodied    int64   `json:"embodied,omitempty"`
		Operational []int64 `json:"operational,omitempty"`
	} `json:"carbon-footprint,omitzero"`
	NetworkAuthorizations json.RawMessage `json:"networkAuthorizations,omitempty"`
	AdditionalProperties  json.RawMessage `json:"additionalProperties,omitempty"`
}

// Intensity is the carbon intensity of operation in gCO2e per kWh: the mean of the
// values that it lists, rounded up; nil where it lists none. What making the machine
// emitted is no intensity and is left out.
func (p *Properties) Intensity() *int64 {
	list := p.Carbon.Operational
	if len(list) == 0 {
		return nil
	}
	sum, n := int64(0), int64(len(list))
	for _, g := range list {
		sum += max(min(g, 1_000_000), 0)
	}
	mean := (sum + n - 1) / n
	return &mean
}

// Price is a flavor's, of all of it.
type Price struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Period   string `json:"period"`
}

// Wrong is why a field cannot be read.
type Wrong struct{ Field, Reason, Message string }

// Hourly is the price an hour, nil where there is none.
func (p Price) Hourly() (*v1alpha1.Price, *Wrong) {
	if p.Amount == "" {
		return nil, nil
	}
	d, err := v1alpha1.ParseDecimal(p.Amount)
	if err != nil {
		return nil, &Wrong{"amount", "BadValue", fmt.Sprintf("spec.price.amount: %s", err)}
	}
	// FLUIDOS does not define its periods; "hourly" is what its own code writes.
	switch strings.ToLower(p.Period) {
	case "hourly", "hour", "":
	case "daily", "day":
		d = d.DivInt(24, 6)
	case "monthly", "month":
		d = d.DivInt(730, 6)
	default:
		return nil, &Wrong{"period", "NotConvertible", fmt.Sprintf("spec.price.period: %q is not hourly, daily or monthly", p.Period)}
	}
	return &v1alpha1.Price{Currency: strings.ToUpper(p.Currency), Flat: &d}, nil
}
