package celenv

import (
	"slices"
	"testing"
)

func TestFacts(t *testing.T) {
	for source, want := range map[string][]string{
		`flavor.gpu.model == "a" && flavor.gpu.memoryGi > 1 && flavor.gpu.model != "b"`:                {"flavor.gpu.memoryGi", "flavor.gpu.model"},
		`has(flavor.gpu) || intent.tenant == "x"`:                                                      {"flavor.gpu"},
		`flavor.labels.exists(k, k == cluster.labels["y"])`:                                            {"cluster.labels", "flavor.labels"},
		`flavor.labels.tier == "gold"`:                                                                 {"flavor.labels"},
		`[flavor.location.region, "x"].exists(r, r in {"a": cluster.location.zone}.map(k, string(k)))`: {"cluster.location.zone", "flavor.location.region"},
		`intent.name == "x"`: nil,
	} {
		p, err := CompilePolicy(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if got, known := p.Facts(); !known || !slices.Equal(got, want) {
			t.Errorf("%s looks at %v (%t), want %v", source, got, known, want)
		}
	}
	for _, source := range []string{`[cluster].exists(c, c.name == "x")`} {
		p, err := CompilePolicy(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if got, known := p.Facts(); known {
			t.Errorf("%s looks at %v alone, and may look at all", source, got)
		}
	}
}
