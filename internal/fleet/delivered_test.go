package fleet

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/defaults"
)

func TestDelivered(t *testing.T) {
	own, open := &v1alpha1.Cluster{}, &v1alpha1.Cluster{}
	own.Spec.Delivery = "agent"
	f := &Fleet{Policy: defaults.Of(v1alpha1.FleetSpec{}), Clusters: map[string]*v1alpha1.Cluster{"own": own, "open": open}}
	if got := f.Delivered(); got["open"] != open || got["own"] != own {
		t.Error("with the usual default the clusters are those of the fleet")
	}
	f.Policy.Defaults.Delivery = "flux"
	got := f.Delivered()
	if got["open"].Spec.Delivery != "flux" || got["own"].Spec.Delivery != "agent" {
		t.Errorf("got %q and %q", got["open"].Spec.Delivery, got["own"].Spec.Delivery)
	}
	if open.Spec.Delivery != "" {
		t.Error("the fleet's own cluster was modified")
	}
}

// A deliverer's name ends up in an admission policy: it must be a name.
func TestDeliverersAreNames(t *testing.T) {
	file := func(name string) string {
		return group + "kind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], deliverers: [ci@example.org, \"" + name + "\"]}\n"
	}
	f := read(t, NewReader(), base().with("clusters/rome.yaml", file("system:serviceaccount:kube-system:argocd-manager")), nil)
	if got := diagnostics(f); len(got) > 0 || len(f.Clusters["rome"].Spec.Deliverers) != 2 {
		t.Errorf("diagnostics %q", got)
	}
	for _, bad := range []string{"", "a'] || true || 'a' in ['a", "a b", "a,b", "système"} {
		f := read(t, NewReader(), base().with("clusters/rome.yaml", file(bad)), nil)
		if got := strings.Join(diagnostics(f), "\n"); !strings.Contains(got, "clusters/rome.yaml:4:") || !strings.Contains(got, "is not the name of a user") {
			t.Errorf("%q: diagnostics %q", bad, got)
		}
	}
}
