package sources

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// onceAway is a cluster whose API server does not answer the first request.
type onceAway struct {
	data  map[string][]byte
	asked int
}

func (s *onceAway) Secret(context.Context, string) (map[string][]byte, map[string]string, error) {
	if s.asked++; s.asked == 1 {
		return nil, nil, errors.New("connection refused")
	}
	return s.data, map[string]string{v1alpha1.LabelSource: "own"}, nil
}

// The client of a forge is kept for as long as the entry: one that was made while the
// Secret could not be read must not go without the certificate authorities in it.
func TestForge_IsNotOpenedWithoutItsAuthorities(t *testing.T) {
	secrets := &onceAway{data: map[string][]byte{keyCA: []byte("authorities"), keyForge: []byte("token")}}
	k, err := New(Options{Dir: t.TempDir(), Hosts: []string{"git.example.org"}, Credentials: Credentials{Secrets: secrets}})
	if err != nil {
		t.Fatal(err)
	}
	policy := v1alpha1.FleetSpec{Sources: []v1alpha1.IntentSource{{
		Name: "own", URL: "https://git.example.org/own/gpus.git", Tenants: []string{"vision"},
		CredentialsRef: &v1alpha1.SourceCredentialsRef{Name: "own"}, Forge: &v1alpha1.SourceForge{Type: "gitea", Repository: "own/gpus"},
	}}}
	if err := k.Follow(&policy, tree.Tree{}); err != nil {
		t.Fatal(err)
	}
	if config, ok, err := k.Forge("own"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("while the Secret cannot be read: authorities in %q, %t, %v; want the cause", config.CAFile, ok, err)
	}
	if config, ok, err := k.Forge("own"); err != nil || !ok || config.CAFile != keyCA {
		t.Errorf("afterwards: authorities in %q, %t, %v; want %q", config.CAFile, ok, err, keyCA)
	}
}
