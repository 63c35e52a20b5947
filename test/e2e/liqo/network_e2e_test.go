//go:build e2e && full

package liqo

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/doctor"
)

// network says in Cluster files whether Liqo's network connects them.
func (f *fleet) network(rome, paris string) {
	f.t.Helper()
	file := func(name, role, on string) string {
		return "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec:\n  roles: [" + role + "]\n  liqo: {networking: " + on + "}\n" +
			"  defaultPrice: {currency: EUR, perHour: {gpu: \"2.80\"}}\n"
	}
	if _, err := f.Platform.CommitAndPush(f.ctx, "Networks", map[string]string{
		"clusters/rome.yaml": file("rome", "consumer", rome), "clusters/paris.yaml": file("paris", "provider", paris),
	}); err != nil {
		f.t.Fatal(err)
	}
}

// Whether Liqo's network is looked at follows from the Cluster files.
func TestNetworkOfLiqo(t *testing.T) {
	f := start(t, "paris")
	f.Put("vision", "train", intent("vision", "train", 1))
	node := f.Contract("vision", "train", "Active")
	f.well(node) // off on both sides
	f.network("true", "false")
	f.finds(node, doctor.NetworkOneSided)
	f.network("true", "true")
	f.finds(node, doctor.NetworkMissing)
	// No gateways run here: what Liqo says of broken ones is written by hand.
	if err := f.Liqos["rome"].Kill("liqo-controller-manager"); err != nil {
		t.Fatal(err)
	}
	f.run("rome", "patch", "foreignclusters.core.liqo.io", "paris", "--subresource=status", "--type=merge", "-p",
		`{"status":{"modules":{"networking":{"enabled":true,"conditions":[{"type":"NetworkConnectionStatus","status":"Error","reason":"ConnectionError","message":"no handshake","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}}}`)
	f.finds(node, doctor.NetworkDown)
}
