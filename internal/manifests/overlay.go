package manifests

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// OverlayRoot is the directory of all overlays in the fleet repo.
const OverlayRoot = "overlays"

// ApplyOverlay builds overlays/<consumer> over manifests/<consumer>. Paths of
// both are from these directories. A Component is built onto the manifests; a
// Kustomization may name ../../manifests/<consumer> among its resources, so
// that GitOps tools can build it as it stands, and gets it when it does not.
//
// An overlay may patch what is rendered; names, namespaces, metadata of Liqo and
// of the broker, and the specification of slices and virtual nodes must come
// out as they went in, and nothing may be added or left out. One that breaks
// this, or does not build, is ignored as a whole: the manifests are returned as
// they were, with the problem.
func ApplyOverlay(consumer string, rendered, overlay map[string][]byte) (files map[string][]byte, problem string) {
	if len(overlay) == 0 || len(rendered) == 0 {
		return rendered, ""
	}
	out, err := buildOverlay(consumer, rendered, overlay)
	if err != nil {
		return rendered, fmt.Sprintf("%s/%s is ignored: %v", OverlayRoot, consumer, err)
	}
	return map[string][]byte{"overlaid.yaml": out}, ""
}

func buildOverlay(consumer string, rendered, overlay map[string][]byte) ([]byte, error) {
	base, dir := Dir(consumer), path.Join(OverlayRoot, consumer)
	files := map[string][]byte{}
	for name, text := range rendered {
		files[path.Join(base, name)] = text
	}
	for name, text := range overlay {
		files[path.Join(dir, name)] = text
	}
	target, err := overlayTarget(files, base, dir)
	if err != nil {
		return nil, err
	}
	out, err := kustomize.Build(files, target)
	if err != nil {
		return nil, err
	}
	before := map[objectID]map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if kustomize.IsKustomization(name) {
			continue
		}
		if err := readObjects(rendered[name], before); err != nil {
			return nil, fmt.Errorf("%s: %w", path.Join(base, name), err)
		}
	}
	after := map[objectID]map[string]any{}
	if err := readObjects(out, after); err != nil {
		return nil, err
	}
	return out, withinLimits(before, after)
}

// overlayTarget is the directory to build; it adds what is missing to files.
func overlayTarget(files map[string][]byte, base, dir string) (string, error) {
	file := ""
	for name := range files {
		if path.Dir(name) == dir && kustomize.IsKustomization(name) {
			file = name
		}
	}
	if file == "" {
		return "", fmt.Errorf("it has no %s", kustomizationFile)
	}
	var k map[string]any
	if err := yaml.Unmarshal(files[file], &k); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	up := "../../"
	if k["kind"] == "Component" {
		const target = "build/overlay"
		files[path.Join(target, kustomizationFile)] = []byte(fmt.Sprintf("resources: [%q]\ncomponents: [%q]\n", up+base, up+dir))
		return target, nil
	}
	resources, _ := k["resources"].([]any)
	if !slices.ContainsFunc(resources, func(r any) bool { s, _ := r.(string); return path.Clean(s) == up+base }) {
		k["resources"] = append(resources, up+base)
		text, err := yaml.Marshal(k)
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		files[file] = text
	}
	return dir, nil
}

// objectID is what names an object.
type objectID struct{ apiVersion, kind, namespace, name string }

func (id objectID) String() string {
	return strings.TrimSpace(id.kind + " " + path.Join(id.namespace, id.name))
}

func readObjects(text []byte, into map[objectID]map[string]any) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var object map[string]any
		if err := yaml.Unmarshal(doc, &object); err != nil {
			return err
		}
		if len(object) == 0 {
			continue
		}
		meta, _ := object["metadata"].(map[string]any)
		get := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
		into[objectID{get(object, "apiVersion"), get(object, "kind"), get(meta, "namespace"), get(meta, "name")}] = object
	}
}

// withinLimits compares what went in with what came out.
func withinLimits(before, after map[objectID]map[string]any) error {
	var broken []string
	for id, was := range before {
		is, ok := after[id]
		switch {
		case !ok:
			broken = append(broken, fmt.Sprintf("%s is missing or renamed", id))
		case !reflect.DeepEqual(reserved(was), reserved(is)):
			broken = append(broken, fmt.Sprintf("%s: labels and annotations of liqo.io and fleetbroker.io must stay as they are", id))
		case (id.kind == "ResourceSlice" || id.kind == "VirtualNode") && !reflect.DeepEqual(was["spec"], is["spec"]):
			broken = append(broken, fmt.Sprintf("%s: its spec must stay as it is", id))
		}
	}
	for id := range after {
		if _, ok := before[id]; !ok {
			broken = append(broken, fmt.Sprintf("%s is added: overlays only patch what is rendered", id))
		}
	}
	if len(broken) == 0 {
		return nil
	}
	slices.Sort(broken)
	const shown = 3
	text := strings.Join(broken[:min(shown, len(broken))], "; ")
	if more := len(broken) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}

// reserved is the metadata that no overlay may touch.
func reserved(object map[string]any) map[string]any {
	out := map[string]any{}
	meta, _ := object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		entries, _ := meta[field].(map[string]any)
		for k, v := range entries {
			domain, _, _ := strings.Cut(k, "/")
			if domain == "liqo.io" || strings.HasSuffix(domain, ".liqo.io") || domain == v1alpha1.Group || strings.HasSuffix(domain, "."+v1alpha1.Group) {
				out[field+"/"+k] = v
			}
		}
	}
	return out
}
