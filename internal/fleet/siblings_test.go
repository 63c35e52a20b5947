package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/fleet/links"
)

// TestTogether_ByTheHundred: more intents than are placed as one do not belong together,
// whoever names whom: each that names another is refused with what to do, in its line.
func TestTogether_ByTheHundred(t *testing.T) {
	for n, refused := range map[int]bool{links.MaxGroup: false, links.MaxGroup + 1: true} {
		files := base()
		for i := range n {
			more := ""
			if i > 0 {
				more = fmt.Sprintf(", placement: {together: [i%03d]}", i-1)
			}
			name := fmt.Sprintf("i%03d", i)
			files = files.with("intents/vision/"+name+".yaml", intent("vision", name, "resources: {cpu: 1}"+more))
		}
		r := NewReader()
		f := read(t, r, files, nil)
		count := 0
		for _, in := range f.Intents {
			if in.ProblemCode == model.TooManyTogether {
				count++
				if !strings.Contains(in.Problem, "65 intents belong together") || !strings.Contains(in.Problem, "at most 64 may") {
					t.Fatalf("%s: %s", in.Metadata.Name, in.Problem)
				}
			}
		}
		if want := map[bool]int{true: n - 1}[refused]; count != want {
			t.Errorf("%d of %d are refused, want %d", count, n, want)
		}
	}
}
