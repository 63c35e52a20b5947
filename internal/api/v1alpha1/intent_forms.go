package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpuforms"
)

// Replicas is how many slices an intent wants: a number, or a range to follow
// demand.
type Replicas struct {
	// Min replicas; equal to Max when a plain number was written.
	Min int32
	// Max replicas.
	Max int32
	// Range is true when {min, max} was written.
	Range bool
}

type replicaRange struct {
	Min int32 `json:"min"`
	Max int32 `json:"max"`
}

// PriceClasses is a list of price classes. One alone may be written without brackets.
type PriceClasses []PriceClass

// UnmarshalJSON reads one class or a list.
func (l *PriceClasses) UnmarshalJSON(b []byte) error {
	var one PriceClass
	if json.Unmarshal(b, &one) == nil && !bytes.Equal(b, []byte("null")) {
		*l = PriceClasses{one}
		return nil
	}
	return json.Unmarshal(b, (*[]PriceClass)(l))
}

// UnmarshalJSON reads a number or {min, max}.
func (r *Replicas) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil && text != "" {
		if _, err := strconv.ParseInt(text, 10, 32); err == nil {
			return fmt.Errorf("%q is a string; write %s without quotes", text, text)
		}
		return fmt.Errorf("%q is text; write a whole number, or {min: 1, max: 6} to follow demand", text)
	}
	var n int32
	if err := json.Unmarshal(b, &n); err == nil {
		*r = Replicas{Min: n, Max: n}
		return nil
	}
	var rr replicaRange
	if err := strict(b, &rr); err != nil {
		return fmt.Errorf("replicas is a number, or {min, max} to follow demand: %w", err)
	}
	*r = Replicas{Min: rr.Min, Max: rr.Max, Range: true}
	return nil
}

// MarshalJSON writes the form that was read.
func (r Replicas) MarshalJSON() ([]byte, error) {
	if r.Range {
		return json.Marshal(replicaRange{r.Min, r.Max})
	}
	return json.Marshal(r.Min)
}

// ResourceRequest is what one replica needs: named quantities and a GPU
// request. Every quantity is a minimum.
type ResourceRequest struct {
	// GPU request; nil asks for none.
	GPU *GPURequest
	// Named quantities: cpu, memory, pods, ephemeral-storage, or any fully qualified extended resource.
	Named Resources
	// PerPod is what the biggest pod asks for; nil where that is not stated. It is written in an alternative, and beside resources (IntentSpec.PerPod).
	PerPod *PodRequest
}

// Over is an alternative: what r does not say is as in base. GPUs are replaced
// whole.
func (r ResourceRequest) Over(base ResourceRequest) ResourceRequest {
	out := ResourceRequest{GPU: base.GPU, Named: base.Named.Clone(), PerPod: base.PerPod}
	if r.GPU != nil {
		out.GPU = r.GPU
	}
	if r.PerPod != nil {
		out.PerPod = r.PerPod
	}
	for name, n := range r.Named {
		out.Named[name] = n
	}
	return out
}

