package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func TestDeliveryNote(t *testing.T) {
	fleet := func(direct, agents, providers int) map[string]*v1alpha1.Cluster {
		out := map[string]*v1alpha1.Cluster{}
		add := func(n int, role, delivery string) {
			for range n {
				out[fmt.Sprint("c", len(out))] = &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{Roles: []string{role}, Delivery: delivery}}
			}
		}
		add(direct, "consumer", "")
		add(agents, "consumer", "agent")
		add(providers, "provider", "")
		return out
	}
	for name, c := range map[string]struct {
		clusters  map[string]*v1alpha1.Cluster
		byDefault string
		want      string
	}{
		"fifty":               {fleet(50, 100, 100), "direct", ""},
		"fifty-one":           {fleet(51, 0, 0), "direct", "to 51 consumers"},
		"by agents, as usual": {fleet(60, 0, 0), "agent", ""},
	} {
		got := DeliveryNote(c.clusters, c.byDefault)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
