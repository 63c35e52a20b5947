// Package accelerators is the one table of resources that are scarce and dear enough to
// be sold for themselves: who asks for none is kept off them, and one that has no price
// is not sold. A fleet extends it (Fleet.accelerators).
//
// Pure; safe for concurrent use.
package accelerators

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// table are the names under which pods ask for accelerators, as the vendors' device
// plugins have them (November 2026). A * at the end stands for any rest.
var table = []string{
	v1alpha1.GPU,
	"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*",
	"amd.com/gpu", "amd.com/cpx_nps4", "amd.com/spx_nps1",
	"gpu.intel.com/*", "habana.ai/*",
	"google.com/tpu", "cloud-tpus.google.com/*",
	"aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice",
	"huawei.com/ascend*", "cambricon.com/*", "hygon.com/dcu", "kunlunxin.com/*", "iluvatar.com/gpu", "metax-tech.com/*", "mthreads.com/*", "enflame.com/*",
	"qualcomm.com/qaic*", "furiosa.ai/*", "rebellions.ai/*", "tenstorrent.com/*", "xilinx.com/fpga-*",
}

// Is reports whether a resource is an accelerator: by the table, or by further names.
func Is(name string, more []string) bool {
	is := func(pattern string) bool { return Matches(pattern, name) }
	return slices.ContainsFunc(table, is) || slices.ContainsFunc(more, is)
}

// Names are those of the table that are whole names, in its order.
func Names() []string {
	return slices.DeleteFunc(slices.Clone(table), func(name string) bool { return !strings.Contains(name, "/") || strings.HasSuffix(name, "*") })
}

// Matches reports whether a name is meant by one of a table. Case counts for nothing.
func Matches(pattern, name string) bool {
	if prefix, open := strings.CutSuffix(pattern, "*"); open {
		return len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
	}
	return strings.EqualFold(pattern, name)
}

// Columns are an offer's accelerators that are no cards with a description (Gaudi, TPU,
// Neuron), such as "8x habana.ai/gaudi", and how many of each are free; several are joined by
// a comma. Both are "" where there are none.
func Columns(capacity, free v1alpha1.Resources, more []string) (what, left string) {
	var names, counts []string
	for _, name := range capacity.Names() {
		if name != v1alpha1.GPU && !capacity[name].IsZero() && Is(name, more) {
			names = append(names, capacity[name].Canonical(name)+"x "+name)
			counts = append(counts, free[name].Max(v1alpha1.Amount{}).Canonical(name))
		}
	}
	return strings.Join(names, ", "), strings.Join(counts, ", ")
}

// Unsold are the accelerators of a capacity that no class of a price names, in order:
// none of them is sold. A flat price is one for all, and what has no price at all is
// unpriced. is reports what is an accelerator.
func Unsold(capacity v1alpha1.Resources, p *v1alpha1.Price, is func(name string) bool) []string {
	if p == nil || p.Flat != nil || len(p.PerHour) == 0 {
		return nil
	}
	classes := []v1alpha1.UnitPrices{p.PerHour, p.Spot}
	if p.Reserved != nil {
		classes = append(classes, p.Reserved.UnitPrices)
	}
	var out []string
	for name, a := range capacity {
		priced := func(u v1alpha1.UnitPrices) bool { _, named := u[name]; return named }
		if !a.IsZero() && is(name) && !slices.ContainsFunc(classes, priced) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
