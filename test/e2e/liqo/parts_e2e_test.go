//go:build e2e && full

package liqo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// One slice with as many virtual nodes as there may be is released: Liqo's worker that
// deletes them is one, and waits ten seconds between its looks. On 2026-11-27, on two busy
// cores (load 27), 32 parts were Active after 24.5 s, their last Node was gone 16.3 s after
// the intent, and the contract Released after 16.9 s.
func TestManyPartsAreReleased(t *testing.T) {
	const parts = v1alpha1.MaxShares
	f := startWith(t, func(o *rig.Options) {
		o.Providers["paris"] = []env.GPUNode{{Name: "paris-gpu", GPUs: parts, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}}
	}, func(*fleet) {}, "paris")
	shares := strings.Repeat(", {gpu: 1}", parts)[2:]
	text := strings.Replace(shaped("train", parts, "{shares: ["+shares+"]}"), `cpu: "8", memory: 32Gi, pods: "20", ephemeral-storage: 20Gi`, `cpu: "32", memory: 64Gi, pods: "64", ephemeral-storage: 64Gi`, 1)
	began := time.Now()
	f.Put("vision", "train", text)
	contract := f.Contract("vision", "train", "Active")
	t.Logf("%d parts are Active: %s", parts, time.Since(began).Round(100*time.Millisecond))
	f.well(contract)
	began = time.Now()
	f.Remove("vision", "train")
	f.Contract("vision", "train", "Releasing")
	f.Eventually("its Nodes are gone", func() error {
		left, err := f.kubectl("rome", "get", "nodes", "-l", v1alpha1.LabelContract+"="+contract, "-o", "name")
		if err == nil && left != "" {
			err = fmt.Errorf("%d are there", len(strings.Fields(left)))
		}
		return err
	})
	t.Logf("the last of %d Nodes is gone: %s", parts, time.Since(began).Round(100*time.Millisecond))
	f.Contract("vision", "train", "Released")
	t.Logf("%d parts are Released: %s", parts, time.Since(began).Round(100*time.Millisecond))
	f.Sound()
}
