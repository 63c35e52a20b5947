// Package offered holds what intents ask for by name against the names that a fleet's files
// offer and those that vendors use: GPU models, resources, keys of labels. A name that none
// of them has may be one that an agent reports, so that most of what is found here is a
// warning, and only where another name is near.
//
// It judges values; package fleet knows where they are written and reports them with
// file and line. Each problem states what to write instead.
//
// offered.go has the names, files.go what files count on: clusters, and prices.
//
// Values are made by one goroutine, and read by any afterwards.
package offered

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/gpuforms"
	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/advice"
)

// Names are what files offer. The zero value has none.
type Names struct {
	models    advice.Models
	resources map[string]bool
	labels    map[string]bool
	// units are the GPUs that are sold under a resource's name, as an intent asks for one, in
	// each way of sharing.
	units map[string][]string
}

// Problem is a name that is not offered.
type Problem struct {
	// At is where it is, below spec. Where a GPU has its short form, that has no place of
	// its own.
	At   []any
	Code string
	// Text is what is wrong and what to write, to be put after the path.
	Text string
	// Refused: no agent can report what is asked for.
	Refused bool
}

// Flavor adds what a flavor offers.
func (n *Names) Flavor(f *v1alpha1.Flavor) {
	for name := range f.Spec.Capacity {
		put(&n.resources, name, true)
	}
	for key := range f.Spec.Labels {
		put(&n.labels, key, true)
	}
	if g := f.Spec.GPU; g != nil {
		n.models.Offer(g.Model)
		if as := unit(g); as != "" && !slices.Contains(n.units[g.ResourceName], as) {
			put(&n.units, g.ResourceName, append(n.units[g.ResourceName], as))
		}
	}
}

// Table adds what a price table names.
func (n *Names) Table(t *v1alpha1.PriceTable) {
	for i := range t.Spec.Prices {
		n.models.Offer(t.Spec.Prices[i].Model)
	}
}

// Cluster adds the labels of a cluster.
func (n *Names) Cluster(c *v1alpha1.Cluster) {
	for key := range c.Spec.Labels {
		put(&n.labels, key, true)
	}
}

// Accelerators adds the names that a fleet counts as accelerators.
func (n *Names) Accelerators(names []string) {
	for _, name := range names {
		put(&n.resources, name, true)
	}
}

