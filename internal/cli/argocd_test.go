package cli

import (
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// Argo CD must take the Applications as they stand, sync the two directories by
// itself down to the last contract, and delete nothing when one is taken away.
func TestArgoApplications(t *testing.T) {
	wrong := argoSchema(t, "application")
	for file, path := range map[string]string{"namespaces.yaml": "manifests/rome/namespaces", "vision.yaml": "manifests/rome/vision"} {
		var app map[string]any
		readYAML(t, template+"/install/argocd/"+file, &app)
		if found := wrong(app); len(found) > 0 {
			t.Errorf("%s: %v", file, found)
		}
		u := unstructured.Unstructured{Object: app}
		if got, _, _ := unstructured.NestedString(app, "spec", "source", "path"); got != path || len(u.GetFinalizers()) > 0 {
			t.Errorf("%s: path %s, finalizers %v", file, got, u.GetFinalizers())
		}
		automated, _, _ := unstructured.NestedMap(app, "spec", "syncPolicy", "automated")
		if want := map[string]any{"prune": true, "selfHeal": true, "allowEmpty": true}; !reflect.DeepEqual(automated, want) {
			t.Errorf("%s: automated is %v, want %v", file, automated, want)
		}
		options, _, _ := unstructured.NestedStringSlice(app, "spec", "syncPolicy", "syncOptions")
		if !slices.Contains(options, "ServerSideApply=true") {
			t.Errorf("%s: syncOptions %v", file, options)
		}
	}
	var app map[string]any
	readYAML(t, template+"/install/argocd/vision.yaml", &app)
	for what, change := range map[string][]string{
		"spec.syncPolicy.automated.prone":    {"spec", "syncPolicy", "automated", "prone"},
		"spec.syncPolicy.retry.limit":        {"spec", "syncPolicy", "retry", "limit"},
		"spec.syncPolicy.automated.selfHeal": {"spec", "syncPolicy", "automated", "selfHeal"},
	} {
		broken := (&unstructured.Unstructured{Object: app}).DeepCopy().Object
		if err := unstructured.SetNestedField(broken, "no", change...); err != nil {
			t.Fatal(err)
		}
		if found := wrong(broken); !strings.Contains(strings.Join(found, "\n"), what) {
			t.Errorf("%s is wrong, found %v", what, found)
		}
	}
}

// The projects let the Applications bring what is rendered and no more: a tenant's
// brings nothing of the whole cluster, and nothing where pods run.
func TestArgoProjects(t *testing.T) {
	wrong, projects := argoSchema(t, "appproject"), map[string]map[string]any{}
	content, err := os.ReadFile(template + "/install/argocd/projects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(string(content), "\n---\n") {
		var project map[string]any
		if err := yaml.Unmarshal([]byte(text), &project); err != nil {
			t.Fatal(err)
		}
		if found := wrong(project); len(found) > 0 {
			t.Errorf("%v", found)
		}
		projects[(&unstructured.Unstructured{Object: project}).GetName()] = project
	}
	rendered := renderedFor(t, "rome")
	for name, dir := range map[string]string{"vision": "manifests/rome/vision/", "namespaces": "manifests/rome/namespaces/"} {
		var app map[string]any
		readYAML(t, template+"/install/argocd/"+name+".yaml", &app)
		at, _, _ := unstructured.NestedString(app, "spec", "project")
		project := projects[at]
		if project == nil {
			t.Errorf("the Application of %s is of project %q, which is not there", name, at)
			continue
		}
		repo, _, _ := unstructured.NestedString(app, "spec", "source", "repoURL")
		if namespace, _, _ := unstructured.NestedString(app, "spec", "destination", "namespace"); !permits(project, "https://kubernetes.default.svc", namespace) {
			t.Errorf("%s does not take the Application's destination namespace %q", at, namespace)
		}
		server, _, _ := unstructured.NestedString(app, "spec", "destination", "server")
		if from, _, _ := unstructured.NestedStringSlice(project, "spec", "sourceRepos"); !reflect.DeepEqual(from, []string{repo}) {
			t.Errorf("%s takes from %v, and the Application from %s", at, from, repo)
		}
		used, listed := map[string]bool{}, kindsOf(project, "clusterResourceWhitelist")
		for kind := range kindsOf(project, "namespaceResourceWhitelist") {
			listed[kind] = true
		}
		for file, objects := range rendered {
			for _, u := range objects {
				kind := u.GroupVersionKind().Group + "/" + u.GetKind()
				if !strings.HasPrefix(file, dir) || strings.Contains(file, "/policies/") { // which are left out
					continue
				}
				used[kind] = true
				list := "clusterResourceWhitelist"
				if u.GetNamespace() != "" {
					list = "namespaceResourceWhitelist"
				}
				if !kindsOf(project, list)[kind] || u.GetNamespace() != "" && !permits(project, server, u.GetNamespace()) {
					t.Errorf("%s does not let %s bring %s %s", at, file, kind, u.GetName())
				}
			}
		}
		if !reflect.DeepEqual(used, listed) {
			t.Errorf("%s lists %v, and rendered are %v", at, listed, used)
		}
	}
	if tenant := projects["fleet-vision"]; permits(tenant, "https://kubernetes.default.svc", "vision") || len(kindsOf(tenant, "clusterResourceWhitelist")) > 0 {
		t.Error("a tenant's Application may bring something where pods run, or of the whole cluster")
	}
}

// kindsOf are the kinds of one of a project's lists, as group/kind.
func kindsOf(project map[string]any, list string) map[string]bool {
	out := map[string]bool{}
	entries, _, _ := unstructured.NestedSlice(project, "spec", list)
	for _, entry := range entries {
		e, _ := entry.(map[string]any)
		out[fmt.Sprintf("%v/%v", e["group"], e["kind"])] = true
	}
	return out
}

// permits reports whether a project allows a destination, as Argo CD matches it.
func permits(project map[string]any, server, namespace string) bool {
	destinations, _, _ := unstructured.NestedSlice(project, "spec", "destinations")
	return slices.ContainsFunc(destinations, func(entry any) bool {
		d, _ := entry.(map[string]any)
		pattern, _ := d["namespace"].(string)
		fits, err := path.Match(pattern, namespace)
		return d["server"] == server && err == nil && fits
	})
}

// renderedFor are the objects of a consumer with one contract of vision, by file.
func renderedFor(t *testing.T, consumer string) map[string][]unstructured.Unstructured {
	t.Helper()
	contract := &v1alpha1.Contract{
		Metadata: v1alpha1.Metadata{Name: "vision-train-0-aaaa", Namespace: "vision"},
		Spec: v1alpha1.ContractSpec{
			Intent: v1alpha1.ContractIntent{Name: "train"}, Consumer: consumer, Provider: "paris",
			Resources: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1000), "nvidia.com/gpu": v1alpha1.AmountOf(1)},
			Offload:   &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: "vision", Create: true, Quota: true, PodOffloadingStrategy: "Remote"}}},
		},
		Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseActive},
	}
	out, err := manifests.All(manifests.NewIndex([]*v1alpha1.Contract{contract}), map[string]*v1alpha1.Cluster{})
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string][]unstructured.Unstructured{}
	for file, text := range out.Files {
		if path.Base(file) == "kustomization.yaml" {
			continue
		}
		for _, one := range strings.Split(string(text), "\n---\n") {
			var u unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(one), &u.Object); err != nil {
				t.Fatal(err)
			}
			objects[file] = append(objects[file], u)
		}
	}
	return objects
}

