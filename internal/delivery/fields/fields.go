// Package fields compares objects as a cluster has them with what is wanted of them.
//
// Invariants: what others set next to the wanted fields, and what the API server fills in,
// is no difference; a wanted field that is missing or says otherwise is.
//
// Callers: delivery. Its function is pure.
package fields

import "reflect"

// Covered reports whether live has everything that want has. Fields of others
// and defaults do not matter; lists must match item by item.
func Covered(live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		liveMap, ok := live.(map[string]any)
		if !ok {
			return len(want) == 0 && live == nil
		}
		for k, v := range want {
			if !Covered(liveMap[k], v) {
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
			if !Covered(liveList[i], want[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(live, want)
	}
}
