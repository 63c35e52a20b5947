package manifests

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Of mappings that share a namespace of a provider the oldest keeps it, in every
// naming form and from every consumer; other providers are another matter.
func TestRemoteConflicts(t *testing.T) {
	at := func(tenant, consumer, provider string, age int, n v1alpha1.OffloadNamespace) *v1alpha1.Contract {
		c := contract(tenant, n.Name, "aaaa", offload(n))
		c.Metadata.Name += "-" + consumer + "-" + provider
		c.Spec.Consumer, c.Spec.Provider = consumer, provider
		c.Spec.Term.Start = v1alpha1.TimeOf(time.Date(2026, 1, 1, 0, 0, -age, 0, time.UTC))
		return c
	}
	victim := at("nlp", "milan", "paris", 10, v1alpha1.OffloadNamespace{Name: "nlp"})
	clusters := map[string]*v1alpha1.Cluster{"milan": {Spec: v1alpha1.ClusterSpec{Liqo: v1alpha1.LiqoSpec{ClusterID: "milan-1"}}}}
	for name, tc := range map[string]struct {
		attack *v1alpha1.Contract
		want   string
	}{
		"SelectedName":     {at("vision", "rome", "paris", 1, v1alpha1.OffloadNamespace{Name: "vision", NamespaceMappingStrategy: "SelectedName", RemoteNamespaceName: "nlp-milan-1"}), "at paris it would be nlp-milan-1, which namespace nlp of tenant nlp in milan has"},
		"EnforceSameName":  {at("vision", "rome", "paris", 1, v1alpha1.OffloadNamespace{Name: "nlp-milan-1", NamespaceMappingStrategy: "EnforceSameName"}), "which namespace nlp of tenant nlp"},
		"another provider": {at("vision", "rome", "lyon", 1, v1alpha1.OffloadNamespace{Name: "vision", NamespaceMappingStrategy: "SelectedName", RemoteNamespaceName: "nlp-milan-1"}), ""},
		"kube-system":      {at("vision", "rome", "paris", 1, v1alpha1.OffloadNamespace{Name: "vision", NamespaceMappingStrategy: "SelectedName", RemoteNamespaceName: "kube-system"}), "which belongs to the provider"},
		"its own":          {at("nlp", "milan", "paris", 1, v1alpha1.OffloadNamespace{Name: "nlp"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := RemoteConflicts(slices.Values([]*v1alpha1.Contract{tc.attack, victim}), clusters)
			if tc.want == "" {
				if len(got) > 0 {
					t.Errorf("%v", got)
				}
				return
			}
			k := [2]string{"rome", tc.attack.Spec.Offload.Namespaces[0].Name}
			if len(got) != 1 || !strings.Contains(got[k], tc.want) {
				t.Errorf("%v, want %q", got, tc.want)
			}
		})
	}
}
