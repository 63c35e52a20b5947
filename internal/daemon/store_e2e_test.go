//go:build e2e

package daemon

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// In a cluster that does not serve the market's kinds the market is kept in memory, and the
// log says so and what to apply; where the store was asked for, the start ends.
func TestStoreFlags_OpenWithoutTheKinds(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "home"})
	text, err := cluster.KubeconfigFor("ada", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	s, lines := openAuto(t, text)
	if _, memory := s.Store.(*store.Memory); !memory {
		t.Errorf("the store is a %T, want one in memory", s.Store)
	}
	lines.Wants(t, "FB1066")
	if s, err := openStore(t, storeKubernetes, text, lines); err == nil {
		t.Errorf("where the store was asked for it is a %T", s.Store)
	}
}
