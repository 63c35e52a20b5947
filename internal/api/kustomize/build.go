package kustomize

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// one build at a time: kustomize caches schemas in global variables.
var one sync.Mutex

// Build builds the kustomization in dir of files, which are by slash-separated
// path, and returns a YAML stream. Nothing but files is read.
func Build(files map[string][]byte, dir string) (out []byte, err error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if IsKustomization(name) {
			if err := Check(files, name); err != nil {
				return nil, err
			}
		}
	}
	memory := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := memory.WriteFile("/"+name, text); err != nil {
			return nil, fmt.Errorf("build %s: %w", dir, err)
		}
	}
	one.Lock()
	defer one.Unlock()
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("build %s: kustomize failed: %v", dir, p)
		}
	}()
	options := krusty.MakeDefaultOptions() // plugins are disabled, files outside the root are not loaded
	resources, err := krusty.MakeKustomizer(options).Run(memory, "/"+dir)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	if out, err = resources.AsYaml(); err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	return out, nil
}

// IsKustomization reports whether a file is a kustomization, by its name.
func IsKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

// Check refuses what a build in the daemon must not do: run programs, load
// schemas, or fetch. kustomize takes what it does not find for a remote
// repository and clones it, so everything named must be among files.
func Check(files map[string][]byte, name string) error {
	var k types.Kustomization
	if err := yaml.UnmarshalStrict(files[name], &k); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	refused := map[string]bool{
		"openapi":      len(k.OpenAPI) > 0,
		"helmCharts":   len(k.HelmCharts) > 0 || k.HelmGlobals != nil || len(k.HelmChartInflationGenerator) > 0,
		"generators":   len(k.Generators) > 0,
		"transformers": len(k.Transformers) > 0,
		"validators":   len(k.Validators) > 0,
	}
	for _, field := range slices.Sorted(maps.Keys(refused)) {
		if refused[field] {
			return fmt.Errorf("%s: %s is not allowed here", name, field)
		}
	}
	fields := map[string]json.RawMessage{}
	if err := yaml.Unmarshal(files[name], &fields); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if field != "commonAnnotations" && field != "metadata" && Fetches(fields[field]) {
			return fmt.Errorf("%s: %s names a URL, and nothing is fetched here", name, field)
		}
	}
	named := slices.Concat(k.Resources, k.Components, k.Bases, k.Crds, k.Configurations) //nolint:staticcheck // old files use bases
	for _, resource := range named {
		target := path.Join(path.Dir(name), resource)
		if LooksRemote(resource) || !exists(files, target) {
			return fmt.Errorf("%s: %q is not a file or directory of this repository, and remote ones are not fetched", name, resource)
		}
	}
	return nil
}

func exists(files map[string][]byte, target string) bool {
	if _, ok := files[target]; ok {
		return true
	}
	for name := range files {
		if strings.HasPrefix(name, target+"/") {
			return true
		}
	}
	return false
}
