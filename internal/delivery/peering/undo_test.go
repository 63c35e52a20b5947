package peering

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// A slice whose quantity takes days to read keeps nobody busy who asks whether a peering is
// used.
func TestUndo_ReadsNoQuantity(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case r.URL.Path == "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"authentication.liqo.io","versions":[{"groupVersion":"authentication.liqo.io/v1beta1","version":"v1beta1"}]}]}`)
		case r.URL.Path == "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["list"]}]}`)
		case r.URL.Path == "/apis/authentication.liqo.io/v1beta1":
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"authentication.liqo.io/v1beta1","resources":[{"name":"resourceslices","namespaced":true,"kind":"ResourceSlice","verbs":["list"]}]}`)
		case strings.HasSuffix(r.URL.Path, "/secrets"):
			fmt.Fprintf(w, `{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"own","namespace":"liqo-tenant-paris","labels":{%q:%q}}}]}`, labelManagedBy, manager)
		case strings.HasSuffix(r.URL.Path, "/resourceslices"):
			fmt.Fprint(w, `{"kind":"ResourceSliceList","apiVersion":"authentication.liqo.io/v1beta1","metadata":{},"items":[{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"resources":{"cpu":"1e-2147483647"}}}]}`)
		default:
			http.Error(w, `{}`, http.StatusNotFound)
		}
	}))
	defer server.Close()
	side := Side{Name: "rome", ID: "rome", Namespace: "liqo-tenant-paris", Config: func(context.Context) (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }}
	done := make(chan error, 1)
	go func() { done <- Undo(t.Context(), side, side) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the slices are still being read")
	}
}
