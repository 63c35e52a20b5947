package cli

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// programs is a directory with the real programs, built when a test first asks.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fleetbroker-bin-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	return dir, envtest.Programs(context.Background(), dir)
})

var builtIn string

// program is the path of the real fleetbroker.
func program(t *testing.T) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatalf("build the programs: %v", err)
	}
	return filepath.Join(dir, "fleetbroker")
}

// RemovePrograms removes what program has built; for TestMain.
func RemovePrograms() {
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
}
