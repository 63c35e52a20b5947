//go:build e2e && full

package flux

import (
	"fmt"
	"strings"
	"testing"
)

// The daemon commits and Flux applies; delivery changes hands and back without a
// write too many.
func TestHandsChange(t *testing.T) {
	f := start(t, "1s", "paris")
	f.Put("vision", "train", intent("train", 2))
	train := f.Contract("vision", "train", "Reserved", "Peering")
	f.follow()
	f.Contract("vision", "train", "Active")
	f.says("2", "get", "node", train, "-o", `jsonpath={.status.allocatable.nvidia\.com/gpu}`)
	if got := f.managers("resourceslices.authentication.liqo.io", "liqo-tenant-paris", train); !strings.Contains(got, "kustomize-controller") || strings.Contains(got, "fleetbroker") {
		t.Errorf("the slice was written by %s", got)
	}

	kustomization := func(patch string) {
		f.kubectl("patch", "kustomizations.kustomize.toolkit.fluxcd.io", "fleet-vision", "-n", "flux-system", "--type", "merge", "-p", patch)
	}
	kustomization(`{"spec":{"suspend":true}}`)
	f.Put("vision", "serve", intent("serve", 1))
	serve := f.Contract("vision", "serve", "Reserved")
	kustomization(`{"spec":{"suspend":false}}`)
	f.Contract("vision", "serve", "Active")

	// Flux to the daemon, first with both of them at work.
	before := f.objects()
	f.peaceful(before)
	f.deliver("direct")
	f.Eventually("the daemon takes over", func() error {
		if got := f.managers("virtualnodes.offloading.liqo.io", "liqo-tenant-paris", serve); !strings.Contains(got, "fleetbroker") {
			return fmt.Errorf("the virtual node was written by %s", got)
		}
		return nil
	})
	f.peaceful(before)
	f.kubectl("delete", "kustomizations.kustomize.toolkit.fluxcd.io", "--all", "-n", "flux-system")
	if now := f.objects(); now != before {
		t.Errorf("without Flux the objects were\n%s\nand are\n%s", before, now)
	}
	f.Remove("vision", "serve")
	f.Contract("vision", "serve", "Released")

	// And back.
	before = f.objects()
	f.deliver("flux")
	f.follow()
	f.peaceful(before)

	// The release of the last contract, in its two commits.
	f.Remove("vision", "train")
	f.Contract("vision", "train", "Released")
	f.says("", "get", "resourceslices.authentication.liqo.io,virtualnodes.offloading.liqo.io,nodes", "-A", "-l", "fleetbroker.io/contract="+train, "-o", "name")
	f.says("vision", "get", "namespace", "vision", "-o", "jsonpath={.metadata.name}")
	f.Put("vision", "again", intent("again", 8))
	f.Contract("vision", "again", "Active")
	f.Sound()
}
