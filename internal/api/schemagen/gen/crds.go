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

// served is a package of kinds that an API server serves.
type served struct {
	// types is the package, from the repository's root.
	types string
	// installed is the copy of the definitions that an install base has, and about
	// its first lines.
	installed, about string
	// page begins the names of the kinds' reference pages.
	page string
}

// all are the packages of such kinds: those that agents serve in clusters, and
// those in which replicas of the daemon share a market.
var all = []served{
	{
		types: "internal/api/crd", installed: "fleet-repo-template/install/agent/crds.yaml",
		about: "# The kinds that the agent serves: what namespaces ask for, what is offered,\n# promised and held. Generated.\n",
	},
	{
		types: "internal/api/marketcrd", installed: "fleet-repo-template/install/broker/crds.yaml", page: "market-",
		about: "# The kinds in which the daemon's replicas share one market. Generated.\n",
	},
}

// CRDs are the CustomResourceDefinitions of all kinds under crds/, their
// reference pages under docs/, and what Go needs of the types, by its path from
// the repository's root.
func CRDs(root string) (schemas, sources map[string][]byte, err error) {
	schemas, sources = map[string][]byte{}, map[string][]byte{}
	for _, kinds := range all {
		if err := kinds.write(root, schemas, sources); err != nil {
			return nil, nil, err
		}
	}
	return schemas, sources, nil
}

// write adds what is generated from one package.
func (k served) write(root string, schemas, sources map[string][]byte) error {
	definitions, err := generate(root, k.types, crd.Generator{OmitToolVersion: new(true)})
	if err != nil {
		return err
	}
	copies, err := generate(root, k.types, deepcopy.Generator{})
	if err != nil {
		return err
	}
	for name, content := range definitions {
		schemas["crds/"+name] = bytes.TrimPrefix(content, []byte("---\n"))
		page, err := crdPage(content)
		if err != nil {
			return fmt.Errorf("describe %s: %w", name, err)
		}
		_, plural, _ := strings.Cut(strings.TrimSuffix(name, ".yaml"), "_")
		schemas["docs/"+k.page+plural+".md"] = page
	}
	for name, content := range copies {
		sources[path.Join(k.types, name)] = content
	}
	out := bytes.NewBufferString(k.about)
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		out.WriteString("---\n")
		out.Write(bytes.TrimPrefix(definitions[name], []byte("---\n")))
	}
	sources[k.installed] = out.Bytes()
	return nil
}

// generate runs one of controller-gen's generators on a package.
func generate(root, types string, g genall.Generator) (map[string][]byte, error) {
	dir, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(types)))
	if err != nil {
		return nil, fmt.Errorf("find the kinds of %s: %w", types, err)
	}
	roots, err := loader.LoadRoots(dir)
	if err != nil {
		return nil, fmt.Errorf("load the kinds of %s: %w", types, err)
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
		return nil, fmt.Errorf("generate from %s: %w", types, err)
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
