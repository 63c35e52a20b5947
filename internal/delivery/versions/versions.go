package versions

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Set are the resources that a server serves.
type Set map[schema.GroupVersionResource]bool

// Served asks a server for the resources of group versions, each once, every request
// by call. A group version that is not served adds none; any other error is returned.
func Served(ctx context.Context, client rest.Interface, of []schema.GroupVersionResource, call func(context.Context, func(context.Context) error) error) (Set, error) {
	asked, served := map[schema.GroupVersion]bool{}, Set{}
	for _, one := range of {
		gv := one.GroupVersion()
		if asked[gv] {
			continue
		}
		asked[gv] = true
		list := &metav1.APIResourceList{}
		err := call(ctx, func(ctx context.Context) error {
			path := "/apis/" + gv.String()
			if gv.Group == "" {
				path = "/api/" + gv.Version
			}
			return client.Get().AbsPath(path).Do(ctx).Into(list)
		})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			served[gv.WithResource(r.Name)] = true
		}
	}
	return served, nil
}

// Each is a resource in several versions.
func Each(gvr schema.GroupVersionResource, versions ...string) []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, gvr.Version = range versions {
		out = append(out, gvr)
	}
	return out
}

// Pick is a resource in the first of its own and further versions that is served.
func (s Set) Pick(gvr schema.GroupVersionResource, further ...string) (schema.GroupVersionResource, bool) {
	for _, version := range append([]string{gvr.Version}, further...) {
		if gvr.Version = version; s[gvr] {
			return gvr, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// In is an object in a group version: itself where it is in it.
func In(u *unstructured.Unstructured, gv schema.GroupVersion) *unstructured.Unstructured {
	if gv.Empty() || u.GetAPIVersion() == gv.String() {
		return u
	}
	out := u.DeepCopy()
	out.SetAPIVersion(gv.String())
	return out
}
