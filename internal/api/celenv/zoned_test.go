package celenv

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Functions of time give what CEL's own give, in zones, at offsets and without; and "Local",
// another zone on each machine, is none.
func TestZoned(t *testing.T) {
	const at = `timestamp("2026-03-29T00:30:15.250Z")`
	for expression, want := range map[string]bool{
		at + `.getHours("Europe/Rome") == 1`:                             true,
		at + `.getHours("Asia/Kolkata") == 6`:                            true,
		at + `.getDate("America/New_York") == 28`:                        true,
		at + `.getDayOfMonth("America/New_York") == 27`:                  true,
		at + `.getDayOfWeek("America/New_York") == 6`:                    true,
		at + `.getDayOfYear("UTC") == 87`:                                true,
		at + `.getMonth("") == 2`:                                        true,
		at + `.getFullYear("Asia/Tokyo") == 2026`:                        true,
		at + `.getMinutes("Asia/Kolkata") == 0`:                          true,
		at + `.getSeconds("Europe/Rome") == 15`:                          true,
		at + `.getMilliseconds("Europe/Rome") == 250`:                    true,
		at + `.getHours("-01:30") == 23`:                                 true,
		at + `.getHours() == 0`:                                          true,
		`duration("90m").getMinutes() == 90`:                             true,
		`[` + at + `].all(x, x.getHours("Europe/Rome") == 1)`:            true,
		at + `.getHours("Local") < 99`:                                   false,
		at + `.getHours("Europe/Atlantis") < 99`:                         false,
		at + `.getHours("x:99") < 99`:                                    false,
		at + `.getHours(":") < 99`:                                       false,
		at + `.getHours("99:99") < 99`:                                   true,
		`timestamp(1/int(0*size("x"))).getHours("Europe/Rome") < 99`:     false,
		at + `.getHours(["Europe/Rome"][size("x")]) < 99`:                false,
		at + `.getHours("Local") < 99 || true`:                           true,
		`timestamp(0).getHours("Europe/Rome") + 1 == 2 && size("") == 0`: true,
	} {
		p, err := Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got, err := p.Eval(nil, nil, nil); got != want || want && err != nil {
			t.Errorf("%s is %t, %v", expression, got, err)
		}
	}
}

// A condition that names zones a hundred times reads no zone's file again for each offer.
func TestZoned_TakesLittle(t *testing.T) {
	const ten = "[0,1,2,3,4,5,6,7,8,9]"
	p, err := Compile(ten + ".all(x, " + ten + `.all(y, timestamp(x + y + size(flavor.name)).getHours("America/New_York") < 99))`)
	if err != nil {
		t.Fatal(err)
	}
	f := &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "a"}}
	var before, after runtime.MemStats
	for i := range 2 {
		f.Metadata.Name = fmt.Sprint("a", i)
		runtime.ReadMemStats(&before)
		if ok, err := p.Eval(nil, f, nil); !ok {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 256<<10 {
		t.Errorf("one evaluation allocates %d KiB", took>>10)
	}
}
