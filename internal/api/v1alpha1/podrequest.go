package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/fleetbroker/fleetbroker/internal/api/gpuforms"
)

// perPod is the key of a PodRequest among the quantities of an alternative.
const perPod = "perPod"

// PodRequest is what one pod asks for: how many GPUs (which, the request next to it
// states) and named quantities.
type PodRequest struct {
	// GPUs of the pod, 0 where it names none.
	GPUs int64
	// Named quantities: cpu, memory, ephemeral-storage, or any fully qualified extended resource.
	Named Resources
}

// errPodGPUs refuses anything but a count of a pod's GPUs.
var errPodGPUs = errors.New("write how many GPUs a pod has as a whole number from 1, such as gpu: 1; which GPUs they are is written under resources")

// UnmarshalJSON reads a map of quantities in which gpu is a count. A vendor's GPUs may
// stand under the name that pods have for them (nvidia.com/gpu, nvidia.com/mig-1g.10gb).
func (p *PodRequest) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return errors.New("write a map of what the biggest pod asks for, such as {gpu: 1, cpu: 8, memory: 64Gi}")
	}
	*p = PodRequest{}
	for _, name := range sortedKeys(raw) {
		if _, _, is, _ := gpuforms.ByResource(name); name != GPU && !is {
			continue
		}
		if p.GPUs > 0 {
			return fmt.Errorf("%s asks for GPUs a second time; write gpu alone", name)
		}
		text, err := quantityText(raw[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, errPodGPUs)
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return fmt.Errorf("%s: %w", name, errPodGPUs)
		}
		p.GPUs = n
		delete(raw, name)
	}
	return p.Named.read(raw)
}

// MarshalJSON writes the map form.
func (p PodRequest) MarshalJSON() ([]byte, error) {
	out := map[string]any{}
	for name, q := range p.Named.Canonical() {
		out[name] = q
	}
	if p.GPUs > 0 {
		out[GPU] = p.GPUs
	}
	return json.Marshal(out)
}

// IsZero reports whether nothing is asked for.
func (p *PodRequest) IsZero() bool { return p == nil || p.GPUs == 0 && len(p.Named) == 0 }

// All are its quantities by name, its GPUs as gpu; nil has none.
func (p *PodRequest) All() Resources {
	if p == nil {
		return nil
	}
	out := p.Named.Clone()
	if p.GPUs > 0 {
		out[GPU] = AmountOf(p.GPUs)
	}
	return out
}
