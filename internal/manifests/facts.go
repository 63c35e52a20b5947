package manifests

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Renderer numbers what this program renders. Equal contracts, clusters and
// number are equal bytes, always: the golden files hold the number to them.
// A change of a byte raises it, and lays the old rendering beside the new
// one for a release, so that audit can judge histories by it (Renders).
//
// What differs (Older): in 2 the policy intent-guard covers all namespaces but
// those of the system; in 3 policies have the fleet's id in their names, are never
// pruned, namespace-guard holds the label fleetbroker.io/system, and intents' names
// that are cut have a longer hash (Facts.Renderer); in 4 objects bear the fleet's id; in 5
// virtualnode-guard holds virtual nodes to their provider's node, and contracts may name
// nodes: before, none did; in 6 the policies read matchExpressions of a podSelector, which
// no contract had before.
const Renderer = 6

// longHash is the rendering from which on names of intents are cut with ten bytes
// of hash instead of four, and policies have the fleet's id in their names.
const longHash = 3

// ofFleet is the rendering from which on objects bear the fleet's id.
const ofFleet = 4

// Renders reports whether this program can say what a commit of this number
// should have rendered. Commits from before numbering have 0; they are rendered
// as 1 is.
func Renders(number int) bool { return number >= 0 && number <= Renderer }

// Facts are what rendering depends on beside the contracts.
type Facts struct {
	// Clusters, each with its mode of delivery (fleet.Delivered).
	Clusters map[string]*v1alpha1.Cluster
	// Fleet is the fleet's id, "" where it has none.
	Fleet string
	// Renderer is the number of an older rendering, whose objects of contracts and
	// namespaces are asked for; 0 is this program's. Policies are always this
	// program's: Older has those of then.
	Renderer int
}

// Same reports whether two render alike.
func (f *Facts) Same(other *Facts) bool {
	if f == other {
		return true
	}
	if f == nil || other == nil {
		return false
	}
	return f.Fleet == other.Fleet && f.Renderer == other.Renderer && maps.EqualFunc(f.Clusters, other.Clusters, sameCluster)
}

// Covers reports whether what was rendered by f renders alike by another's facts, which name
// fewer clusters: those that nothing depends on any more.
func (f *Facts) Covers(other *Facts) bool {
	if f == nil || other == nil || f.Fleet != other.Fleet || f.Renderer != other.Renderer {
		return f == other
	}
	for name, c := range other.Clusters {
		if was, known := f.Clusters[name]; !known || !sameCluster(was, c) {
			return false
		}
	}
	return true
}

// ProvidersOf are the providers of the contracts that changes make or keep, by consumer.
func ProvidersOf(changes []model.Change) map[string][]string {
	out := map[string][]string{}
	for _, ch := range changes {
		if ch.After != nil {
			out[ch.After.Spec.Consumer] = append(out[ch.After.Spec.Consumer], ch.After.Spec.Provider)
		}
	}
	return out
}

// With is f with those of a consumer's providers that it does not know: the change that
// makes contracts with them is rendered by these clusters.
func (f *Facts) With(clusters map[string]*v1alpha1.Cluster, providers []string) *Facts {
	out := f
	for _, name := range providers {
		if f == nil || clusters[name] == nil || out.Clusters[name] != nil {
			continue
		}
		if out == f {
			out = &Facts{Clusters: maps.Clone(f.Clusters), Fleet: f.Fleet, Renderer: f.Renderer}
		}
		out.Clusters[name] = clusters[name]
	}
	return out
}

// sameCluster compares what is rendered of a cluster.
func sameCluster(a, b *v1alpha1.Cluster) bool {
	return a == b || a != nil && b != nil && a.Spec.Delivery == b.Spec.Delivery &&
		a.Spec.Liqo.ClusterID == b.Spec.Liqo.ClusterID && a.Spec.Liqo.TenantNamespace == b.Spec.Liqo.TenantNamespace && a.Spec.Liqo.Namespace == b.Spec.Liqo.Namespace &&
		slices.Equal(a.Spec.Deliverers, b.Spec.Deliverers) && a.AdmissionForm() == b.AdmissionForm()
}

// begin is a rendering of these facts.
func (f *Facts) begin(ix Index) *render {
	r := newRender(ix, f.clusters())
	if f != nil {
		r.fleet = f.Fleet
		r.number = cmp.Or(f.Renderer, Renderer)
	}
	return r
}

func (f *Facts) clusters() map[string]*v1alpha1.Cluster {
	if f == nil {
		return nil
	}
	return f.Clusters
}

// Consumer renders the manifests of one consumer's contracts.
func (f *Facts) Consumer(ix Index, consumer string) (Output, error) {
	r := f.begin(ix)
	ix.each(r.contract, refused, consumer)
	r.all(consumer)
	return r.present()
}

// Update renders what changes touch; ix is the index after them.
func (f *Facts) Update(ix Index, changes []model.Change) (Output, error) {
	return f.begin(ix).update(changes)
}

// All renders the manifests of all contracts of an index.
func (f *Facts) All(ix Index) (Output, error) { return f.begin(ix).everything() }

// Alike reports whether two contracts of a name render alike, nil being none.
func Alike(a, b *v1alpha1.Contract) bool {
	if a == b {
		return true
	}
	if Rendered(a) != Rendered(b) {
		return false
	}
	return !Rendered(a) || releasing(a) == releasing(b) && a.Metadata.Namespace == b.Metadata.Namespace && reflect.DeepEqual(a.Spec, b.Spec)
}
