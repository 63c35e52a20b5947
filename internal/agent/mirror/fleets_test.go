package mirror

import (
	"slices"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Agents of two fleets show the same nodes: none removes or overwrites the other's
// pictures, and what is there from before is taken over where it is wanted.
func TestApart(t *testing.T) {
	const own, other = "f3k9q2abu7", "a0a0a0a0a0"
	picture := func(name, fleet string) *crd.Advertisement {
		a := &crd.Advertisement{ObjectMeta: meta(name)}
		if fleet != "" {
			a.Labels[v1alpha1.LabelFleet] = fleet
		}
		return a
	}
	names := func(list []*crd.Advertisement) (out []string) {
		for _, a := range list {
			out = append(out, a.Name+"/"+a.Labels[v1alpha1.LabelFleet])
		}
		slices.Sort(out)
		return out
	}
	id := func(s string) *string { return &s }
	for name, tc := range map[string]struct {
		fleet        *string
		have, want   []*crd.Advertisement
		mine, wanted []string
	}{
		"alone":                    {id(own), []*crd.Advertisement{picture("a", own), picture("gone", own)}, []*crd.Advertisement{picture("a", "")}, []string{"a/" + own, "gone/" + own}, []string{"a/" + own}},
		"another has the name":     {id(own), []*crd.Advertisement{picture("a", other)}, []*crd.Advertisement{picture("a", "")}, nil, []string{"a-" + own + "/" + own}},
		"and is shown already":     {id(own), []*crd.Advertisement{picture("a", other), picture("a-"+own, own)}, []*crd.Advertisement{picture("a", "")}, []string{"a-" + own + "/" + own}, []string{"a-" + own + "/" + own}},
		"from before":              {id(own), []*crd.Advertisement{picture("a", ""), picture("b", "")}, []*crd.Advertisement{picture("a", "")}, []string{"a/"}, []string{"a/" + own}},
		"without an id":            {id(""), []*crd.Advertisement{picture("a", ""), picture("gone", ""), picture("b", other)}, []*crd.Advertisement{picture("a", ""), picture("b", "")}, []string{"a/", "gone/"}, []string{"a/"}},
		"before a broker is heard": {nil, []*crd.Advertisement{picture("a", ""), picture("b", other), picture("c", "")}, []*crd.Advertisement{picture("a", ""), picture("b", "")}, []string{"a/"}, []string{"a/"}},
	} {
		mine, wanted := apart(tc.fleet, tc.have, tc.want)
		if got := names(mine); !slices.Equal(got, tc.mine) {
			t.Errorf("%s: own pictures are %q; want %q", name, got, tc.mine)
		}
		if got := names(wanted); !slices.Equal(got, tc.wanted) {
			t.Errorf("%s: wanted are %q; want %q", name, got, tc.wanted)
		}
	}
}
