package cli

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/cel-go/cel"
	"sigs.k8s.io/yaml"
)

// Flux must take a slice for healthy when it is granted whole, and for failed
// when it is denied. (Flux gives the object's fields to the expressions as
// variables; Liqo's states are those of a ResourceSlice of v1.2.0.)
func TestFluxHealthChecks(t *testing.T) {
	read := func(file string) []byte {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	content := read(template + "/install/flux/vision.yaml")
	if !bytes.Equal(bytes.ReplaceAll(content, []byte("vision"), []byte("nlp")), read("../../examples/beside-flux/flux/nlp.yaml")) ||
		!bytes.Equal(read(template+"/install/flux/namespaces.yaml"), read("../../examples/beside-flux/flux/namespaces.yaml")) {
		t.Error("the example's Kustomizations are not the template's")
	}
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []struct{ Current, Failed string } `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &kustomization); err != nil || len(kustomization.Spec.HealthCheckExprs) != 1 {
		t.Fatal(err, kustomization)
	}
	exprs := kustomization.Spec.HealthCheckExprs[0]
	asked := map[string]any{"cpu": "16", "nvidia.com/gpu": "4"}
	resources := func(status string) []any {
		return []any{map[string]any{"type": "Authentication", "status": "Accepted"}, map[string]any{"type": "Resources", "status": status}}
	}
	cases := map[string]struct {
		status          map[string]any
		current, failed bool
	}{
		"nothing said yet": {map[string]any{}, false, false},
		"granted":          {map[string]any{"resources": map[string]any{"cpu": "16", "nvidia.com/gpu": "4", "pods": "110"}, "conditions": resources("Accepted")}, true, false},
		"granted less":     {map[string]any{"resources": map[string]any{"cpu": "16", "nvidia.com/gpu": "2"}, "conditions": resources("Accepted")}, false, false},
		"a key is missing": {map[string]any{"resources": map[string]any{"cpu": "16"}, "conditions": resources("Accepted")}, false, false},
		"denied":           {map[string]any{"conditions": resources("Denied")}, false, true},
	}
	for name, c := range cases {
		vars := map[string]any{"spec": map[string]any{"resources": asked}, "status": c.status}
		if got := truth(t, exprs.Current, vars); got != c.current {
			t.Errorf("%s: current is %t", name, got)
		}
		if got := truth(t, exprs.Failed, vars); got != c.failed {
			t.Errorf("%s: failed is %t", name, got)
		}
	}
}

func truth(t *testing.T, expr string, vars map[string]any) bool {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("spec", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expr)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := program.Eval(vars)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	b, _ := out.Value().(bool)
	return b
}
