// Command schemagen writes the JSON Schemas of the kinds of a fleet repo, the
// CustomResourceDefinitions of the kinds that agents serve, and the reference
// pages of both, from the Go types and their comments. `make generate`
// runs it; a test of package schemas proves that what is checked in is fresh.
//
//	schemagen [-root REPOSITORY] [-out DIRECTORY]
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/fleetbroker/fleetbroker/internal/api/schemagen/gen"
)

func main() {
	root := flag.String("root", ".", "the repository's root, where the Go sources are")
	out := flag.String("out", "schemas", "where to write")
	flag.Parse()
	if err := run(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(root, out string) error {
	files, err := gen.Files(root)
	if err != nil {
		return err
	}
	crds, sources, err := gen.CRDs(root)
	if err != nil {
		return err
	}
	maps.Copy(files, crds)
	if err := write(root, sources); err != nil {
		return err
	}
	return write(out, files)
}

func write(dir string, files map[string][]byte) error {
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
		if err := os.WriteFile(p, content, 0o644); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}
