package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Holder is a tenant that holds GPUs which an intent waits for.
type Holder struct {
	// Tenant, "" for all those together that the viewer does not see.
	Tenant string `json:"tenant,omitempty"`
	// GPUs that it holds, by so many Contracts, on offers that have the model and are large
	// enough, and have too few free.
	GPUs      int `json:"gpus"`
	Contracts int `json:"contracts"`
	// Ends is when the first of these contracts' terms ends; absent when none does.
	Ends v1alpha1.Time `json:"ends,omitzero"`
}

// blocked notes in rows of the queue who holds what they wait for. It looks at each offer
// and each contract once.
func (m *Model) blocked(s Sight, rows []QueueRow) {
	at := map[[2]string]int{} // rows by intent
	for i := range rows {
		at[[2]string{rows[i].Tenant, rows[i].Name}] = i
	}
	full := map[[2]string][]int{} // rows that would fit an offer if more of it were free
	for _, it := range m.Fleet.Intents {
		i, here := at[it.Key()]
		g := it.Spec.Resources.GPU
		if !here || g == nil {
			continue
		}
		need := int64(max(g.Count, 1))
		for k := range m.flavors {
			f := &m.flavors[k]
			if f.GPUs != nil && f.GPUs.Capacity >= need && f.GPUs.Free < need && wanted(g, f.Model) {
				full[[2]string{f.Provider, f.Name}] = append(full[[2]string{f.Provider, f.Name}], i)
			}
		}
	}
	held := make([]map[string]*Holder, len(rows))
	for k := range m.contracts {
		c := &m.contracts[k]
		if !c.Held || c.GPUs == 0 {
			continue
		}
		for _, i := range full[[2]string{c.Provider, c.Flavor}] {
			name := ""
			if s.Of(c.Tenant) {
				name = c.Tenant
			}
			if held[i] == nil {
				held[i] = map[string]*Holder{}
			}
			h := held[i][name]
			if h == nil {
				h = &Holder{Tenant: name}
				held[i][name] = h
			}
			h.GPUs, h.Contracts = h.GPUs+int(c.GPUs), h.Contracts+1
			if name != "" && !c.End.IsZero() && (h.Ends.IsZero() || c.End.Before(h.Ends.Time)) {
				h.Ends = c.End
			}
		}
	}
	for i := range rows {
		for _, h := range held[i] {
			rows[i].BlockedBy = append(rows[i].BlockedBy, *h)
		}
		slices.SortFunc(rows[i].BlockedBy, func(a, b Holder) int {
			return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(a.Tenant, b.Tenant))
		})
	}
}

// wanted reports whether a request takes a model.
func wanted(g *v1alpha1.GPURequest, model string) bool {
	return len(g.Models) == 0 || slices.ContainsFunc(g.Models, func(want string) bool {
		want = strings.ToLower(strings.TrimSpace(want))
		return want == "any" || gpunames.Match(want, model)
	})
}
