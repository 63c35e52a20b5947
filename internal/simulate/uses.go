package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Use is how full a flavor or a provider was.
type Use struct {
	Provider string `json:"provider"`
	// Flavor is "" for all of a provider.
	Flavor string `json:"flavor,omitempty"`
	// Model of the cards; "" where there are none, or of several models.
	Model string `json:"model,omitempty"`
	// GPUs, or where there are none Cores.
	GPUs  float64 `json:"gpus"`
	Cores float64 `json:"cores"`
	// Mean over time and End, from 0 to 1, of the GPUs, or where there are none of the cores.
	Mean float64 `json:"mean"`
	End  float64 `json:"end"`
	// Cost of what was placed there.
	Cost v1alpha1.Decimal `json:"cost"`
}

// Never are intents of one tenant that ask for the same and were never placed for the
// same reason.
type Never struct {
	Tenant string `json:"tenant"`
	// N of them.
	N int `json:"n"`
	// GPUs of each, and the models that would do.
	GPUs   float64  `json:"gpus"`
	Models []string `json:"models,omitempty"`
	// CPU and Memory of each.
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
	// Why: the requirement that most offers fail, or the reason's code.
	Why string `json:"why"`
	// Waited is how long the longest of them had waited at the end, in seconds.
	Waited int64 `json:"waited"`
}

// nowhere is why a policy that gives no reasons does not place.
const nowhere = "nowhere fits"

// Asks is what each of them asks for, for people.
func (n *Never) Asks() string {
	var parts []string
	if n.GPUs > 0 {
		gpu := strings.TrimSuffix(strconv.FormatFloat(n.GPUs, 'f', 3, 64), ".000") + " GPU"
		if n.GPUs > 1 {
			gpu += "s"
		}
		if len(n.Models) > 0 {
			gpu += " (" + strings.Join(n.Models, " or ") + ")"
		}
		parts = append(parts, gpu)
	}
	return strings.Join(append(parts, n.CPU+" CPU", n.Memory+" memory"), ", ")
}

// Because is why, for people.
func (n *Never) Because() string {
	if said := planner.Shortfall(n.Why); said != "" {
		return "most offers " + said
	}
	return n.Why
}

type neverKey struct {
	shape       shapeKey
	tenant, why string
}

// addNever counts a job that was never placed.
func addNever(all map[neverKey]*Never, j *job, end int64) {
	key := neverKey{shapeOf(j.demand), j.tenant, cmp.Or(j.why, nowhere)}
	n := all[key]
	if n == nil {
		d := j.demand
		n = &Never{Tenant: j.tenant, GPUs: float64(d.Milli()) / thousands, Models: d.Models, CPU: d.CPU.Canonical(v1alpha1.CPU), Memory: d.Memory.Canonical(v1alpha1.Memory), Why: key.why}
		all[key] = n
	}
	n.N++
	if !j.refused {
		n.Waited = max(n.Waited, end-j.arrived)
	}
}

func sortedNever(all map[neverKey]*Never) []Never {
	var out []Never
	for _, n := range all {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b Never) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Asks(), b.Asks()), cmp.Compare(a.Why, b.Why))
	})
	return out
}

// uses are how full flavors and providers were, until the end.
func (e *engine) uses(end int64) (flavors, providers []Use) {
	type sum struct {
		gpus, cores, allGPUs, allCores float64
		endGPUs, endCores              int64
		milli, cpu, paid               int64
		model                          string
	}
	m := e.measures
	use := func(provider, flavor string, s *sum) Use {
		u := Use{Provider: provider, Flavor: flavor, Model: s.model, GPUs: float64(s.milli) / thousands, Cores: float64(s.cpu) / thousands, Cost: micros(s.paid)}
		held, all, now, size := s.gpus, s.allGPUs, s.endGPUs, s.milli
		if s.milli == 0 {
			held, all, now, size = s.cores, s.allCores, s.endCores, s.cpu
		}
		if all > 0 {
			u.Mean = round4(held / all)
		}
		if size > 0 {
			u.End = round4(float64(now) / float64(size))
		}
		return u
	}
	by := map[string]*sum{}
	var names []string
	for i := range e.sites {
		s, held := &e.sites[i], &m.bySite[i]
		held.until(end)
		one := sum{gpus: held.gpuSeconds, cores: held.cpuSeconds, endGPUs: held.gpu, endCores: held.cpu, milli: s.milli(s.allUnits), cpu: s.allCPU, paid: held.paid}
		one.allGPUs, one.allCores = float64(one.milli)*m.allSeconds, float64(one.cpu)*m.allSeconds
		if g := s.flavor.Spec.GPU; g != nil {
			one.model = g.Model
		}
		provider := s.flavor.Metadata.Namespace
		flavors = append(flavors, use(provider, s.flavor.Metadata.Name, &one))
		all := by[provider]
		if all == nil {
			all = &sum{model: one.model}
			by[provider] = all
			names = append(names, provider)
		}
		if all.model != one.model {
			all.model = ""
		}
		all.gpus, all.cores, all.allGPUs, all.allCores = all.gpus+one.gpus, all.cores+one.cores, all.allGPUs+one.allGPUs, all.allCores+one.allCores
		all.endGPUs, all.endCores, all.milli, all.cpu, all.paid = all.endGPUs+one.endGPUs, all.endCores+one.endCores, all.milli+one.milli, all.cpu+one.cpu, all.paid+one.paid
	}
	for _, name := range names {
		providers = append(providers, use(name, "", by[name]))
	}
	return flavors, providers
}

// Size is what there is of it, for people.
func (u *Use) Size() string {
	number := func(f float64, what string) string {
		text := strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + " " + what
		if f != 1 {
			text += "s"
		}
		return text
	}
	switch {
	case u.GPUs > 0 && u.Model != "":
		return fmt.Sprintf("%s %s", number(u.GPUs, "GPU"), u.Model)
	case u.GPUs > 0:
		return number(u.GPUs, "GPU")
	}
	return number(u.Cores, "core")
}
