package celenv

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Every name that the reference page lists can be looked at as its example does.
func TestNamesCompile(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range Names() {
		if seen[n.Path] {
			t.Errorf("%s twice", n.Path)
		}
		seen[n.Path] = true
		if !strings.Contains(n.Example, n.Path) || n.Type == "" {
			t.Errorf("%+v", n)
		}
		if _, err := CompilePolicy(n.Example); err != nil {
			t.Errorf("%s: %v", n.Example, err)
		}
	}
	for _, path := range []string{"flavor.properties.carbon", "flavor.properties.securityStandards", "flavor.price.hourly", "flavor.gpu.memory", "cluster.labels", "intent.resources.gpu.count", "intent.placement.allowAccelerators"} {
		if !seen[path] {
			t.Errorf("%s is missing", path)
		}
	}
}

// TestAbsentNumbers: a number that is not stated fails what compares it, whichever way, and
// leaves the answer to the other side where that decides alone.
func TestAbsentNumbers(t *testing.T) {
	unknown := read[v1alpha1.Flavor](t, `{metadata: {name: f, namespace: p}, spec: {capacity: {cpu: "8"}}}`)
	known := read[v1alpha1.Flavor](t, `{metadata: {name: f, namespace: p}, spec: {capacity: {cpu: "8"}, properties: {carbon: 56, reliability: "0.5", latencyMs: 0}}}`)
	for expr, want := range map[string]struct {
		known, unknown, absent bool
	}{
		`flavor.properties.carbon < 100`:                                   {true, false, true},
		`flavor.properties.carbon > 100`:                                   {false, false, true},
		`!(flavor.properties.carbon > 100)`:                                {true, false, true},
		`flavor.properties.carbon > 100 || flavor.name == "f"`:             {true, true, false},
		`flavor.name == "f" || flavor.properties.carbon > 100`:             {true, true, false},
		`flavor.properties.carbon > 100 || flavor.name == "g"`:             {false, false, true},
		`flavor.properties.carbon < 100 && flavor.name == "g"`:             {false, false, false},
		`has(flavor.properties.carbon) && flavor.properties.carbon < 100`:  {true, false, false},
		`!has(flavor.properties.carbon) || flavor.properties.carbon < 100`: {true, true, false},
		`flavor.properties.latencyMs == 0`:                                 {true, false, true},
		`flavor.properties.reliability >= 0.5`:                             {true, false, true},
		`flavor.properties.securityStandards.exists(s, s == "SOC2")`:       {false, false, false},
		`flavor.location.country == ""`:                                    {true, true, false},
		`(flavor.properties.carbon < 100 ? "low" : "high") == "low"`:       {true, false, true},
		`[flavor.properties.carbon].exists(c, c < 100)`:                    {true, false, true},
	} {
		p, err := Compile(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		if ok, err := p.Eval(nil, known, nil); err != nil || ok != want.known {
			t.Errorf("%s, known: got %v, %v, want %v", expr, ok, err, want.known)
		}
		ok, err := p.Eval(nil, unknown, nil)
		if ok != want.unknown || errors.Is(err, ErrAbsent) != want.absent || err != nil && !strings.Contains(err.Error(), "is not stated") {
			t.Errorf("%s, not stated: got %v, %v, want %v (absent %v)", expr, ok, err, want.unknown, want.absent)
		}
	}
}
