package monitoring_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/monitoring"
)

const dir = "../../fleet-repo-template/install/monitoring"

// Alerts have unique names, each says who is called, and leads to the runbook.
func TestAlertsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range monitoring.Alerts() {
		if seen[a.Name] {
			t.Errorf("%s stands twice", a.Name)
		}
		seen[a.Name] = true
		if a.Expr == "" || a.For == "" || a.Summary == "" || a.Entry == "" {
			t.Errorf("%s lacks something: %+v", a.Name, a)
		}
		if !slices.Contains([]string{monitoring.Critical, monitoring.Warning, monitoring.Info}, a.Severity) {
			t.Errorf("%s is of severity %q", a.Name, a.Severity)
		}
	}
}

// The files of the template are what the values say, and no other is generated.
func TestFresh(t *testing.T) {
	files, err := monitoring.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is generated (%v): go generate ./internal/monitoring", name, err)
		}
		if strings.HasSuffix(name, ".json") && !json.Valid(want) {
			t.Errorf("%s is no JSON", name)
		}
	}
	entries, err := filepath.Glob(filepath.Join(dir, "fleetbroker-*.json"))
	if err != nil || len(entries) != len(monitoring.Dashboards()) {
		t.Errorf("%d dashboards lie there, %d are made, %v", len(entries), len(monitoring.Dashboards()), slices.Sorted(maps.Keys(files)))
	}
}
