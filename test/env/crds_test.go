package env

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The product writes Liqo's objects with the module's Go types, so the
// definitions the tests install must be of the same version.
func TestLiqoCRDsAreTheModules(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/liqotech/liqo").Output()
	if err != nil {
		t.Fatalf("find Liqo's module: %v", err)
	}
	theirs := filepath.Join(strings.TrimSpace(string(out)), "deployments", "liqo", "charts", "liqo-crds", "crds")
	paths, err := fs.Glob(liqoCRDs, "crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != 10 {
		t.Errorf("got %d definitions, want 10", len(paths))
	}
	for _, path := range paths {
		ours, err := fs.ReadFile(liqoCRDs, path)
		if err != nil {
			t.Fatal(err)
		}
		original, err := os.ReadFile(filepath.Join(theirs, filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, original) {
			t.Errorf("%s differs from the module's: copy it again from %s", path, theirs)
		}
	}
}
