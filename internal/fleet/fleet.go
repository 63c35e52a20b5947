package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Fleet is everything people have written, as values. Nothing in it is ever
// modified.
type Fleet struct {
	// Tree is the root it was read from.
	Tree tree.Hash
	// Name of the fleet.
	Name string
	// Policy with its defaults filled in; never nil.
	Policy *v1alpha1.FleetSpec
	// Policies are Policy.Policies, compiled.
	Policies []model.Policy
	// Clusters and Tenants by name.
	Clusters map[string]*v1alpha1.Cluster
	Tenants  map[string]*v1alpha1.Tenant
	// Flavors known without an agent, by provider and name.
	Flavors []*v1alpha1.Flavor
	// Prices by name.
	Prices []*v1alpha1.PriceTable
	// Intents that could be read, by tenant and name. One that is as it was in an earlier Fleet mostly keeps its address.
	Intents []*model.Intent
	// Frozen is what unreadable files had named, sorted.
	Frozen []model.Freeze
	// Diagnostics by file and place.
	Diagnostics []Diagnostic
	// NotRead are the pieces of the inputs that were left out because their
	// processes ended, by path.
	NotRead []Unread
	// Copies of sources from which intents were read, by the source's name.
	Copies map[string]*v1alpha1.SourceCopy
	// Unfinished: of some tenant a part is still to be read (Sources.Rationed), and
	// the next read goes on with it.
	Unfinished bool

	// good are the newest good versions of all files but intents, by path.
	good map[string]*file
	// kept are those of them that stand in for broken ones.
	kept   []*file
	unread unread
}

// unread are the files without any readable version, with why. What depends on one of
// them is neither right nor wrong: nothing is said of it but that.
type unread struct {
	fleet             string
	clusters, tenants map[string]string
	// missing are the clusters that have no file and that a tenant counts on as its consumer,
	// or a flavor as its provider, by the first file that is reported for it.
	missing map[string]string
	// places: a file that may name regions and zones is among them.
	places bool
}

// Kept are the last good versions that stand in for broken files, by path, as
// text that says the same.
func (f *Fleet) Kept() (map[string]string, error) {
	out := map[string]string{}
	for _, k := range f.kept {
		var text strings.Builder
		for _, d := range k.docs {
			b, err := genyaml.Marshal(d.object)
			if err != nil {
				return nil, fmt.Errorf("write the last good version of %s: %w", k.path, err)
			}
			text.WriteString("---\n" + string(b))
		}
		out[k.path] = text.String()
	}
	return out, nil
}

// Severity of a diagnostic.
type Severity string

// The severities. An error is something that will not be acted on.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Diagnostic is one problem of the inputs.
type Diagnostic struct {
	// File, and the place in it, from 1.
	File         string
	Line, Column int
	// Message says what is wrong and what to write instead.
	Message  string
	Severity Severity
	// Code is the problem as a machine-readable word.
	Code string
	// Intent that is refused for it, "<tenant>/<name>"; "" when the whole file is unreadable.
	Intent string
}

// String is "file:line:col: message".
func (d Diagnostic) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", d.File, d.Line, d.Column, d.Message)
}

// Delivered are the clusters, each with its mode of delivery: its own, or the
// fleet's default.
func (f *Fleet) Delivered() map[string]*v1alpha1.Cluster {
	if f.Policy.Defaults.Delivery == "direct" {
		return f.Clusters // which an empty mode is, too
	}
	out := maps.Clone(f.Clusters)
	for name, c := range out {
		if c.Spec.Delivery == "" {
			with := *c
			with.Spec.Delivery = f.Policy.Defaults.Delivery
			out[name] = &with
		}
	}
	return out
}

// Intent is the intent of a name, nil when there is none.
func (f *Fleet) Intent(tenant, name string) *model.Intent {
	if from, to := model.Called(f.Intents, tenant, name); from < to {
		return f.Intents[from]
	}
	return nil
}

// Errors are the diagnostics that are errors.
func (f *Fleet) Errors() []Diagnostic {
	var out []Diagnostic
	for _, d := range f.Diagnostics {
		if d.Severity == Error {
			out = append(out, d)
		}
	}
	return out
}

// Unread are the errors of what takes no part in a plan: files that could not be
// read, and intents that stand in several files. An intent that was read and is
// wrong is refused in the plan itself.
func (f *Fleet) Unread() []Diagnostic {
	return slices.DeleteFunc(f.Errors(), func(d Diagnostic) bool {
		tenant, name, named := strings.Cut(d.Intent, "/")
		return named && f.Intent(tenant, name) != nil
	})
}

func sortDiagnostics(list []Diagnostic) []Diagnostic {
	order := func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	}
	if !slices.IsSortedFunc(list, order) { // mostly it is, and may be long
		slices.SortStableFunc(list, order)
	}
	return slices.Compact(list)
}

func sortFreezes(list []model.Freeze) []model.Freeze {
	slices.SortFunc(list, func(a, b model.Freeze) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Intent, b.Intent), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Why, b.Why))
	})
	return slices.Compact(list)
}
