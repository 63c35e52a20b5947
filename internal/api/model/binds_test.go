package model

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

type anything struct{}

func (anything) Eval(*v1alpha1.ResourceIntent, *v1alpha1.Flavor, *v1alpha1.Cluster) (bool, error) {
	return true, nil
}

// A policy is for the intents that all of its match names.
func TestPolicy_Binds(t *testing.T) {
	in := &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Namespace: "vision", Labels: map[string]string{"tier": "gold", "app": ""}}}
	for name, c := range map[string]struct {
		match v1alpha1.PolicyMatch
		want  bool
	}{
		"everybody":                  {v1alpha1.PolicyMatch{}, true},
		"its tenant":                 {v1alpha1.PolicyMatch{Tenants: []string{"nlp", "vision"}}, true},
		"another tenant":             {v1alpha1.PolicyMatch{Tenants: []string{"nlp"}}, false},
		"its consumer":               {v1alpha1.PolicyMatch{Consumers: []string{"milan", "rome"}}, true},
		"another consumer":           {v1alpha1.PolicyMatch{Consumers: []string{"milan"}}, false},
		"its label":                  {v1alpha1.PolicyMatch{Labels: map[string]string{"tier": "gold"}}, true},
		"an empty label":             {v1alpha1.PolicyMatch{Labels: map[string]string{"app": ""}}, true},
		"a label that it lacks":      {v1alpha1.PolicyMatch{Labels: map[string]string{"team": ""}}, false},
		"another value":              {v1alpha1.PolicyMatch{Labels: map[string]string{"tier": "silver"}}, false},
		"one label of two":           {v1alpha1.PolicyMatch{Labels: map[string]string{"tier": "gold", "team": "a"}}, false},
		"its label, another tenant":  {v1alpha1.PolicyMatch{Tenants: []string{"nlp"}, Labels: map[string]string{"tier": "gold"}}, false},
		"its tenant and an offer's":  {v1alpha1.PolicyMatch{Tenants: []string{"vision"}, Models: []string{"H100"}}, true},
		"its consumer and its label": {v1alpha1.PolicyMatch{Consumers: []string{"rome"}, Labels: map[string]string{"tier": "gold"}}, true},
	} {
		p := Policy{Policy: v1alpha1.Policy{Match: c.match}, Predicate: anything{}}
		if got := p.Binds(in, "rome"); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if (&Policy{}).Binds(in, "rome") {
		t.Error("a policy that could not be compiled binds somebody")
	}
}
