package envtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// module is the project's own.
const module = "github.com/fleetbroker/fleetbroker"

// Main is the TestMain of tests that run the project's programs: it lets first
// prepare what else they need (env.BuildTools where they start clusters), sets
// *bin to a directory with fleetbroker and fleet-agent, which is removed again,
// runs the tests, and ends the process.
func Main(m *testing.M, bin *string, first ...func(context.Context, io.Writer) error) {
	code, err := withPrograms(m, bin, first)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withPrograms(m *testing.M, bin *string, first []func(context.Context, io.Writer) error) (int, error) {
	ctx := context.Background()
	for _, prepare := range first {
		if err := prepare(ctx, os.Stderr); err != nil {
			return 1, err
		}
	}
	dir, err := os.MkdirTemp("", "fleetbroker-bin-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	build := exec.CommandContext(ctx, "go", "build", "-o", dir, module+"/cmd/fleetbroker", module+"/cmd/fleet-agent")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	*bin = dir
	return m.Run(), nil
}