// gpusByResource takes what is asked for by the name that pods have for it as GPUs of
// that vendor, or as instances of that MIG profile.
func (r *ResourceRequest) gpusByResource(raw map[string]json.RawMessage) error {
	for _, name := range sortedKeys(raw) {
		vendor, profile, is, err := gpuforms.ByResource(name)
		if err != nil {
			return err
		}
		if !is {
			continue
		}
		if r.GPU != nil {
			return fmt.Errorf("%s asks for GPUs a second time; write gpu alone, such as %s", name, gpuforms.Object(max(r.GPU.Count, 1), vendor, profile))
		}
		text, err := quantityText(raw[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		n, err := strconv.ParseInt(text, 10, 32)
		switch {
		case err != nil || n < 0:
			return fmt.Errorf("%s: %q is not a whole number of GPUs; write for example %s", name, text, gpuforms.Object(1, vendor, profile))
		case n == 0:
			return fmt.Errorf("%s: %w", name, errNoGPUs)
		}
		r.GPU = &GPURequest{Count: int32(n), Vendor: vendor, Profile: profile}
		delete(raw, name)
	}
	return nil
}

// UnmarshalJSON reads a map of quantities in which gpu may be an object, a
// short form or a count. A vendor's GPUs may stand under the name that pods have for
// them (nvidia.com/gpu, nvidia.com/mig-1g.10gb), in place of gpu.
func (r *ResourceRequest) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*r = ResourceRequest{}
	if g, ok := raw[GPU]; ok {
		r.GPU = &GPURequest{}
		if err := json.Unmarshal(g, r.GPU); err != nil {
			return fmt.Errorf("gpu: %w", err)
		}
		delete(raw, GPU)
	}
	if p, ok := raw[perPod]; ok {
		r.PerPod = &PodRequest{}
		if err := json.Unmarshal(p, r.PerPod); err != nil {
			return fmt.Errorf("%s: %w", perPod, err)
		}
		delete(raw, perPod)
	}
	if err := r.gpusByResource(raw); err != nil {
		return err
	}
	return r.Named.read(raw)
}

// MarshalJSON writes the map form.
func (r ResourceRequest) MarshalJSON() ([]byte, error) {
	out := map[string]any{}
	for name, q := range r.Named.Canonical() {
		out[name] = q
	}
	if r.GPU != nil {
		out[GPU] = r.GPU
	}
	if r.PerPod != nil {
		out[perPod] = r.PerPod
	}
	return json.Marshal(out)
}

// GPURequest is the GPU part of a request, for one replica.
type GPURequest struct {
	// Count of GPUs (units of the flavor); default 1.
	Count int32 `json:"count,omitempty"`
	// Share of one GPU instead of a count, such as "0.5"; rounded up to the flavor's units.
	Share *Decimal `json:"share,omitempty"`
	// Models that are acceptable, any of them; empty or "any" means all. Case-insensitive, vendor prefix optional.
	Models []string `json:"models,omitempty"`
	// Memory per GPU, marketed size: a minimum "80Gi" or a range "40Gi..80Gi".
	Memory MemoryRange `json:"memory,omitzero"`
	// Vendor such as nvidia or amd.
	Vendor string `json:"vendor,omitempty"`
	// Architecture such as hopper or ampere.
	Architecture string `json:"architecture,omitempty"`
	// Tier such as premium, standard, gaming, inference or budget.
	Tier string `json:"tier,omitempty"`
	// Interconnect such as nvlink, nvswitch, infiniband or pcie.
	Interconnect string `json:"interconnect,omitempty"`
	// ComputeCapability is a minimum, such as "8.0".
	ComputeCapability string `json:"computeCapability,omitempty"`
	// Profile is a MIG profile such as 1g.10gb.
	Profile string `json:"profile,omitempty"`
	// Sharing that is wanted: mig, time-slicing or mps. Without share, profile or sharing only whole cards are given.
	Sharing string `json:"sharing,omitempty"`
}

type gpuObject GPURequest

// UnmarshalJSON reads the object form, a count, or the short form
// "A100:8:40GB..": `:`-separated tokens in any order, each a vendor or models
// (comma: any of), a count, memory per GPU, or a MIG profile. (The grammar is dstack's.)
func (g *GPURequest) UnmarshalJSON(b []byte) error {
	switch {
	case bytes.HasPrefix(b, []byte("{")):
		err := strict(b, (*gpuObject)(g))
		count := struct{ Count *int32 }{}
		if (err != nil || g.Count == 0) && json.Unmarshal(b, &count) == nil && count.Count != nil && *count.Count == 0 {
			return errNoGPUs
		}
		return err
	case bytes.HasPrefix(b, []byte(`"`)):
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		short, err := ParseGPU(s)
		if err != nil {
			return err
		}
		*g = short
		return nil
	}
	var n int32
	if json.Unmarshal(b, &n) != nil {
		return strict(b, (*gpuObject)(g)) // which says what is expected
	}
	if n == 0 {
		return errNoGPUs
	}
	*g = GPURequest{Count: n}
	return nil
}

// errNoGPUs refuses a count of 0, which would else be taken for the default, 1.
var errNoGPUs = errors.New("a count of 0 asks for no GPU; leave gpu out where none is wanted")

// ParseGPU reads the short form of a GPU request.
func ParseGPU(s string) (GPURequest, error) {
	var g GPURequest
	var seenCount, seenMem bool
	var tokens []string
	for _, tok := range strings.Split(s, ":") {
		tokens = append(tokens, gpuforms.Counted(strings.TrimSpace(tok))...)
	}
	for _, tok := range tokens {
		lower := strings.ToLower(tok)
		switch {
		case tok == "":
			return g, fmt.Errorf("%q has an empty part; write for example \"H100:8\" or \"A100:4:40GB..\"", s)
		case strings.Contains(tok, " ") && gpuforms.Joined(s) != "":
			return g, fmt.Errorf("%q: a model has no spaces; write %q", s, gpuforms.Joined(s))
		case gpuforms.IsVendor(lower) && g.Vendor == "":
			g.Vendor = lower
		case gpuforms.IsMemory(tok):
			if seenMem {
				return g, fmt.Errorf("%q names the memory twice", s)
			}
			seenMem = true
			m, err := ParseMemoryRange(tok)
			if err != nil {
				return g, fmt.Errorf("%q: %w", s, err)
			}
			g.Memory = m
		case gpuforms.IsRange(tok):
			return g, fmt.Errorf("%q: %q is a range of counts, which a replica cannot have; write how many it needs, and fewer under alternatives", s, tok)
		case gpuforms.IsProfile(lower):
			if g.Profile != "" {
				return g, fmt.Errorf("%q names the MIG profile twice", s)
			}
			g.Profile = lower
		case gpuforms.IsShare(tok):
			return g, fmt.Errorf("%q: %s is a share of a card; write gpu: {share: %q}, and add models if only some will do", s, tok, tok)
		case tok[0] >= '0' && tok[0] <= '9':
			n, err := strconv.ParseInt(tok, 10, 32)
			if err != nil || seenCount || n < 1 {
				return g, fmt.Errorf("%q: %q is not a count (write a whole number once; memory needs a unit, such as 80GB)", s, tok)
			}
			seenCount = true
			g.Count = int32(n)
		case gpuforms.IsModels(tok):
			if len(g.Models) > 0 {
				return g, fmt.Errorf("%q names models twice; separate alternatives by commas", s)
			}
			g.Models = strings.Split(tok, ",")
		default:
			return g, fmt.Errorf("%q: do not understand %q; write model, count and memory separated by colons, such as \"A100:8:40GB..\"", s, tok)
		}
	}
	return g, nil
}

// MemoryRange is GPU memory by marketed size, in bytes; Max 0 is unbounded.
type MemoryRange struct{ Min, Max Amount }

// ParseMemoryRange reads "80Gi" (a minimum), "40GB..80GB", "24GB.." or
// "..80GB". GB and Gi mean the same class: the marketed size.
func ParseMemoryRange(s string) (MemoryRange, error) {
	lo, hi, isRange := strings.Cut(s, "..")
	var m MemoryRange
	var err error
	if lo != "" {
		if m.Min, err = ParseGPUMemory(lo); err != nil {
			return m, err
		}
	}
	if isRange && hi != "" {
		if m.Max, err = ParseGPUMemory(hi); err != nil {
			return m, err
		}
	}
	if lo == "" && hi == "" {
		return m, fmt.Errorf("%q is not a memory size: write 80Gi or 40Gi..80Gi", s)
	}
	if !m.Max.IsZero() && m.Max.Less(m.Min) {
		return m, fmt.Errorf("%q: the smaller size stands first", s)
	}
	return m, nil
}

var gpuMemoryForm = regexp.MustCompile(`(?i)^(\d{1,9})(\.\d{1,3})?\s*(GB|GiB|Gi|G|MB|MiB|Mi)$`)

// ParseGPUMemory reads a marketed memory size, down to whole Mi; GB and Gi are the same class.
func ParseGPUMemory(s string) (Amount, error) {
	m := gpuMemoryForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return Amount{}, fmt.Errorf("%q is not a memory size: write a number with Gi or GB, such as 80Gi", s)
	}
	f, err := strconv.ParseFloat(m[1]+m[2], 64)
	if err != nil {
		return Amount{}, fmt.Errorf("%q is not a memory size: %w", s, err)
	}
	unit := float64(1 << 30)
	if strings.HasPrefix(strings.ToUpper(m[3]), "M") {
		unit = 1 << 20
	}
	return AmountOf(int64(f*unit) >> 20 << 20), nil
}

