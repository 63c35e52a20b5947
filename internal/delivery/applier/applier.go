package applier

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Verdict is what a tool's objects show about one tenant's manifests.
type Verdict struct {
	// Trouble is what keeps them from being applied, "" for nothing.
	Trouble string
	// Current: what is not there is not on its way.
	Current bool
}

// Named is an object for people.
func Named(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// applies reports whether what is applied from a path of the repo brings a
// tenant's contracts, or only the namespaces and policies that they need.
func applies(from, consumer, tenant string) (contracts, basis bool) {
	dir := manifests.Dir(consumer)
	switch strings.TrimPrefix(path.Clean("/"+from), "/") {
	case dir:
		return true, true
	case path.Join(dir, tenant):
		return true, false
	case path.Join(dir, "namespaces"):
		return false, true
	}
	return false, false
}

func terminating(u *unstructured.Unstructured) bool { return u.GetDeletionTimestamp() != nil }
