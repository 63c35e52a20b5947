package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/defaults"
	"github.com/fleetbroker/fleetbroker/internal/fleet/policymatch"
)

// policySet is everything but the intents: small, and built again when any of
// it changes.
type policySet struct {
	// sources are what it was built from; equal sources make an equal set.
	sources [5]any
	value   Fleet
}

// fleet is a copy of the set's Fleet for a tree; its slices have no room to
// grow, so that appending to the copy leaves the set alone.
func (p *policySet) fleet(root tree.Hash) *Fleet {
	f := p.value
	f.Tree = root
	f.Frozen = slices.Clip(f.Frozen)
	f.Diagnostics = slices.Clip(f.Diagnostics)
	return &f
}

// policies is the set at a tree: the previous one when nothing changed.
func (r *Reader) policies(now *reading, t tree.Tree, last *Fleet, older []tree.Tree) (*policySet, error) {
	p := &policySet{
		sources: [5]any{now.fleetFile, now.groups[secClusters], now.groups[secTenants], now.groups[secFlavors], now.groups[secPrices]},
	}
	if prev := r.prev.policy; prev != nil && prev.sources == p.sources && prev.settled() {
		return prev, nil
	}
	f := &p.value
	f.good, f.unread = map[string]*file{}, unread{clusters: map[string]string{}, tenants: map[string]string{}}
	b := &policyBuilder{reader: r, f: f, last: last, older: older}
	var err error
	if err = b.policy(now.fleetFile); err != nil {
		return nil, err
	}
	use := map[section][]*file{}
	for _, sec := range []section{secClusters, secTenants, secFlavors, secPrices} {
		f.Diagnostics = append(f.Diagnostics, refusedOf(now.groups[sec])...)
		if use[sec], err = b.usable(filesOf(now.groups[sec]), sec); err != nil {
			return nil, err
		}
	}
	f.Clusters, f.Tenants = map[string]*v1alpha1.Cluster{}, map[string]*v1alpha1.Tenant{}
	for _, c := range objectsOf[v1alpha1.Cluster](use[secClusters]) {
		f.Clusters[c.Metadata.Name] = c
	}
	for _, o := range objectsOf[v1alpha1.Tenant](use[secTenants]) {
		f.Tenants[o.Metadata.Name] = o
	}
	b.flavors(use[secFlavors])
	b.prices(use[secPrices])
	checkPolicies(f, use, now.fleetFile, t.Store)
	return p, nil
}

// settled: no file is broken, so that neither the last Fleet nor older trees
// matter.
func (p *policySet) settled() bool {
	for _, d := range p.value.Diagnostics {
		if d.Severity == Error {
			return false
		}
	}
	return true
}

// policyBuilder gathers the small files, in their newest good versions.
type policyBuilder struct {
	reader *Reader
	f      *Fleet
	last   *Fleet
	older  []tree.Tree
}

// usable is each file in its newest good version; what has none is left out
// and frozen.
func (b *policyBuilder) usable(files []*file, sec section) ([]*file, error) {
	var out []*file
	for _, f := range files {
		b.f.Diagnostics = append(b.f.Diagnostics, f.diags...)
		good, err := b.goodVersion(f)
		if err != nil {
			return nil, err
		}
		if good == nil {
			b.freeze(f, sec)
			continue
		}
		if good != f {
			b.f.kept = append(b.f.kept, good)
		}
		b.f.good[f.path] = good
		out = append(out, good)
	}
	return out, nil
}

func (b *policyBuilder) goodVersion(f *file) (*file, error) {
	if !f.broken {
		return f, nil
	}
	if b.last != nil && b.last.good[f.path] != nil {
		return b.last.good[f.path], nil
	}
	return b.reader.readOlder(b.older, f.path, f.sec)
}

// freeze keeps everything of a file that never was readable.
func (b *policyBuilder) freeze(f *file, sec section) {
	why := f.why()
	u := &b.f.unread
	u.places = u.places || sec == secClusters || sec == secFlavors
	switch name := stem(f.path); sec {
	case secTenants:
		u.tenants[name] = why
		b.f.Frozen = append(b.f.Frozen, model.Freeze{Tenant: name, Why: why})
	case secClusters:
		u.clusters[name] = why
		b.f.Frozen = append(b.f.Frozen, model.Freeze{Cluster: name, Why: why})
	case secFleet:
		u.fleet = why
		b.f.Frozen = append(b.f.Frozen, model.Freeze{Path: "/", Why: why})
	}
}

// policy reads fleet.yaml.
func (b *policyBuilder) policy(f *file) error {
	if f == nil {
		f = &file{path: fleetFile, sec: secFleet, broken: true, diags: []Diagnostic{{
			File: fleetFile, Line: 1, Column: 1, Severity: Error, Code: "Missing",
			Message: "fleet.yaml is missing; every fleet repo has one (`fleetbroker init` lays it down)",
		}}}
	}
	use, err := b.usable([]*file{f}, secFleet)
	if err != nil {
		return err
	}
	spec := v1alpha1.FleetSpec{}
	if len(use) > 0 {
		o := use[0].docs[0].object.(*v1alpha1.Fleet)
		b.f.Name, spec = o.Metadata.Name, o.Spec
	}
	b.f.Policy = defaults.Of(spec)
	for _, p := range spec.Policies {
		prog, _, err := b.reader.programs.compile(expression{policymatch.Condition(&p), true})
		if err != nil { // a file with such a policy is broken, and its last good version is used
			return fmt.Errorf("compile policy %s: %w", p.Name, err)
		}
		b.f.Policies = append(b.f.Policies, model.Policy{Policy: p, Predicate: prog})
	}
	return nil
}

// flavors gathers flavors by identity; of two with one identity the first
// file's is used.
func (b *policyBuilder) flavors(files []*file) {
	seen := map[string]string{}
	for _, f := range files {
		for _, fl := range objectsOf[v1alpha1.Flavor]([]*file{f}) {
			if first, dup := seen[fl.Ref()]; dup {
				b.duplicate(f, "flavor "+fl.Ref(), first)
				continue
			}
			seen[fl.Ref()] = f.path
			b.f.Flavors = append(b.f.Flavors, fl)
		}
	}
	slices.SortFunc(b.f.Flavors, func(x, y *v1alpha1.Flavor) int {
		return cmp.Or(cmp.Compare(x.Metadata.Namespace, y.Metadata.Namespace), cmp.Compare(x.Metadata.Name, y.Metadata.Name))
	})
}

func (b *policyBuilder) prices(files []*file) {
	seen := map[string]string{}
	for _, f := range files {
		for _, pt := range objectsOf[v1alpha1.PriceTable]([]*file{f}) {
			if first, dup := seen[pt.Metadata.Name]; dup {
				b.duplicate(f, "price table "+pt.Metadata.Name, first)
				continue
			}
			seen[pt.Metadata.Name] = f.path
			b.f.Prices = append(b.f.Prices, pt)
		}
	}
	slices.SortFunc(b.f.Prices, func(x, y *v1alpha1.PriceTable) int { return cmp.Compare(x.Metadata.Name, y.Metadata.Name) })
}

func (b *policyBuilder) duplicate(f *file, what, first string) {
	b.f.Diagnostics = append(b.f.Diagnostics, Diagnostic{
		File: f.path, Line: 1, Column: 1, Severity: Error, Code: "Duplicate",
		Message: fmt.Sprintf("%s is in %s already, which is used; rename or delete one of them", what, first),
	})
}

// why is the first error of a broken file.
func (f *file) why() string {
	problem, _ := firstError(f.diags)
	return problem
}
