package kube

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
)

// apiServer answers as an API server does that has some of the market's kinds, and that
// lets its caller list nothing, all, or not even discover.
func apiServer(t *testing.T, kinds []string, list, discover bool) *API {
	t.Helper()
	gv := marketcrd.GroupVersion
	answer := func(w http.ResponseWriter, code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	refuse := func(w http.ResponseWriter, err *apierrors.StatusError) {
		answer(w, int(err.ErrStatus.Code), err.ErrStatus)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
		path := strings.TrimPrefix(r.URL.Path, "/apis/"+gv.Group)
		switch {
		case strings.Contains(path, "/namespaces/"):
			kind := path[strings.LastIndex(path, "/")+1:]
			if !list {
				refuse(w, apierrors.NewForbidden(schema.GroupResource{Group: gv.Group, Resource: kind}, "", nil))
				return
			}
			for _, k := range kinds {
				if strings.ToLower(k)+"s" == kind {
					answer(w, http.StatusOK, map[string]any{"kind": k + "List", "apiVersion": gv.String(), "metadata": map[string]any{}, "items": []any{}})
					return
				}
			}
			http.NotFound(w, r)
		case !discover:
			refuse(w, apierrors.NewForbidden(schema.GroupResource{}, "", nil))
		case r.URL.Path == "/apis":
			groups := []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1", Version: "v1"}}}}
			if len(kinds) > 0 {
				groups = append(groups, group)
			}
			answer(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: groups})
		case len(kinds) == 0 || path == r.URL.Path:
			http.NotFound(w, r)
		case path == "":
			answer(w, http.StatusOK, group)
		default:
			out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
			for _, k := range kinds {
				out.APIResources = append(out.APIResources, metav1.APIResource{Name: strings.ToLower(k) + "s", SingularName: strings.ToLower(k), Kind: k, Namespaced: true, Verbs: metav1.Verbs{"list"}})
			}
			answer(w, http.StatusOK, out)
		}
	}))
	t.Cleanup(server.Close)
	api, err := New(&rest.Config{Host: server.URL}, "fleetbroker")
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// An account without rights is told of a right that is missing whether the kinds exist or
// not: what the cluster serves is asked for apart.
func TestInstalled(t *testing.T) {
	all := []string{"Advertisement", "AdvertisementPart", "Heartbeat", "Observation"}
	for name, test := range map[string]struct {
		kinds          []string
		list, discover bool
		want           bool
		unsure         bool
	}{
		"all that is needed":                   {all, true, true, true, false},
		"no kinds":                             {nil, true, true, false, false},
		"no kinds and no rights":               {nil, false, true, false, false},
		"kinds of an older base":               {all[:3], true, true, false, false},
		"kinds of an older base and no rights": {all[:3], false, true, false, false},
		"no rights yet":                        {all, false, true, false, true},
		"nothing may be asked":                 {all, false, false, false, true},
	} {
		got, err := apiServer(t, test.kinds, test.list, test.discover).Installed(t.Context())
		if got != test.want || (err != nil) != test.unsure {
			t.Errorf("%s: installed is %t, %v; want %t, unsure %t", name, got, err, test.want, test.unsure)
		}
	}
}
