// Command pin writes test/vulns/testdata/osv.jsonl from a checkout of
// github.com/golang/vulndb:
//
//	go run ./test/vulns/pin CHECKOUT
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/fleetbroker/fleetbroker/test/vulns"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: go run ./test/vulns/pin CHECKOUT, from the project's root")
	}
	wanted := map[string]bool{"stdlib": true, "toolchain": true}
	modules, err := vulns.Modules(".")
	if err != nil {
		return err
	}
	for _, path := range modules {
		required, err := vulns.Required(path)
		if err != nil {
			return err
		}
		for name := range required {
			wanted[name] = true
		}
	}
	reports, err := filepath.Glob(filepath.Join(args[0], "data/osv/*.json"))
	if err != nil || len(reports) == 0 {
		return errors.Join(err, fmt.Errorf("%s holds no data/osv/*.json", args[0]))
	}
	var out []byte
	for _, path := range reports {
		line, err := pinned(path, wanted)
		if err != nil {
			return err
		}
		out = append(out, line...)
	}
	if err := os.WriteFile("test/vulns/testdata/osv.jsonl", out, 0o644); err != nil {
		return err
	}
	head, err := exec.Command("git", "-C", args[0], "log", "-1", "--format=https://github.com/golang/vulndb %H %cI").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its commit: %w", args[0], err)
	}
	return os.WriteFile("test/vulns/testdata/origin", head, 0o644)
}

// pinned is a report as one line, without what is only prose; empty where it
// concerns no module that is wanted.
func pinned(path string, wanted map[string]bool) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var report vulns.Report
	var whole map[string]any
	if err := errors.Join(json.Unmarshal(data, &report), json.Unmarshal(data, &whole)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	concerned := false
	for _, a := range report.Affected {
		concerned = concerned || wanted[a.Package.Name]
	}
	if !concerned || report.Withdrawn != "" {
		return nil, nil
	}
	delete(whole, "credits")
	delete(whole, "references")
	whole["details"] = whole["summary"]
	line, err := json.Marshal(whole)
	return append(line, '\n'), err
}
