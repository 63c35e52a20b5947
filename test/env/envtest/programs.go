package envtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// module is the project's own.
const module = "github.com/fleetbroker/fleetbroker"

// Main is the TestMain of tests that run the project's programs: it lets first
// prepare what else they need (env.BuildTools where they start clusters), sets
// *bin to a directory with fleetbroker and fleet-agent, which is removed again,
// runs the tests, stops the clusters that pools hold, and ends the process.
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
	if err := Programs(ctx, dir); err != nil {
		return 1, fmt.Errorf("build the programs: %w", err)
	}
	*bin = dir
	return m.Run(), env.StopPools()
}

// Programs builds fleetbroker and fleet-agent of this checkout into a directory. Linking them
// takes longer than everything else of a build, so they are linked once, in
// bin/test, where the go command finds them up to date, and copied from there: what
// one run of tests has is its own, whatever is built later.
func Programs(ctx context.Context, dir string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("find the checkout: %w", err)
	}
	shared := filepath.Join(strings.TrimSpace(string(root)), "bin", "test")
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(shared+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", shared, module+"/cmd/fleetbroker", module+"/cmd/fleet-agent")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return os.CopyFS(dir, os.DirFS(shared))
}
