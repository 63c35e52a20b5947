package hostile

import (
	"fmt"
	"slices"
	"strings"
)

// Input is something hostile and what must become of it.
type Input struct {
	// Name is unique among its kind: letters, digits and dashes.
	Name string
	// Files of a fleet repo, by path.
	Files map[string]string
	// At is the path that the reason names; empty: the only one of Files.
	At string
	// Stops: while the input is there, nothing is decided for anybody.
	Stops bool
	// Fine: the programs take it as it is, without an error, and that is right.
	Fine bool
}

// fine marks inputs by name as ones that do no harm where they are taken.
func fine(list []Input, names ...string) []Input {
	for i := range list {
		list[i].Fine = slices.Contains(names, list[i].Name)
	}
	return list
}

const group = "apiVersion: fleetbroker.io/v1alpha1\n"

// Fleet are the files of an orderly fleet, into which the hostile ones are put:
// vision and nlp ask at rome, paris gives. Tenant vision's intent good must
// always be placed.
func Fleet() map[string]string {
	return map[string]string{
		"fleet.yaml": group + "kind: Fleet\nmetadata: {name: acme}\nspec:\n  currency: EUR\n" +
			"  writeBack: {mode: push, inputs: main, branch: ledger, author: {name: fleetbroker, email: fleetbroker@example.org}}\n" +
			"  defaults: {gracePeriod: 24h}\n  safety: {silence: 24h}\n", // a provider that reported once is heard however long the inputs take
		"tenants/vision.yaml":      group + "kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], namespaces: [vision, \"vision-*\"]}\n",
		"tenants/nlp.yaml":         group + "kind: Tenant\nmetadata: {name: nlp}\nspec: {consumers: [rome], namespaces: [nlp]}\n",
		"clusters/rome.yaml":       group + "kind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer]}\n",
		"clusters/paris.yaml":      group + "kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider], defaultPrice: {currency: EUR, perHour: {gpu: \"2.80\", cpu: \"0.02\", memoryGi: \"0.003\"}}}\n",
		"flavors/paris/h100.yaml":  group + "kind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"4096\", memory: 16Ti, pods: \"4096\", gpu: 1024}\n  gpu: {vendor: nvidia, model: nvidia-h100, resourceName: nvidia.com/gpu}\n",
		"intents/vision/good.yaml": Intent("vision", "good", ""),
		"intents/nlp/good.yaml":    Intent("nlp", "good", ""),
	}
}

// Intent is a tenant's intent for one GPU with more of a spec.
func Intent(tenant, name, spec string) string {
	return asking(tenant, name, "{cpu: 1, memory: 1Gi, pods: 1, gpu: 1}", spec)
}

// asking is Intent with its resources.
func asking(tenant, name, resources, spec string) string {
	out := fmt.Sprintf("%skind: ResourceIntent\nmetadata: {name: %s, namespace: %s}\nspec:\n  consumer: rome\n  resources: %s\n", group, name, tenant, resources)
	if !strings.Contains(spec, "offload:") {
		out += fmt.Sprintf("  offload: {namespaces: [{name: %s, create: true}]}\n", tenant)
	}
	return out + spec
}

// file is an Input of one file below intents/vision/, its text as it stands.
func file(name, text string) Input {
	return Input{Name: name, Files: map[string]string{"intents/vision/" + name + ".yaml": text}}
}

// spec is an Input of one intent with more of a spec.
func spec(name, more string) Input {
	return file(name, Intent("vision", name, more))
}

// resources is an Input of one intent that asks for something else.
func resources(name, what string) Input {
	return file(name, asking("vision", name, what, ""))
}

// at is an Input of one file at a path.
func at(name, path, text string) Input {
	return Input{Name: name, Files: map[string]string{path: text}}
}

// dir is an Input of a directory below intents/vision/ with a kustomization,
// which Want is said of unless on names another file.
func dir(name, on string, files ...string) Input {
	in := Input{Name: name, Files: map[string]string{}, At: "intents/vision/" + name + "/" + on}
	for i := 0; i < len(files); i += 2 {
		in.Files["intents/vision/"+name+"/"+files[i]] = files[i+1]
	}
	return in
}

// Place is the path that the reason names.
func (i Input) Place() string {
	if i.At != "" {
		return i.At
	}
	for p := range i.Files {
		return p
	}
	return ""
}

// many repeats a format with the numbers from zero.
func many(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}
