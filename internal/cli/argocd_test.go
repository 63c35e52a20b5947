package cli

import (
	"os"
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
)

// Argo CD must take the Applications as they stand, sync the two directories by
// itself down to the last contract, and delete nothing when one is taken away.
func TestArgoApplications(t *testing.T) {
	wrong := applicationSchema(t)
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

// applicationSchema tells what an API server with Argo CD's definition would
// not take of an Application.
func applicationSchema(t *testing.T) func(map[string]any) []string {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	readYAML(t, "testdata/argocd/application-crd.yaml", &crd)
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
	if len(config.Data) != 3 {
		t.Errorf("%d rules", len(config.Data))
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
