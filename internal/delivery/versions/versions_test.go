package versions

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

var policies = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}

// Each group version is asked for once; one that is not served adds nothing, and no other
// failure passes for that.
func TestServed(t *testing.T) {
	answers := map[string]string{
		"/api/v1":                                    `{"kind":"APIResourceList","apiVersion":"v1","resources":[{"name":"pods"}]}`,
		"/apis/admissionregistration.k8s.io/v1":      `{"kind":"APIResourceList","apiVersion":"v1","resources":[{"name":"validatingadmissionpolicies"}]}`,
		"/apis/admissionregistration.k8s.io/v1beta1": `{"kind":"APIResourceList","apiVersion":"v1","resources":[{"name":"mutatingadmissionpolicies"}]}`,
	}
	var asked []string
	broken := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		switch body, is := answers[r.URL.Path]; {
		case broken:
			w.WriteHeader(http.StatusInternalServerError)
		case is:
			_, _ = w.Write([]byte(body))
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		}
	}))
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	call := func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
	of := append(Each(policies, "v1", "v1beta1", "v2"), schema.GroupVersionResource{Version: "v1", Resource: "pods"}, schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	set, err := Served(t.Context(), client.RESTClient(), of, call)
	if err != nil || len(asked) != 4 {
		t.Fatalf("asked %q, %v", asked, err)
	}
	if at, is := set.Pick(policies, "v1beta1"); !is || at.Version != "v1beta1" {
		t.Errorf("got %v, %t; want v1beta1", at, is)
	}
	if at, is := set.Pick(policies); is {
		t.Errorf("got %v, which is not served", at)
	}
	if _, is := set.Pick(of[3]); !is {
		t.Error("pods are not served")
	}
	broken = true
	if _, err := Served(t.Context(), client.RESTClient(), of, call); err == nil {
		t.Error("a failure passes for what is not served")
	}
	gone := errors.New("no answer")
	if _, err := Served(t.Context(), client.RESTClient(), of, func(context.Context, func(context.Context) error) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

// An object is changed in a copy, and only in its version.
func TestIn(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": policies.GroupVersion().String(), "kind": "MutatingAdmissionPolicy", "spec": map[string]any{"a": []any{"b"}}}}
	if In(u, policies.GroupVersion()) != u || In(u, schema.GroupVersion{}) != u {
		t.Error("what is in its version was copied")
	}
	older := Each(policies, "v1beta1")[0].GroupVersion()
	got := In(u, older)
	if got.GetAPIVersion() != "admissionregistration.k8s.io/v1beta1" || u.GetAPIVersion() != "admissionregistration.k8s.io/v1" {
		t.Errorf("got %s of %s", got.GetAPIVersion(), u.GetAPIVersion())
	}
	if list, _, _ := unstructured.NestedStringSlice(got.Object, "spec", "a"); !slices.Equal(list, []string{"b"}) {
		t.Errorf("got %v", got.Object)
	}
}
