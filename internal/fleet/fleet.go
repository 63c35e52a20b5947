package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
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
	Policies []Policy
	// Clusters and Tenants by name.
	Clusters map[string]*v1alpha1.Cluster
	Tenants  map[string]*v1alpha1.Tenant
	// Flavors known without an agent, by provider and name.
	Flavors []*v1alpha1.Flavor
	// Prices by name.
	Prices []*v1alpha1.PriceTable
	// Intents that could be read, by tenant and name. One that is as it was in an earlier Fleet mostly keeps its address.
	Intents []*Intent
	// Frozen is what unreadable files had named, sorted.
	Frozen []Freeze
	// Diagnostics by file and place.
	Diagnostics []Diagnostic
	// NotRead are the pieces of the inputs that were left out because their
	// processes ended, by path.
	NotRead []Unread
	// Unfinished: of some tenant a part is still to be read (Sources.Rationed), and
	// the next read goes on with it.
	Unfinished bool

	// good are the newest good versions of all files but intents, by path.
	good map[string]*file
	// kept are those of them that stand in for broken ones.
	kept []*file
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

// Predicate is a compiled condition on one offer for one intent.
type Predicate interface {
	Eval(intent *v1alpha1.ResourceIntent, flavor *v1alpha1.Flavor, cluster *v1alpha1.Cluster) (bool, error)
}

// Policy is a rule of the fleet with its compiled condition.
type Policy struct {
	v1alpha1.Policy
	Predicate Predicate
}

// Intent is a ResourceIntent with where it came from.
type Intent struct {
	*v1alpha1.ResourceIntent
	// Path of its file; of the kustomization that made it.
	Path string
	// Digest of its specification and labels, "sha256:…".
	Digest string
	// Problem is the first mistake of an intent that could be read, with its place; such an intent is refused.
	Problem string
	// ProblemCode is Problem as a machine-readable word.
	ProblemCode string
	// Where is the compiled placement.where, nil when there is none.
	Where Predicate
}

// Freeze says what an unreadable input had named. Empty fields match nothing,
// but a tenant without an intent is all its intents.
type Freeze struct {
	// Path of a file, or of a directory when it ends in '/': all contracts whose intent lies there. "/" is everything.
	Path string
	// Tenant and Intent name one intent.
	Tenant, Intent string
	// Cluster whose file was never readable: all contracts it gives or gets.
	Cluster string
	// Why, with file, line and column.
	Why string
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
func (f *Fleet) Intent(tenant, name string) *Intent {
	if from, to := f.Called(tenant, name); from < to {
		return f.Intents[from]
	}
	return nil
}

// Called is where in Intents those of a name stand: from the first to before the second.
func (f *Fleet) Called(tenant, name string) (from, to int) {
	from, _ = slices.BinarySearchFunc(f.Intents, name, func(it *Intent, name string) int { return it.Compare(tenant, name) })
	to = from
	for to < len(f.Intents) && f.Intents[to].Metadata.Namespace == tenant && f.Intents[to].Metadata.Name == name {
		to++
	}
	return from, to
}

// Compare says whether an intent stands before (negative), at or after a name in
// the order of a fleet's Intents.
func (it *Intent) Compare(tenant, name string) int {
	return cmp.Or(strings.Compare(it.Metadata.Namespace, tenant), strings.Compare(it.Metadata.Name, name))
}

// SameEnds is how many of two lists' first intents, and then of their last, are
// the very same values.
func SameEnds(a, b []*Intent) (head, tail int) {
	n := min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
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

func sortFreezes(list []Freeze) []Freeze {
	slices.SortFunc(list, func(a, b Freeze) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Intent, b.Intent), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Why, b.Why))
	})
	return slices.Compact(list)
}
