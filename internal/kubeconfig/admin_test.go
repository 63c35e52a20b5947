package kubeconfig

import (
	"path/filepath"
	"strings"
	"testing"
)

// Without a kubeconfig the error says so, and names no variable that the command does not read.
func TestAdmin_WithoutKubeconfig(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if c, err := Admin("", ""); err == nil || !strings.Contains(err.Error(), "there is no kubeconfig") || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
		t.Errorf("got %v, %v", c, err)
	}
}
