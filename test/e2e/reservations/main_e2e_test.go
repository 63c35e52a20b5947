//go:build e2e

package reservations

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// patience bounds every wait.
const patience = 3 * time.Minute

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin) }

// start brings up a git server with a fleet in which rome may ask for team
// vision, and no daemon yet.
func start(t *testing.T, more map[string]string) (context.Context, *rig.Rig) {
	t.Helper()
	files := map[string]string{
		"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome]}\n",
		"clusters/rome.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\n" +
			"spec: {roles: [consumer], delivery: none, reservations: {tenant: vision, defaultDuration: 24h}}\n",
		"clusters/paris.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\n" +
			"spec: {roles: [provider], endpoint: \"https://paris.example.org:6443\", defaultPrice: {currency: EUR, perHour: {cpu: \"0.02\", memoryGi: \"0.003\", gpu: \"2.80\"}}}\n",
	}
	maps.Copy(files, more)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	r, err := rig.Start(ctx, rig.Options{Dir: t.TempDir(), Bin: bin, Inputs: files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Errorf("stop the rig: %v", err)
		}
	})
	return ctx, r
}

// daemon starts one and waits until it is ready.
func daemon(ctx context.Context, t *testing.T, r *rig.Rig, name string, args ...string) *rig.Daemon {
	t.Helper()
	d, err := r.Daemon(ctx, name, append([]string{"--poll-interval", "1s"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	ready(ctx, t, d)
	return d
}

func ready(ctx context.Context, t *testing.T, d *rig.Daemon) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := d.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}
