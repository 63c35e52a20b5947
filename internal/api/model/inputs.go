package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Predicate is a compiled condition on one offer for one intent. The flavor
// carries the price and location that hold for it; cluster is its provider and
// may be nil. An error counts as false for that offer.
type Predicate interface {
	Eval(intent *v1alpha1.ResourceIntent, flavor *v1alpha1.Flavor, cluster *v1alpha1.Cluster) (bool, error)
}

// TooManyTogether is the ProblemCode of an intent that belongs together with more than may
// (placement.together): nobody is bound by what it names.
const TooManyTogether = "TooManyTogether"

// Policy is a rule of the fleet with its compiled condition.
type Policy struct {
	v1alpha1.Policy
	// Predicate that every placement of a matching intent must satisfy.
	Predicate Predicate
}

// Binds reports whether a policy is for an intent, whose capacity appears in consumer.
// One that could not be compiled binds nobody.
func (p *Policy) Binds(in *v1alpha1.ResourceIntent, consumer string) bool {
	m := &p.Match
	if p.Predicate == nil || len(m.Tenants) > 0 && !slices.Contains(m.Tenants, in.Metadata.Namespace) || len(m.Consumers) > 0 && !slices.Contains(m.Consumers, consumer) {
		return false
	}
	for name, want := range m.Labels {
		if have, has := in.Metadata.Labels[name]; !has || have != want {
			return false
		}
	}
	return true
}

// Intent is a ResourceIntent with where it came from.
type Intent struct {
	*v1alpha1.ResourceIntent
	// Path of its file in the inputs; of the kustomization that made it.
	Path string
	// Digest of its specification and labels, "sha256:…".
	Digest string
	// Commit and Author of the last change of its file; "" until somebody has looked them up.
	Commit, Author string
	// Since is when it was first seen, known before the ledger says so because it waits for review; zero: now.
	Since v1alpha1.Time
	// Offered: what it was given waits for review, and is held against all others though the ledger does not have it. It is decided again, before them.
	Offered bool
	// Problem is the first semantic mistake that was found while reading (a wrong reference, an unsupported field), with its place; such an intent is refused with it, its contracts are kept as they are.
	Problem string
	// ProblemCode is Problem as a machine-readable word.
	ProblemCode string
	// Where is the compiled placement.where, nil when there is none.
	Where Predicate
}

// Key is an intent's tenant and name.
func (it *Intent) Key() [2]string { return [2]string{it.Metadata.Namespace, it.Metadata.Name} }

// Compare says whether an intent stands before (negative), at or after a name in
// the order of tenants and names.
func (it *Intent) Compare(tenant, name string) int {
	return cmp.Or(strings.Compare(it.Metadata.Namespace, tenant), strings.Compare(it.Metadata.Name, name))
}

// Freeze says what an unreadable input had named. Empty fields match nothing,
// but a tenant without an intent is all its intents.
type Freeze struct {
	// Path of a file, or of a directory when it ends in '/': all contracts whose intent lies there. "/" is everything.
	Path string
	// Tenant and Intent name one intent.
	Tenant, Intent string
	// Cluster whose file was never readable: all contracts that it gives or gets.
	Cluster string
	// Why, with file, line and column.
	Why string
}
