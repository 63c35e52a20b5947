package gen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// CRDTypes is the package of the kinds that agents serve, from the repository's
// root.
const CRDTypes = "internal/api/crd"

// DeepCopyFile is generated beside CRDTypes.
const DeepCopyFile = CRDTypes + "/zz_generated.deepcopy.go"

// InstalledCRDs is the copy of the definitions that is installed with agents.
const InstalledCRDs = "fleet-repo-template/install/agent/crds.yaml"

// CRDs are the CustomResourceDefinitions of CRDTypes under crds/, their
// reference pages under docs/, and what Go needs of the types, by its path from
// the repository's root.
func CRDs(root string) (schemas, sources map[string][]byte, err error) {
	definitions, err := generate(root, crd.Generator{OmitToolVersion: new(true)})
	if err != nil {
		return nil, nil, err
	}
	copies, err := generate(root, deepcopy.Generator{})
	if err != nil {
		return nil, nil, err
	}
	schemas, sources = map[string][]byte{}, map[string][]byte{}
	for name, content := range definitions {
		schemas["crds/"+name] = bytes.TrimPrefix(content, []byte("---\n"))
		page, err := crdPage(content)
		if err != nil {
			return nil, nil, fmt.Errorf("describe %s: %w", name, err)
		}
		_, plural, _ := strings.Cut(strings.TrimSuffix(name, ".yaml"), "_")
		schemas["docs/"+plural+".md"] = page
	}
	for name, content := range copies {
		sources[path.Join(CRDTypes, name)] = content
	}
	sources[InstalledCRDs] = installed(definitions)
	return schemas, sources, nil
}

// installed is all definitions in one file.
func installed(definitions map[string][]byte) []byte {
	out := bytes.NewBufferString("# The kinds that the agent serves: what namespaces ask for, what is offered,\n# promised and held. Generated.\n")
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		out.WriteString("---\n")
		out.Write(bytes.TrimPrefix(definitions[name], []byte("---\n")))
	}
	return out.Bytes()
}

// generate runs one of controller-gen's generators on CRDTypes.
func generate(root string, g genall.Generator) (map[string][]byte, error) {
	dir, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(CRDTypes)))
	if err != nil {
		return nil, fmt.Errorf("find the kinds of agents: %w", err)
	}
	roots, err := loader.LoadRoots(dir)
	if err != nil {
		return nil, fmt.Errorf("load the kinds of agents: %w", err)
	}
	out := &collected{files: map[string][]byte{}}
	registry := &markers.Registry{}
	if err := g.RegisterMarkers(registry); err != nil {
		return nil, fmt.Errorf("register markers: %w", err)
	}
	err = g.Generate(&genall.GenerationContext{
		Collector: &markers.Collector{Registry: registry}, Roots: roots, Checker: &loader.TypeChecker{},
		OutputRule: out,
	})
	var wrong []error
	for _, r := range roots {
		for _, e := range r.Errors {
			// Only what the types need of other packages is loaded: the rest of
			// their own package does not type-check, and need not.
			if e.Kind != packages.TypeError {
				wrong = append(wrong, e)
			}
		}
	}
	if err := errors.Join(append(wrong, err)...); err != nil {
		return nil, fmt.Errorf("generate from %s: %w", CRDTypes, err)
	}
	return out.files, nil
}

// collected keeps what a generator writes.
type collected struct{ files map[string][]byte }

// Open implements genall.OutputRule.
func (c *collected) Open(_ *loader.Package, name string) (io.WriteCloser, error) {
	return &file{to: c, name: filepath.Base(name)}, nil
}

type file struct {
	bytes.Buffer
	to   *collected
	name string
}

// Close implements io.Closer.
func (f *file) Close() error {
	f.to.files[f.name] = f.Bytes()
	return nil
}
