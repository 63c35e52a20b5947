//go:build e2e

package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/test/tools"
)

// missing are the keys of values, by path, that a chart's defaults do not have:
// helm takes them in silence, and they do nothing.
func missing(values, defaults map[string]any, at string) []string {
	var out []string
	for key, value := range values {
		known, ok := defaults[key]
		if !ok {
			out = append(out, at+key)
			continue
		}
		below, isMap := value.(map[string]any)
		if there, wasMap := known.(map[string]any); isMap && wasMap {
			out = append(out, missing(below, there, at+key+".")...)
		} else if isMap != wasMap {
			out = append(out, at+key)
		}
	}
	return out
}

// The template's values of Liqo are such that the chart knows, in both roles, and
// the chart renders with them, with its network and without.
func TestValuesOfLiqo(t *testing.T) {
	module, err := tools.ModuleDir(t.Context(), "liqo", "github.com/liqotech/liqo")
	if err != nil {
		t.Fatal(err)
	}
	chart := filepath.Join(module, "deployments", "liqo")
	var defaults map[string]any
	read(t, filepath.Join(chart, "values.yaml"), &defaults)
	helm, err := tools.Find(t.Context(), "helm", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for role, id := range map[string]string{"consumer": "rome", "provider": "paris"} {
		t.Run(role, func(t *testing.T) {
			var holder struct{ Data map[string]string }
			read(t, filepath.Join(base, "liqo", role+"-values.yaml"), &holder)
			text := holder.Data["values.yaml"]
			var values map[string]any
			if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
				t.Fatal(err)
			}
			if unknown := missing(values, defaults, ""); len(unknown) > 0 {
				t.Errorf("the chart knows no %s", strings.Join(unknown, ", "))
			}
			file, dir := filepath.Join(t.TempDir(), "values.yaml"), t.TempDir()
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for networking, gateway := range map[string]bool{"true": true, "false": false} {
				cmd := exec.CommandContext(t.Context(), helm, "template", "liqo", chart, "--namespace", "liqo", "-f", file, "--set", "tag="+tools.LiqoVersion+",networking.enabled="+networking)
				cmd.Env = append(cmd.Environ(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
				var said bytes.Buffer
				cmd.Stderr = &said
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v: %s", err, said.Bytes())
				}
				if !bytes.Contains(out, []byte("CLUSTER_ID: "+id+"\n")) {
					t.Errorf("%s is not told its id", role)
				}
				if got := bytes.Contains(out, []byte("kind: WgGatewayServerTemplate")); got != gateway {
					t.Errorf("networking %s: templates of gateways: %v", networking, got)
				}
			}
		})
	}
}

// read reads a YAML file.
func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
