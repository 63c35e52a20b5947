package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// growing is a kustomization whose replacements copy an object into itself: the
// process that builds it dies, which no count foresees.
func growing() string {
	return "resources: [../../../../bases/gpu]\n" + bounded.Bomb("ResourceIntent", "spec")
}

// Inputs that are made to hurt are refused by name and within bounds, and the
// other intents are read.
func TestHostileInputs(t *testing.T) {
	const dir = "intents/vision/k/small/"
	levels := []string{}
	for i := range 20 {
		for _, side := range []string{"a", "b"} {
			levels = append(levels, fmt.Sprintf("bases/l%d%s/kustomization.yaml", i+1, side), fmt.Sprintf("resources: [../l%d]\nnameSuffix: -%s\n", i, side))
		}
		levels = append(levels, fmt.Sprintf("bases/l%d/kustomization.yaml", i+1), fmt.Sprintf("resources: [../l%da, ../l%[1]db]\n", i+1))
	}
	levels = append(levels, "bases/l0/kustomization.yaml", "resources: [../gpu]\n", dir+"kustomization.yaml", "resources: [../../../../bases/l20]\n")
	laughs := strings.Builder{}
	laughs.WriteString("kind: X\nmetadata:\n  a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&laughs, "  a%d: &a%[1]d [%s]\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	for name, tc := range map[string]struct {
		files []string
		want  string
	}{
		"two directories a level, 20 levels": {levels, dir + "kustomization.yaml:1:1: the kustomization cannot be built: the kustomization loads more than 1000 others"},
		"billion laughs in a resource":       {[]string{dir + "kustomization.yaml", "resources: [a.yaml]\n", dir + "a.yaml", laughs.String()}, dir + "a.yaml:3:14: aliases expand to more than"},
		"an object that grows":               {[]string{dir + "kustomization.yaml", growing()}, "the process that reads it ended twice (took more than 256 MiB of memory)"},
	} {
		t.Run(name, func(t *testing.T) {
			bounded.Run(t, bounded.Bounds{}, func(t *testing.T) {
				f := read(t, NewReader(), kustomized().with(tc.files...), nil)
				if got, want := names(f), []string{"vision/a", "vision/large-extra", "vision/large-train"}; !slices.Equal(got, want) {
					t.Errorf("intents %v, want %v", got, want)
				}
				if !strings.Contains(strings.Join(diagnostics(f), "\n"), tc.want) {
					t.Errorf("got %q, want %s", diagnostics(f), tc.want)
				}
				if !slices.ContainsFunc(f.Frozen, func(fr model.Freeze) bool { return fr.Path == dir }) {
					t.Errorf("the directory is not frozen: %v", f.Frozen)
				}
			})
		})
	}
}
