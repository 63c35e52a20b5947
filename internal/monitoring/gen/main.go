// Command gen writes alerts and dashboards as files.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fleetbroker/fleetbroker/internal/monitoring"
)

func main() {
	out := flag.String("out", "", "directory to write into")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := monitoring.Files()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil { //nolint:gosec // files of the template, read by everybody
			return fmt.Errorf("write monitoring: %w", err)
		}
	}
	return nil
}
