// Package advice recognises values that can be read and are not what their author
// meant, or that nobody can have meant, and says what to write instead: a memory of 16
// bytes, a model of GPU that nobody makes.
//
// It judges single values; package fleet knows where they are written and reports them,
// and only of files that people write: agents and the daemon write bytes.
//
// Pure functions; safe for concurrent use.
package advice

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpuforms"
	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// least is the smallest amount of memory or storage that somebody may mean by a number
// without a unit, in bytes.
const least = 1 << 20

// unitless is a number without a unit, or with the unit m, which is a thousandth.
var unitless = regexp.MustCompile(`^\+?([0-9]+)(\.[0-9]*)?m?$`)

// InBytes reports whether a resource is counted in bytes.
func InBytes(name string) bool {
	return name == v1alpha1.Memory || name == v1alpha1.EphemeralStorage || strings.HasPrefix(name, "hugepages-")
}

// Memory says what is wrong with an amount of memory or storage whose unit is missing,
// and what to write; "" when nothing is. text is how it is written.
func Memory(name string, a v1alpha1.Amount, text string) string {
	m := unitless.FindStringSubmatch(text)
	if m == nil || !InBytes(name) || a.IsZero() || a.Int64() >= least {
		return ""
	}
	unit := "Gi"
	if strings.HasSuffix(text, "m") {
		unit = "Mi"
	}
	return fmt.Sprintf("%s is %d bytes; write %s%s%s", text, a.Int64(), m[1], strings.TrimSuffix(m[2], "."), unit)
}

// Unreached says of an amount that a flavor's file lists under the name that pods have for
// GPUs that no intent finds it, and what to write; "" for any other name.
func Unreached(name string, a v1alpha1.Amount) string {
	vendor, profile, is, err := gpuforms.ByResource(name)
	switch {
	case !is || a.IsZero():
		return ""
	case err != nil:
		return strings.TrimPrefix(err.Error(), name+": ")
	case profile == "":
		return fmt.Sprintf("intents that ask for %s are read as gpu and do not find it; write gpu: %q under capacity, and gpu: {vendor: %s, model: <model>, resourceName: %s} under spec",
			name, a.Canonical(name), vendor, name)
	}
	return fmt.Sprintf("intents that ask for %s are read as gpu of profile %s and do not find it; write gpu: %q under capacity, and gpu: {vendor: %s, model: <model>, sharing: mig, profile: %s, unitsPerGPU: <instances of a card>, resourceName: %s} under spec",
		name, profile, a.Canonical(name), vendor, profile, name)
}

// FirstUnreached is the first name of a capacity of which Unreached says something.
func FirstUnreached(r v1alpha1.Resources) (name, text string) {
	for _, name := range r.Names() {
		if text := Unreached(name, r[name]); text != "" {
			return name, text
		}
	}
	return "", ""
}

// Contrary says of a model whose name states another vendor than makes it what to write;
// "" for any other name.
func Contrary(name string) string {
	model, stated, vendor, write := gpunames.Contrary(name)
	if model == "" {
		return ""
	}
	return fmt.Sprintf("%s is a GPU of %s, not of %s; write %s", model, vendor, stated, write)
}

// NoneOf says that no GPU is of a vendor and of one of some models, "" where one may be: a
// model that is not known may be anybody's.
func NoneOf(vendor string, models []string) string {
	vendor = strings.ToLower(vendor)
	if len(models) == 0 || !gpuforms.IsVendor(vendor) {
		return ""
	}
	first := ""
	for _, m := range models {
		made, _, _ := gpunames.Normalize(m, 0)
		if made == "" || made == vendor || !gpunames.Known(m) {
			return ""
		}
		first = cmp.Or(first, made)
	}
	return fmt.Sprintf("no GPU of %s is called %s; leave the vendor out, or write %s", vendor, strings.Join(models, " or "), first)
}

var capability = regexp.MustCompile(`^\d+(\.\d+)?$`)

// IsCapability reports whether a text is a compute capability, such as 9.0.
func IsCapability(text string) bool { return capability.MatchString(text) }

// shown is how many models a message names of each kind.
const shown = 12

// Models are what GPU models can be called: those of the table of known names, and
// those that a fleet's files offer.
type Models struct {
	offered map[string]string // by normalised name, as it is written
}

// Offer adds a model that a flavor or a price table names.
func (m *Models) Offer(model string) {
	if model == "" {
		return
	}
	if m.offered == nil {
		m.offered = map[string]string{}
	}
	if name := gpunames.Model(model); m.offered[name] == "" {
		m.offered[name] = model
	}
}

// Offered are the normalised names of what is offered, sorted.
func (m *Models) Offered() []string {
	names := make([]string, 0, len(m.offered))
	for name := range m.offered {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Unknown says that no GPU is called like that, with the name that was probably meant and
// those there are; "" for one that is known or offered. An agent may offer a model
// that neither knows.
func (m *Models) Unknown(model string) string {
	model = strings.TrimSpace(model)
	if model == "" || strings.EqualFold(model, gpunames.Any) || gpunames.Known(model) || Contrary(model) != "" || m.offered[gpunames.Model(model)] != "" {
		return ""
	}
	known, offered := gpunames.Models(), m.Offered()
	text := fmt.Sprintf("unknown GPU model %q", model)
	near := nearest.Of(bare(model), append(bareAll(offered), known...))
	if sized := sized(bare(model)); sized != "" {
		near = sized
	}
	if near != "" {
		text += fmt.Sprintf(" (did you mean %s?)", near)
	}
	if len(offered) > 0 {
		text += "; offered by files of this fleet: " + list(bareAll(offered))
	}
	return text + "; known: " + list(known)
}

// beginning is a name that begins with a model, which a number may follow that is no model of its own.
var beginning = regexp.MustCompile(`^([A-Z]+[0-9]+[A-Z]*|[A-Z]+[-_ ][0-9]+)(?:[-_ ]?([0-9]{2,3})(?:[-_ ].*)?|[-_ ].*)$`)

// sized is the known model that a longer name in capitals begins with, with the memory
// that a number without a unit means if the model is sold with it: A100-80 is A100-80GB;
// "" where it begins with none.
func sized(model string) string {
	m := beginning.FindStringSubmatch(model)
	if m == nil || !gpunames.Known(m[1]) {
		return ""
	}
	if gb, err := strconv.ParseInt(m[2], 10, 64); err == nil && gpunames.Sold(m[1], gb) {
		return m[1] + "-" + m[2] + "GB"
	}
	return m[1]
}

// bare is a model without its vendor, in capitals, as people write it.
func bare(model string) string {
	s := strings.ToUpper(model)
	for _, vendor := range []string{"NVIDIA-", "NVIDIA ", "AMD-", "AMD ", "INTEL-", "INTEL "} {
		if rest, ok := strings.CutPrefix(s, vendor); ok {
			return rest
		}
	}
	return s
}

func bareAll(models []string) []string {
	out := make([]string, len(models))
	for i, m := range models {
		out[i] = bare(m)
	}
	return out
}

func list(names []string) string {
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// resources are names of resources that people use, by those of Kubernetes.
var resources = map[string]string{
	"ram": v1alpha1.Memory, "mem": v1alpha1.Memory, "cores": v1alpha1.CPU, "vcpu": v1alpha1.CPU, "vcpus": v1alpha1.CPU,
	"disk": v1alpha1.EphemeralStorage, "storage": v1alpha1.EphemeralStorage, "accelerator": v1alpha1.GPU, "accelerators": v1alpha1.GPU,
}

// Resource is the resource that another name for it means, "" for other names.
func Resource(name string) string { return resources[strings.ToLower(name)] }
