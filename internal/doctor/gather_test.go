package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// With the daemon's own account, which lists no Deployments but those of Liqo's namespace at
// most, the version is read there, or is said to be hidden: never silence.
func TestGather_LiqoVersion(t *testing.T) {
	const list = `{"kind":"DeploymentList","apiVersion":"apps/v1","items":[{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"liqo-controller-manager","namespace":"liqo-system","labels":{"app.kubernetes.io/version":"v1.2.0"}}}]}`
	const hidden = "Liqo version not readable on rome (this account may not list Deployments in Liqo's namespace)"
	for name, c := range map[string]struct{ allowed, namespace, want string }{
		"an administrator":       {"/apis/apps/v1/deployments", "", "Liqo v1.2.0 (supported) on rome"},
		"in Liqo's namespace":    {"/apis/apps/v1/namespaces/liqo-system/deployments", "liqo-system", "Liqo v1.2.0 (supported) on rome"},
		"in another namespace":   {"/apis/apps/v1/namespaces/liqo-system/deployments", "", hidden},
		"in the usual namespace": {"/apis/apps/v1/namespaces/liqo/deployments", "", "Liqo v1.2.0 (supported) on rome"},
		"nowhere":                {"/none", "", hidden},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Path == c.allowed {
					fmt.Fprint(w, list)
					return
				}
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			}))
			defer server.Close()
			rome := &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "rome"}, Spec: v1alpha1.ClusterSpec{Roles: []string{v1alpha1.RoleConsumer}, Liqo: v1alpha1.LiqoSpec{Namespace: c.namespace}}}
			got := Gather(t.Context(), rome, func(context.Context) (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil })
			if notes := LiqoNotes(map[string]*Cluster{"rome": got}); !slices.Equal(notes, []string{c.want}) {
				t.Errorf("notes %q, want %q", notes, c.want)
			}
			if _, unread := got.Unread[Deployments]; unread {
				t.Error("a finding says what a note says")
			}
		})
	}
}
