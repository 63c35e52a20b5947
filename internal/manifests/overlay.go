package manifests

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
)

// OverlayRoot is the directory of all overlays in the fleet repo.
const OverlayRoot = "overlays"

// ApplyOverlay builds overlays/<consumer> over manifests/<consumer>. Paths of
// both are from these directories. A Component is built onto the manifests; a
// Kustomization may name ../../manifests/<consumer> among its resources, so
// that GitOps tools can build it as it stands, and gets it when it does not.
//
// An overlay may add labels and annotations without a domain, but no label to a
// Namespace, and tighten quotas. All else must come out as it went in, and
// nothing may be added or left out: what is admitted where is not for those who
// patch (limits.go). One that breaks this, or does not build, is ignored as a
// whole: the manifests are returned as they were, with the problem.
//
// The error is an *OverlayUnread and no verdict on the overlay: the process that
// builds it died. What was applied last stays, and it is tried again.
func ApplyOverlay(consumer string, rendered, overlay map[string][]byte) (files map[string][]byte, problem string, err error) {
	if len(overlay) == 0 || len(rendered) == 0 {
		return rendered, "", nil
	}
	out, err := buildOverlay(consumer, rendered, overlay)
	var death *kustomize.Death
	if errors.As(err, &death) {
		return nil, "", &OverlayUnread{Path: path.Join(OverlayRoot, consumer), Death: death}
	}
	if err != nil {
		return rendered, ignored(consumer, err), nil
	}
	return map[string][]byte{"overlaid.yaml": out}, "", nil
}

// OverlayUnread says that an overlay was not built this time, because the process
// that builds it died.
type OverlayUnread struct {
	// Path of the overlay in the fleet repo.
	Path string
	// Death of the process; it says whether the overlay is to blame.
	Death *kustomize.Death
}

// Error says what was not built, and what stands meanwhile.
func (e *OverlayUnread) Error() string {
	return e.Path + " is not read this time: " + e.Death.Error() + "; what was applied last stays, and it is tried again"
}

// Unwrap is the death.
func (e *OverlayUnread) Unwrap() error { return e.Death }

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
	out, err := kustomize.Build(files, target, kustomize.OfOverlay)
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
	plain, err := kustomize.Plain(file, files[file]) // without aliases, which could make it large
	if err != nil {
		return "", err
	}
	var k map[string]any
	if err := yaml.Unmarshal(plain, &k); err != nil {
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
		id := idOf(object)
		if _, twice := into[id]; twice {
			return fmt.Errorf("%s is there twice", id)
		}
		into[id] = object
	}
}
