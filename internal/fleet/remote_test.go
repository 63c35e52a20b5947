package fleet

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"slices"
	"strings"
	"testing"
)

func tenantFile(name, spec string) string {
	return group + "kind: Tenant\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
}

// What a namespace is called at providers belongs to one tenant, in every naming
// form: another's default names, namespaces, entries and prefixes are refused, and
// so is what belongs to the cluster.
func TestRemoteNamespacesBelongToOneTenant(t *testing.T) {
	selected := func(name string) string {
		return "resources: {cpu: 1}, offload: {namespaces: [{name: vision, namespaceMappingStrategy: SelectedName, remoteNamespaceName: " + name + "}]}"
	}
	enforced := func(name string) string {
		return "resources: {cpu: 1}, offload: {namespaces: [{name: " + name + ", namespaceMappingStrategy: EnforceSameName}]}"
	}
	vision := "consumers: [rome], namespaces: [vision, batch, \"lab-*\"], remoteNamespaces: [shared-models, \"x-*\"]"
	for name, tc := range map[string]struct{ spec, want string }{
		"its own name":                   {selected("vision"), ""},
		"beginning with its name":        {selected("vision-models"), ""},
		"its own default name":           {selected("vision-rome"), ""},
		"an entry of its file":           {selected("shared-models"), ""},
		"a pattern of its file":          {selected("x-1"), ""},
		"a namespace it has, exactly":    {enforced("batch"), ""},
		"a namespace it has by pattern":  {enforced("lab-1"), "remote namespace lab-1 does not begin with vision-"},
		"another's default name":         {selected("nlp-milan-1"), "nlp-milan-1 is what a namespace of tenant nlp is called at providers"},
		"another's default by pattern":   {selected("text-a-milan-1"), "text-a-milan-1 is what a namespace of tenant nlp is called at providers"},
		"another's namespace":            {selected("nlp"), "namespace nlp belongs to tenant nlp"},
		"beginning with another's name":  {selected("nlp-models"), "remote namespace nlp-models is tenant nlp's by its name"},
		"of the tenant with longer name": {selected("vision-eu-x"), "remote namespace vision-eu-x is tenant vision-eu's by its name"},
		"another's entry":                {selected("corpora"), "remote namespace corpora belongs to tenant nlp"},
		"another's pattern":              {selected("corpora-9"), "remote namespace corpora-9 belongs to tenant nlp"},
		"another's default by its own":   {selected("x-milan-1"), "x-milan-1 is what a namespace of tenant nlp is called at providers"},
		"default another's pattern has":  {"resources: {cpu: 1}, offload: {namespaces: [{name: batch}]}", "at providers it would be called batch-rome, which pattern batch-* of tenant wide covers; choose another name with SelectedName, or narrow the pattern in tenants/wide.yaml"},
		"default nobody's pattern has":   {"resources: {cpu: 1}, offload: {namespaces: [{name: lab-1}]}", ""},
		"nobody's":                       {selected("prod"), "remote namespace prod does not begin with vision-: choose one that does, or list it under spec.remoteNamespaces of tenants/vision.yaml"},
		"of Kubernetes":                  {selected("kube-system"), "namespace kube-system belongs to the provider or its tools"},
		"default":                        {selected("default"), "belongs to the provider"},
		"of Liqo":                        {selected("liqo"), "belongs to the provider"},
		"of Argo CD":                     {selected("argocd"), "belongs to the provider"},
		"where a cluster has Liqo":       {selected("peerings"), "namespace peerings is Liqo's, says clusters/milan.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, NewReader(), base().with(
				"tenants/vision.yaml", tenantFile("vision", vision),
				"tenants/vision-eu.yaml", tenantFile("vision-eu", "consumers: [rome]"),
				"tenants/nlp.yaml", tenantFile("nlp", "consumers: [milan], namespaces: [nlp, x, \"text-*\"], remoteNamespaces: [corpora, \"corpora-*\"]"),
				"tenants/wide.yaml", tenantFile("wide", "consumers: [milan], remoteNamespaces: [\"batch-*\"]"),
				"clusters/milan.yaml", group+"kind: Cluster\nmetadata: {name: milan}\nspec: {roles: [consumer], liqo: {clusterID: milan-1, namespace: peerings}}\n",
				"intents/vision/b.yaml", intent("vision", "b", tc.spec)), nil)
			at := slices.IndexFunc(f.Intents, func(in *model.Intent) bool { return in.Metadata.Name == "b" })
			if at < 0 {
				t.Fatal(diagnostics(f))
			}
			in := f.Intents[at]
			if (tc.want == "") != (in.Problem == "") || !strings.Contains(in.Problem, tc.want) || tc.want != "" && in.ProblemCode != "RemoteNamespaceNotEntitled" {
				t.Errorf("got %q (%s), want %q; %v", in.Problem, in.ProblemCode, tc.want, diagnostics(f))
			}
		})
	}
}

// A Secret that the tenant's file declares may be named; two tenants that list one
// remote namespace are both told.
func TestTenantFileDeclares(t *testing.T) {
	f := read(t, NewReader(), base().with(
		"tenants/vision.yaml", tenantFile("vision", "consumers: [rome], remoteNamespaces: [models], secrets: [{consumer: rome, namespace: liqo-tenant-paris, name: vision-at-paris}]"),
		"tenants/nlp.yaml", tenantFile("nlp", "consumers: [rome], remoteNamespaces: [models]"),
		"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, virtualNode: {kubeconfigSecretRef: {name: vision-at-paris}}")), nil)
	got := strings.Join(diagnostics(f), "\n")
	if strings.Contains(got, "SecretNotEntitled") || strings.Count(got, "models is claimed by tenant") != 2 {
		t.Error(got)
	}
	f = read(t, NewReader(), base().with("tenants/vision.yaml", tenantFile("vision", "consumers: [rome], remoteNamespaces: [kube-system, UP]")), nil)
	if got := strings.Join(diagnostics(f), "\n"); !strings.Contains(got, "belongs to the provider or its tools") || !strings.Contains(got, "neither a namespace nor a pattern") {
		t.Error(got)
	}
}
