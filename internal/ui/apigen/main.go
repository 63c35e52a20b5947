// Command apigen writes what programs that use the daemon's API need: the OpenAPI document
// and the Go types of schemas/v1alpha1, and the part of schemas/client that follows from
// them. `make generate` runs it; a test of package schemas/v1alpha1 proves that what is checked
// in is fresh.
//
//	apigen [-root REPOSITORY]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fleetbroker/fleetbroker/internal/ui/apigen/gen"
)

func main() {
	root := flag.String("root", ".", "the repository's root, where the Go sources are and the files are written")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "apigen:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	files, err := gen.Files(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), content, 0o644); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}
