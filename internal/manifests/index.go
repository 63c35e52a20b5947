package manifests

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/ordered"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Index holds the contracts that have manifests, ordered by where these stand.
// It is an immutable value: With returns another one in time that follows the
// change, and both stay valid. The zero Index is empty.
type Index struct {
	m ordered.Map[*v1alpha1.Contract]
}

// The key spaces of an Index. Parts of a key are separated by '/', which
// stands in no name.
const (
	byShard     = "s" // s/<consumer>/<tenant>/<xx>/<contract>
	byNamespace = "n" // n/<consumer>/<namespace>/<contract>
	byProvider  = "p" // p/<consumer>/<provider>/<contract>
	refused     = "x" // x/<consumer>/<contract>: should have manifests, cannot have
)

// NewIndex indexes contracts in any order; those without manifests are left out.
func NewIndex(contracts []*v1alpha1.Contract) Index {
	changes := make([]model.Change, len(contracts))
	for i, c := range contracts {
		changes[i].After = c
	}
	return Index{}.With(changes)
}

// With is the index after changes. It costs what changes.
func (ix Index) With(changes []model.Change) Index {
	next := ix.m.Edit()
	for _, ch := range changes {
		for _, k := range keys(ch.Before) {
			next.Delete(k)
		}
	}
	for _, ch := range changes {
		for _, k := range keys(ch.After) {
			next.Set(k, ch.After)
		}
	}
	return Index{next.Done()}
}

// keys lists where a contract stands in an Index: nowhere when it has no manifests.
func keys(c *v1alpha1.Contract) []string {
	if !Rendered(c) {
		return nil
	}
	name := c.Metadata.Name
	if check(c) != nil {
		return []string{key(refused, c.Spec.Consumer, name)}
	}
	out := []string{
		key(byShard, c.Spec.Consumer, c.Metadata.Namespace, v1alpha1.IntentShard(c.Spec.Intent.Name), name),
		key(byProvider, c.Spec.Consumer, c.Spec.Provider, name),
	}
	for _, ns := range offloaded(c) {
		out = append(out, key(byNamespace, c.Spec.Consumer, ns.Name, name))
	}
	return out
}

// Rendered reports whether a contract is to have manifests: it is held, its
// intent asked to peer, and it is not yet drained.
func Rendered(c *v1alpha1.Contract) bool {
	return c != nil && c.Status.Phase.Held() &&
		(c.Spec.Stage == v1alpha1.StagePeer || c.Spec.Stage == "") &&
		!(releasing(c) && !c.Status.Drained.IsZero())
}

func releasing(c *v1alpha1.Contract) bool { return c.Status.Phase == v1alpha1.PhaseReleasing }

func offloaded(c *v1alpha1.Contract) []v1alpha1.OffloadNamespace {
	if c.Spec.Offload == nil {
		return nil
	}
	return c.Spec.Offload.Namespaces
}

func key(parts ...string) string { return strings.Join(parts, "/") }

// each calls fn for the contracts below a key, by name.
func (ix Index) each(fn func(*v1alpha1.Contract), parts ...string) {
	for _, c := range ix.m.Under(key(parts...) + "/") {
		fn(c)
	}
}

// list is the contracts below a key, oldest first: where contracts that share
// an object disagree, the oldest decides.
func (ix Index) list(parts ...string) []*v1alpha1.Contract {
	var out []*v1alpha1.Contract
	ix.each(func(c *v1alpha1.Contract) { out = append(out, c) }, parts...)
	slices.SortStableFunc(out, func(a, b *v1alpha1.Contract) int {
		return cmp.Or(a.Spec.Term.Start.Compare(b.Spec.Term.Start.Time), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return out
}

// next lists the names that follow a key, such as the tenants of a consumer.
// It leaps from name to name: its cost follows the answer, not the contracts.
func (ix Index) next(parts ...string) []string {
	prefix := key(parts...) + "/"
	var out []string
	for from := prefix; ; {
		k, ok := ix.m.Seek(from)
		rest, under := strings.CutPrefix(k, prefix)
		if !ok || !under {
			slices.Sort(out)
			return out
		}
		name, _, _ := strings.Cut(rest, "/")
		out = append(out, name)
		from = prefix + name + "0" // '0' follows '/' in ASCII
	}
}

// has reports whether any contract stands below a key.
func (ix Index) has(parts ...string) bool {
	k, ok := ix.m.Seek(key(parts...) + "/")
	return ok && strings.HasPrefix(k, key(parts...)+"/")
}

// Consumers lists the consumers that have manifests.
func (ix Index) Consumers() []string { return ix.next(byShard) }
