package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The daemon's own clusters are no more trusted than others: a token is shown to the server
// that a kubeconfig names, and to nobody whom that one sends to.
func TestOwnClustersRedirectNobody(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer own.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: secret}}]}`, own.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() (*rest.Config, error){
		"reviewer": func() (*rest.Config, error) { return Reviewer(file) },
		"store": func() (*rest.Config, error) {
			f := StoreFlags{kubeconfig: file, namespace: "fleetbroker"}
			config, _, err := f.cluster()
			return config, err
		},
	} {
		config, err := read()
		if err != nil {
			t.Fatal(err)
		}
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.RESTClient().Get().AbsPath("/version").DoRaw(t.Context()); err == nil || asked.Load() > 0 {
			t.Errorf("%s: asked elsewhere %d times, %v", name, asked.Load(), err)
		}
	}
}