// UnmarshalJSON reads the string form.
func (m *MemoryRange) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s is not a memory size: write it in quotes or plain with a unit, such as 80Gi or 40Gi..80Gi", b)
	}
	v, err := ParseMemoryRange(s)
	if err != nil {
		return err
	}
	*m = v
	return nil
}

// MarshalJSON writes the string form.
func (m MemoryRange) MarshalJSON() ([]byte, error) { return json.Marshal(m.String()) }

// String is "80Gi" or "40Gi..80Gi".
func (m MemoryRange) String() string {
	if m.Max.IsZero() {
		return gpuMemoryText(m.Min)
	}
	return gpuMemoryText(m.Min) + ".." + gpuMemoryText(m.Max)
}

// gpuMemoryText is a size as ParseGPUMemory reads it, "" for none.
func gpuMemoryText(a Amount) string {
	switch {
	case a.IsZero():
		return ""
	case a.n%(1<<30) == 0:
		return strconv.FormatInt(a.n>>30, 10) + "Gi"
	}
	return strconv.FormatInt(a.n>>20, 10) + "Mi"
}

// Contains reports whether a card of this memory satisfies the range.
func (m MemoryRange) Contains(a Amount) bool {
	return !a.Less(m.Min) && (m.Max.IsZero() || !m.Max.Less(a))
}

// SpreadList is one spread rule or a list of them.
type SpreadList []Spread

// UnmarshalJSON reads one entry or a list.
func (l *SpreadList) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		var one Spread
		if err := strict(b, &one); err != nil {
			return err
		}
		*l = SpreadList{one}
		return nil
	}
	var many []Spread
	if err := strict(b, &many); err != nil {
		return err
	}
	*l = many
	return nil
}

// strict decodes and refuses unknown fields: the strictness of the decoder
// that called an UnmarshalJSON does not reach into it.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
