//go:build e2e

package tools

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Two who need the same program at once get one build.
func TestOneBuildForTwo(t *testing.T) {
	t.Setenv(AssetsEnv, "")
	t.Setenv(CacheEnv, t.TempDir())
	var said [2]bytes.Buffer
	var paths [2]string
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			path, err := Find(t.Context(), "etcd", &said[i])
			if err != nil {
				t.Error(err)
			}
			paths[i] = path
		})
	}
	both.Wait()
	all := said[0].String() + said[1].String()
	if paths[0] != paths[1] || strings.Count(all, "built etcd") != 1 {
		t.Errorf("got %v, and heard:\n%s", paths, all)
	}
	out, err := exec.CommandContext(t.Context(), paths[0], "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), strings.TrimPrefix(EtcdVersion, "v")) {
		t.Errorf("the program built says %q, %v", out, err)
	}
}
