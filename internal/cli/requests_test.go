package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// What came through the API is read from the ledger: without it, plans would
// release what was reserved for it.
func TestRequestsAreReadFromTheLedger(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"fleet.yaml":          "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec: {}\n",
		"clusters/rome.yaml":  "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], reservations: {tenant: vision}}\n",
		"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome]}\n",
		"requests/vision/202611/rq-1.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: rq-1, namespace: vision}\n" +
			"spec: {consumer: rome, resources: {cpu: \"1\", memory: 1Gi}}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := src.readFleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Intents) != 1 || f.Intents[0].Metadata.Name != "rq-1" || f.Intents[0].Problem != "" {
		t.Errorf("read %+v, diagnostics %v", f.Intents, f.Diagnostics)
	}
}