// Key is everything that Problems goes by, as text.
func (n *Names) Key() string {
	sorted := func(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
	return fmt.Sprintf("%q %q %q %q", n.models.Offered(), sorted(n.resources), sorted(n.labels), n.units)
}

// shared is the name of the parts of cards that are sold by time or by MPS, as NVIDIA's
// device plugin gives it: agents report those as GPUs.
const shared = "nvidia.com/gpu.shared"

// unit is the request for one of a flavor's GPUs, but for its count; "" for whole cards by
// the name that pods have for them, which is read as such a request.
func unit(g *v1alpha1.FlavorGPU) string {
	if _, _, is, _ := gpuforms.ByResource(g.ResourceName); is || g.ResourceName == "" {
		return ""
	}
	var fields []string
	for _, f := range [][2]string{{"vendor", g.Vendor}, {"sharing", g.Sharing}} {
		if f[1] != "" && f[1] != "none" {
			fields = append(fields, f[0]+": "+f[1])
		}
	}
	if g.Sharing == "" || g.Sharing == "none" {
		fields = append(fields, fmt.Sprintf("models: [%s]", g.Model))
	}
	return strings.Join(fields, ", ")
}

// devices are models of accelerators that are also known as resources of their own, by how
// the model begins.
var devices = []struct{ model, resource string }{
	{"gaudi", "habana.ai/gaudi"}, {"tpu", "google.com/tpu"},
	{"trainium", "aws.amazon.com/neuron"}, {"trn", "aws.amazon.com/neuron"}, {"inferentia", "aws.amazon.com/neuron"}, {"inf", "aws.amazon.com/neuron"},
}

// topology are keys of labels that vendors and Kubernetes give nodes.
var topology = []string{
	"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "topology.kubernetes.io/rack", "topology.kubernetes.io/block",
	"nvidia.com/gpu.clique", "ds.coreweave.com/nvlink.domain",
}

// Problems are those of an intent. unread: a file that may offer more cannot be read.
func (n *Names) Problems(s *v1alpha1.IntentSpec, unread bool) []Problem {
	out := n.request(nil, []any{"resources"}, &s.Resources, unread)
	for i := range s.Alternatives {
		out = n.request(out, []any{"alternatives", i}, &s.Alternatives[i], unread)
	}
	if unread {
		return out
	}
	key := func(key string, at ...any) {
		if near := n.label(key); near != "" {
			out = append(out, Problem{At: at, Code: "UnknownLabel", Text: fmt.Sprintf(": no file of this fleet names the label %s (did you mean %q?)", key, near)})
		}
	}
	if w := s.Placement.Within; w != nil {
		key(w.Label, "placement", "within", "label")
	}
	for i := range s.Placement.Spread {
		key(s.Placement.Spread[i].Label, "placement", "spread", i, "label")
	}
	for _, k := range slices.Sorted(maps.Keys(s.Placement.Labels)) {
		key(k, "placement", "labels", k)
	}
	return out
}

// label is the key of a label that was probably meant; "" for one that is offered, and
// where none is near.
func (n *Names) label(key string) string {
	known := slices.Concat(slices.Sorted(maps.Keys(n.labels)), topology)
	if key == "" || slices.Contains(known, key) {
		return ""
	}
	return near(key, known)
}

func (n *Names) request(out []Problem, at []any, r *v1alpha1.ResourceRequest, unread bool) []Problem {
	for _, name := range r.Named.Names() {
		if text, refused := n.resource(name, r.Named[name], unread); text != "" {
			out = append(out, Problem{At: append(slices.Clone(at), name), Code: "UnknownResource", Text: ": " + text, Refused: refused})
		}
	}
	if r.GPU == nil {
		return out
	}
	for i, model := range r.GPU.Models {
		text := n.device(model, max(r.GPU.Count, 1), unread)
		if text == "" {
			text = n.models.Unknown(model)
		}
		if text != "" {
			out = append(out, Problem{At: append(slices.Clone(at), "gpu", "models", i), Code: "UnknownModel", Text: ": " + text})
		}
	}
	return out
}

// resource says of a resource that is asked for by another name than it is offered what to
// write; "" for any other.
func (n *Names) resource(name string, a v1alpha1.Amount, unread bool) (text string, refused bool) {
	if n.resources[name] || !strings.Contains(name, "/") {
		return "", false
	}
	if units := n.units[name]; len(units) > 0 || name == shared {
		if len(units) == 0 {
			units = []string{"vendor: nvidia, sharing: time-slicing"}
		}
		for _, fields := range units[:min(len(units), 2)] {
			text += fmt.Sprintf(", or gpu: {count: %s, %s}", a.Canonical(name), fields)
		}
		return fmt.Sprintf("what pods ask for as %s is offered as gpu; write %s", name, strings.TrimPrefix(text, ", or ")), name == shared
	}
	if unread {
		return "", false
	}
	known := slices.Concat(slices.Sorted(maps.Keys(n.resources)), accelerators.Names())
	if near := near(name, known); near != "" && !slices.Contains(known, name) {
		return fmt.Sprintf("no file of this fleet offers %s (did you mean %q?)", name, near), false
	}
	return "", false
}

// device says of a model that files offer as a resource of its own, and not as a GPU, what
// to write; "" for any other.
func (n *Names) device(model string, count int32, unread bool) string {
	bare := strings.TrimPrefix(gpunames.Model(model), "intel-")
	offered := func(name string) bool { return strings.HasPrefix(strings.TrimPrefix(name, "intel-"), bare) }
	for _, d := range devices {
		if strings.HasPrefix(bare, d.model) && n.resources[d.resource] && !unread && !slices.ContainsFunc(n.models.Offered(), offered) {
			return fmt.Sprintf("files of this fleet offer no GPU %s, and %s as a resource of its own; write %[2]s: %[3]d in place of gpu", model, d.resource, count)
		}
	}
	return ""
}

// near is the known name that differs from another by one letter left out, put in, put in
// place of another or swapped with the next; "" where none does. Case counts for nothing.
func near(name string, known []string) string {
	for _, k := range known {
		if slip(strings.ToLower(name), strings.ToLower(k)) {
			return k
		}
	}
	return ""
}

func slip(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

func put[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = v
}
