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

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

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

// Panels of histograms show exemplars, which lead to traces, and no others ask for them.
func TestHistogramsHaveExemplars(t *testing.T) {
	files, err := monitoring.Files()
	if err != nil {
		t.Fatal(err)
	}
	with := 0
	for name, text := range files {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		var board struct {
			Panels []struct {
				Targets []struct {
					Expr     string
					Exemplar bool
				}
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(err)
		}
		for _, p := range board.Panels {
			for _, q := range p.Targets {
				if want := strings.Contains(q.Expr, "histogram_quantile"); q.Exemplar != want {
					t.Errorf("%s: %s has exemplars: %v", name, q.Expr, q.Exemplar)
				} else if want {
					with++
				}
			}
		}
	}
	if with == 0 {
		t.Error("no panel is of a histogram")
	}
}

// The directory builds, with what is generated in it.
func TestTheDirectoryBuilds(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range built.Resources() {
		kinds[r.GetKind()]++
		if r.GetKind() == "ConfigMap" && len(r.GetDataMap()) != len(monitoring.Dashboards()) {
			t.Errorf("%d dashboards are handed to Grafana, of %d", len(r.GetDataMap()), len(monitoring.Dashboards()))
		}
	}
	if want := map[string]int{"ConfigMap": 1, "PrometheusRule": 1, "ServiceMonitor": 1, "PodMonitor": 1}; !maps.Equal(kinds, want) {
		t.Errorf("built %v, want %v", kinds, want)
	}
}
