package delivery

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// asWanted reports whether a live object is what was applied last: it carries
// the hash of the wanted one, and every wanted field still has its value.
func asWanted(want *object, live *unstructured.Unstructured) bool {
	return live != nil && live.GetAnnotations()[want.applied] == want.hash && covers(live.Object, want.u.Object)
}

// covers reports whether live has everything that want has. Fields of others
// and defaults do not matter; lists must match item by item.
func covers(live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		liveMap, ok := live.(map[string]any)
		if !ok {
			return len(want) == 0 && live == nil
		}
		for k, v := range want {
			if !covers(liveMap[k], v) {
				return false
			}
		}
		return true
	case []any:
		liveList, ok := live.([]any)
		if !ok || len(liveList) != len(want) {
			return len(want) == 0 && live == nil
		}
		for i := range want {
			if !covers(liveList[i], want[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(live, want)
	}
}
