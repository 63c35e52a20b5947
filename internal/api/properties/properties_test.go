package properties

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func TestOf(t *testing.T) {
	for text, want := range map[string][]string{
		"{}": nil,
		`{latencyMs: 0, carbon: 0, reliability: "1", securityStandards: [ISO27001]}`: nil,
		`{latencyMs: -9223372036854775808, carbon: -1, reliability: "-5"}`: {
			"BadValue reliability: -5 is not between 0 and 1", "BadValue latencyMs: -9223372036854775808 is less than 0", "BadValue carbon: -1 is less than 0",
		},
		`{reliability: "1.1"}`:            {"BadValue reliability: 1.1 is not between 0 and 1"},
		`{securityStandards: [SOC2, ""]}`: {"BadValue securityStandards[1] is empty or longer than 63 bytes; write for example ISO27001"},
	} {
		var p v1alpha1.FlavorProperties
		if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, problem := range Of(&p) {
			got = append(got, problem.Code+" "+problem.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	many := Of(&v1alpha1.FlavorProperties{SecurityStandards: make([]string, v1alpha1.MaxNames+1)})
	if len(many) != 1 || many[0].Code != "LimitExceeded" || many[0].String() != "securityStandards: 257 entries, and at most 256 are read" {
		t.Errorf("257 standards: got %+v, want one LimitExceeded", many)
	}
}