// argoSchema tells what an API server with Argo CD's definition of a kind would
// not take of an object.
func argoSchema(t *testing.T, kind string) func(map[string]any) []string {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	readYAML(t, "testdata/argocd/"+kind+"-crd.yaml", &crd)
	var schema apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(crd.Spec.Versions[0].Schema, &schema, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return func(app map[string]any) []string {
		var found []string
		for _, err := range validation.ValidateCustomResource(nil, app, validator) {
			found = append(found, err.Error())
		}
		known := (&unstructured.Unstructured{Object: app}).DeepCopy().Object
		return append(found, pruning.PruneWithOptions(known, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	}
}

// Argo CD must call a chain healthy, on its way or broken when it is. (States
// are those of Liqo v1.2.0.)
func TestArgoHealth(t *testing.T) {
	var config struct{ Data map[string]string }
	readYAML(t, template+"/install/argocd/health.yaml", &config)
	const (
		slice      = "authentication.liqo.io_ResourceSlice"
		node       = "offloading.liqo.io_VirtualNode"
		offloading = "offloading.liqo.io_NamespaceOffloading"
		asked      = "spec: {resources: {cpu: '16', nvidia.com/gpu: '4'}}\n"
		accepted   = "{type: Authentication, status: Accepted}, {type: Resources, status: Accepted}"
	)
	if config.Data["application.sync.impersonation.enabled"] != "true" || len(config.Data) != 4 {
		t.Errorf("Argo CD does not act as the projects' accounts, or there are not three rules: %d keys", len(config.Data))
	}
	for name, c := range map[string]struct{ kind, object, status, message string }{
		"slice: nothing said yet":    {slice, asked, "Progressing", "nothing granted yet"},
		"slice: granted":             {slice, asked + "status: {resources: {cpu: '16', nvidia.com/gpu: '4', pods: '110'}, conditions: [" + accepted + "]}", "Healthy", "granted"},
		"slice: granted as a number": {slice, asked + "status: {resources: {cpu: 16, nvidia.com/gpu: '4'}}", "Healthy", "granted"},
		"slice: granted less":        {slice, asked + "status: {resources: {cpu: '16', nvidia.com/gpu: '2'}, conditions: [" + accepted + "]}", "Progressing", "nvidia.com/gpu: 2 of 4"},
		"slice: a key is missing":    {slice, asked + "status: {resources: {cpu: '16'}, conditions: [" + accepted + "]}", "Progressing", "nvidia.com/gpu: nothing of 4"},
		"slice: denied":              {slice, asked + "status: {conditions: [{type: Resources, status: Denied, message: only 2 free}]}", "Degraded", "Resources denied: only 2 free"},
		"slice: denied, no reason":   {slice, asked + "status: {conditions: [{type: Authentication, status: Denied}]}", "Degraded", "no reason is given"},

		"node: new":      {node, "spec: {clusterID: paris}", "Progressing", "VirtualKubelet: None"},
		"node: creating": {node, "status: {conditions: [{type: VirtualKubelet, status: Running}, {type: Node, status: Creating}]}", "Progressing", "Node: Creating"},
		"node: runs":     {node, "status: {conditions: [{type: VirtualKubelet, status: Running}, {type: Node, status: Running}, {type: Node, status: Creating}]}", "Healthy", "running"},
		"node: drained":  {node, "status: {conditions: [{type: VirtualKubelet, status: Running}, {type: Node, status: Draining}, {type: Node, status: Running}]}", "Progressing", "Node: Draining"},

		"offloading: new":           {offloading, "metadata: {generation: 1}", "Progressing", "not looked at yet"},
		"offloading: changed since": {offloading, "metadata: {generation: 2}\nstatus: {offloadingPhase: Ready, observedGeneration: 1}", "Progressing", "not looked at yet"},
		"offloading: ready":         {offloading, "metadata: {generation: 2}\nstatus: {offloadingPhase: Ready, observedGeneration: 2}", "Healthy", "Ready"},
		"offloading: no cluster":    {offloading, "metadata: {generation: 1}\nstatus: {offloadingPhase: NoClusterSelected, observedGeneration: 1}", "Progressing", "NoClusterSelected"},
		"offloading: failed": {offloading, "metadata: {generation: 1}\nstatus: {offloadingPhase: SomeFailed, observedGeneration: 1, remoteNamespacesConditions: " +
			"{paris: [{type: OffloadingRequired, status: 'True'}, {type: Ready, status: 'False', message: it exists}], oslo: [{type: Ready, status: 'True'}]}}", "Degraded", "SomeFailed paris: it exists"},
	} {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(c.object), &obj); err != nil {
			t.Fatal(name, err)
		}
		status, message := argoHealth(t, config.Data["resource.customizations.health."+c.kind], obj)
		if status != c.status || !strings.Contains(message, c.message) {
			t.Errorf("%s: %s: %q, want %s: %q", name, status, message, c.status, c.message)
		}
	}
}

// argoHealth runs a rule with no more of Lua's libraries than Argo CD gives it.
func argoHealth(t *testing.T, rule string, obj map[string]any) (status, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	l.SetGlobal("obj", luaValue(l, obj))
	if err := l.DoString(rule); err != nil {
		t.Fatal(err)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the rule returns %s", l.Get(-1))
	}
	return lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))
}

// luaValue is a value of JSON for Lua.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := l.NewTable()
		for k, v := range value {
			table.RawSetString(k, luaValue(l, v))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, v := range value {
			table.Append(luaValue(l, v))
		}
		return table
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	}
	return lua.LNil
}

// readYAML reads a file of the repository.
func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
