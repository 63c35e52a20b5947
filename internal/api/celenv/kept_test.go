package celenv

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Conditions by the thousand, each of its own and as long as may be, take a part of memory
// that does not grow with them, and answer as before.
func TestManyConditionsTakeLittle(t *testing.T) {
	defer func(most int) { mostKept = most }(mostKept)
	mostKept = 256 << 10
	var programs []*Program
	condition := func(i int) string {
		var or []string
		for j := range 110 {
			or = append(or, fmt.Sprintf("flavor.gpu.count == %d", 10_000+i+j))
		}
		return strings.Join(or, " || ")
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	many := 3 * mostKept / (110 * 26)
	for i := range many {
		p, err := Compile(condition(i))
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := (after.HeapAlloc - before.HeapAlloc) >> 20; n > 14 {
		t.Errorf("%d conditions take %d MiB", many, n)
	} else {
		t.Logf("%d conditions take %d MiB", many, n)
	}
	has := func(count int64) *v1alpha1.Flavor {
		f := &v1alpha1.Flavor{}
		f.Spec.GPU = &v1alpha1.FlavorGPU{}
		f.Spec.Capacity = v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(count)}
		return f
	}
	if programs[0].live.Load() != nil || programs[many-1].live.Load() == nil {
		t.Error("the oldest is kept, or the newest is not")
	}
	for _, i := range []int{0, 1, many / 2, many - 1, 0} {
		for count, want := range map[int64]bool{10_000 + int64(i): true, 9_999 + int64(i): false} {
			if ok, err := programs[i].Eval(nil, has(count), nil); err != nil || ok != want {
				t.Errorf("condition %d of %d: %v, %v", i, count, ok, err)
			}
		}
	}
	if programs[0].live.Load() == nil {
		t.Error("what was asked again is not kept")
	}
}
