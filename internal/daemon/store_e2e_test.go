//go:build e2e

package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// In a cluster that does not serve the market's kinds the market is kept in memory, and the
// log says so and what to apply; where the store was asked for, the start ends.
func TestStoreFlags_OpenWithoutTheKinds(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "home"})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text, err := cluster.KubeconfigFor("ada", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var lines logtest.Lines
	flags := StoreFlags{kind: storeAuto, kubeconfig: kubeconfig, namespace: "fleetbroker"}
	s, err := flags.Open(t.Context(), StoreOptions{Identity: "broker-0", Market: market.New(market.Options{Now: time.Now}), Log: lines.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	if _, memory := s.Store.(*store.Memory); !memory {
		t.Errorf("the store is a %T, want one in memory", s.Store)
	}
	lines.Wants(t, "FB1066")
	flags.kind = storeKubernetes
	if s, err := flags.Open(t.Context(), StoreOptions{Identity: "broker-0", Market: market.New(market.Options{Now: time.Now}), Log: lines.Logger()}); err == nil {
		t.Errorf("where the store was asked for it is a %T", s.Store)
	}
}
