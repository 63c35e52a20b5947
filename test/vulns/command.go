package vulns

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Modules are the go.mod files of the project: its own first, then those of the
// test servers.
func Modules(root string) ([]string, error) {
	servers, err := filepath.Glob(filepath.Join(root, "test/tools/*/go.mod"))
	if err != nil {
		return nil, err
	}
	return append([]string{filepath.Join(root, "go.mod")}, servers...), nil
}

// command is what a program prints.
func command(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", cmd, dir, err)
	}
	return out, nil
}
