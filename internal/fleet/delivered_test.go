package fleet

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func TestDelivered(t *testing.T) {
	own, open := &v1alpha1.Cluster{}, &v1alpha1.Cluster{}
	own.Spec.Delivery = "agent"
	f := &Fleet{Policy: Defaults(v1alpha1.FleetSpec{}), Clusters: map[string]*v1alpha1.Cluster{"own": own, "open": open}}
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
