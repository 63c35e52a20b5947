package tools

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script puts an executable at a path, as a built program would be.
func script(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVersionsAreTheModules(t *testing.T) {
	for _, name := range Names() {
		p := programs[name]
		out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(p.module, "go.mod")).Output()
		if err != nil {
			t.Fatal(err)
		}
		var module struct {
			Require []struct{ Path, Version string }
			Tool    []struct{ Path string }
		}
		if err := json.Unmarshal(out, &module); err != nil {
			t.Fatal(err)
		}
		required, listed := "", false
		for _, r := range module.Require {
			if from := cmp.Or(p.of, p.pkg); from == r.Path || strings.HasPrefix(from, r.Path+"/") {
				required = r.Version
			}
		}
		for _, tool := range module.Tool {
			listed = listed || tool.Path == p.pkg || p.of != ""
		}
		if want := cmp.Or(p.comes, p.version); required != want || !listed {
			t.Errorf("%s: go.mod requires %q and lists it as a tool: %t; want %s", name, required, listed, want)
		}
	}
}

func TestListsNamePrograms(t *testing.T) {
	for _, name := range append(Default(), Older()...) {
		if _, ok := programs[name]; !ok {
			t.Errorf("there is no program %s", name)
		}
	}
}

func TestFindTakesAssetsFirst(t *testing.T) {
	assets := t.TempDir()
	t.Setenv(AssetsEnv, assets)
	want := script(t, filepath.Join(assets, "etcd"))
	if got, err := Find(t.Context(), "etcd", nil); err != nil || got != want {
		t.Errorf("got %q, %v; want %s", got, err, want)
	}
	if _, err := Find(t.Context(), "kube-apiserver", nil); err == nil || !strings.Contains(err.Error(), AssetsEnv) {
		t.Errorf("a program missing from %s: got %v", AssetsEnv, err)
	}
	// What envtest does not hold comes from the cache.
	cache := t.TempDir()
	t.Setenv(CacheEnv, cache)
	want = script(t, filepath.Join(cache, "kubernetes-"+KubernetesVersion+"-"+goVersion(), "bin", "kube-scheduler"))
	if got, err := Find(t.Context(), "kube-scheduler", nil); err != nil || got != want {
		t.Errorf("got %q, %v; want %s", got, err, want)
	}
}

func TestFindTakesKubectlFromPath(t *testing.T) {
	bin := t.TempDir()
	t.Setenv(AssetsEnv, "")
	t.Setenv("PATH", bin)
	want := script(t, filepath.Join(bin, "kubectl"))
	if got, err := Find(t.Context(), "kubectl", nil); err != nil || got != want {
		t.Errorf("got %q, %v; want %s", got, err, want)
	}
}

func TestFindTakesTheCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(AssetsEnv, "")
	t.Setenv(CacheEnv, cache)
	want := script(t, filepath.Join(cache, "etcd-"+EtcdVersion+"-"+goVersion(), "bin", "etcd"))
	if got, err := Find(t.Context(), "etcd", nil); err != nil || got != want {
		t.Errorf("got %q, %v; want %s", got, err, want)
	}
}

func TestFindOutsideACheckoutSaysWhatToDo(t *testing.T) {
	t.Setenv(AssetsEnv, "")
	t.Setenv(CacheEnv, t.TempDir())
	t.Chdir(t.TempDir())
	if _, err := Find(t.Context(), "etcd", nil); err == nil || !strings.Contains(err.Error(), AssetsEnv) {
		t.Errorf("got %v", err)
	}
	if _, err := Find(t.Context(), "ectd", nil); err == nil || !strings.Contains(err.Error(), "unknown; known are ") {
		t.Errorf("an unknown program: got %v", err)
	}
}
