//go:build e2e

package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// On a real API server: the size is that of its etcd's file, half of a quota is found, and
// an account without the right is told what to allow.
func TestLook_OnARealAPIServer(t *testing.T) {
	cluster := envtest.Clusters(t, env.ClusterOptions{Name: "hub"})[0]
	size, err := Size(t.Context(), cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	var file int64
	if err := filepath.WalkDir(cluster.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "db" {
			info, err := d.Info()
			if err != nil {
				return err
			}
			file = info.Size()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if size < 1<<14 || size > file { // etcd makes its file longer ahead of time
		t.Errorf("the database has %d bytes, and its file %d", size, file)
	}
	kubeconfig := func(user string, groups ...string) string {
		text, err := cluster.KubeconfigFor(user, groups...)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	look := func(f *Flags) (int, string) {
		findings, note, err := f.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(findings), note
	}
	admin := kubeconfig("ada", "system:masters")
	if n, note := look(&Flags{kubeconfig: admin, quota: "2Gi"}); n != 0 || note != "" {
		t.Errorf("of 2 GiB: %d findings, %q", n, note)
	}
	if n, note := look(&Flags{kubeconfig: admin, quota: "20Ki"}); n != 1 || note != "" {
		t.Errorf("of 20 KiB: %d findings, %q", n, note)
	}
	if n, note := look(&Flags{kubeconfig: kubeconfig("bob"), quota: "2Gi"}); n != 0 || !strings.Contains(note, "nonResourceURL /metrics") {
		t.Errorf("without the right: %d findings, %q", n, note)
	}
}
