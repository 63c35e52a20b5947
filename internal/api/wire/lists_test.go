package wire

import (
	"runtime"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
)

// TestListsOfNothingTakeLittle: reports of 8 MiB and instructions of 16 MiB of which each few
// bytes would become a struct are refused before one is made.
func TestListsOfNothingTakeLittle(t *testing.T) {
	report, said := func() any { return &FlavorReport{} }, func() any { return &Instructions{} }
	list := func(head, element, tail string, size int) string {
		return head + strings.Repeat(element+",", (size-len(head)-len(tail))/(len(element)+1)-1) + element + tail
	}
	const mib = 1 << 20
	for name, of := range map[string]struct {
		text  string
		into  func() any
		taken bool
	}{
		"flavors":              {list(`{"flavors":[`, "{}", "]}", 8*mib), report, false},
		"flavors by case":      {list(`{"FLAVORS":[`, "{}", "]}", 8*mib), report, false},
		"flavors with specs":   {list(`{"flavors":[`, `{"spec":{"gpu":{}}}`, "]}", 8*mib), report, false},
		"windows":              {list(`{"flavors":[{"spec":{"price":{"windows":[`, "{}", "]}}}]}", 8*mib), report, false},
		"windows of several":   {list(`{"flavors":[`, `{"spec":{"price":{"windows":[`+strings.TrimSuffix(strings.Repeat("{},", 1000), ",")+`]}}}`, "]}", 8*mib), report, false},
		"flavors, two at once": {`{"flavors":[],` + list(`"x":[`, "{}", "]}", 8*mib), report, false},
		"instructions":         {list(`{"version":"1","provide":[`, "{}", "]}", 16*mib), said, false},
		"what a report has":    {list(`{"flavors":[`, `{"metadata":{"name":"f"},"spec":{"price":{"windows":[{},{},{}]}}}`, "]}", 2000*65), report, true},
		"what a fleet has":     {list(`{"version":"1","provide":[`, `{"contract":"c","consumer":"rome","resources":{"cpu":"1"}}`, "]}", 40_000*58), said, true},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := strictjson.Decode([]byte(of.text), of.into())
		runtime.ReadMemStats(&after)
		took := (after.TotalAlloc - before.TotalAlloc) >> 20
		if of.taken != (err == nil) || took > 256 {
			t.Errorf("%s: %d MiB, %v", name, took, err)
		}
	}
}
