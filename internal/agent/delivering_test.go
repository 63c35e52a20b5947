package agent

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access/renew"
)

// accountToken is a ServiceAccount's token of a life, as Kubernetes makes them.
func accountToken(issued, ends time.Time) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:fleetbroker:fleetbroker","iat":%d,"exp":%d}`, issued.Unix(), ends.Unix())
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// A provider's token that is more than half over is renewed by the agent, and the new one
// used; with a directory also by an agent that starts after the first one has ended.
func TestOwnAccess_RenewsTokens(t *testing.T) {
	now := time.Now()
	first, second := accountToken(now.Add(-time.Hour), now.Add(10*time.Minute)), accountToken(now, now.Add(time.Hour))
	var renewals atomic.Int32
	shown := make(chan string, 10)
	valid := atomic.Pointer[string]{}
	valid.Store(&first)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		bearer := r.Header.Get("Authorization")
		if r.URL.Path != "/api/v1/namespaces/fleetbroker/serviceaccounts/fleetbroker/token" {
			shown <- bearer
			fmt.Fprint(w, `{"major":"1","minor":"36"}`)
			return
		}
		if bearer != "Bearer "+*valid.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		renewals.Add(1)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
			Status:   authenticationv1.TokenRequestStatus{Token: second, ExpirationTimestamp: metav1.NewTime(now.Add(time.Hour))},
		})
	}))
	t.Cleanup(server.Close)
	dir, tokens := t.TempDir(), filepath.Join(t.TempDir(), "tokens")
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
clusters: [{name: a, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: a, user: {token: %s}}]}`, server.URL, authority, first)
	if err := os.WriteFile(filepath.Join(dir, "paris.kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	paris := &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "paris"}}
	// ask reaches paris as an agent does, and returns the token that paris was shown.
	ask := func(k *renew.Keeper) string {
		t.Helper()
		own := ownAccess{"rome", &rest.Config{}, access.Kubeconfigs{Dir: dir, Tokens: k}}
		config, err := own.RESTConfig(t.Context(), paris)
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Discovery().ServerVersion(); err != nil {
			t.Fatal(err)
		}
		return <-shown
	}
	a := &renew.Keeper{Dir: tokens, Now: time.Now}
	if one, two := ask(a), ask(a); one != "Bearer "+second || two != one || renewals.Load() != 1 {
		t.Errorf("shown %q and %q after %d renewals, want the renewed one after 1", one, two, renewals.Load())
	}
	gone := ""
	valid.Store(&gone) // the first one has ended
	if got := ask(&renew.Keeper{Dir: tokens, Now: time.Now}); got != "Bearer "+second {
		t.Errorf("after a restart %q is shown", got)
	}
	if got := ask(nil); got != "Bearer "+first {
		t.Errorf("without a keeper %q is shown: nothing here tells the two apart", got)
	}
}
