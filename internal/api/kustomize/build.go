package kustomize

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Refusal is a verdict on files: they cannot be built, here or elsewhere. File
// is "" for the kustomization as a whole; Line and Column then are 0.
type Refusal struct {
	File         string
	Line, Column int
	Message      string
}

// Error has the place, when there is one.
func (r *Refusal) Error() string {
	switch {
	case r.File == "":
		return r.Message
	case r.Line == 0:
		return r.File + ": " + r.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", r.File, r.Line, r.Column, r.Message)
}

func refusal(file, format string, args ...any) *Refusal {
	return &Refusal{File: file, Message: fmt.Sprintf(format, args...)}
}

// Build builds the kustomization in dir of files, which are by slash-separated
// path, and returns a YAML stream. Nothing but files is read. An error is a
// *Refusal, or a *child.Death when it is not known what the files make.
func Build(files map[string][]byte, dir string, most Work) ([]byte, error) {
	s, err := prepare(files, dir, most)
	if err != nil {
		return nil, err
	}
	return built(builder, s.files, dir)
}

// prepare reads the files strictly, checks what they name and counts what they
// would make.
func prepare(files map[string][]byte, dir string, most Work) (*set, error) {
	s, err := read(files)
	if err != nil {
		return nil, err
	}
	for _, name := range sorted(s.files) {
		if IsKustomization(name) {
			if err := s.check(name); err != nil {
				return nil, err
			}
		}
	}
	return s, s.bounded(dir, most)
}

// here builds in this process: it is what the child does.
func here(files map[string][]byte, dir string) (out []byte, err error) {
	memory := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := memory.WriteFile("/"+name, text); err != nil {
			return nil, err
		}
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("kustomize failed: %v", p)
		}
	}()
	options := krusty.MakeDefaultOptions() // plugins are disabled, files outside the root are not loaded
	resources, err := krusty.MakeKustomizer(options).Run(memory, "/"+dir)
	if err != nil {
		return nil, err
	}
	if out, err = resources.AsYaml(); err != nil {
		return nil, err
	}
	if len(out) > MaxMade {
		return nil, fmt.Errorf("what it makes is larger than %d MiB", MaxMade>>20)
	}
	return out, nil
}

// IsKustomization reports whether a file is a kustomization, by its name.
func IsKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

// check refuses what a build in the daemon must not do: run programs, load
// schemas, or fetch. kustomize takes what it does not find for a remote
// repository and clones it, so everything named must be among files.
func (s *set) check(name string) error {
	var k types.Kustomization
	if err := yaml.UnmarshalStrict(s.files[name], &k); err != nil {
		return refusal(name, "%v", err)
	}
	refused := map[string]bool{
		"openapi":      len(k.OpenAPI) > 0,
		"helmCharts":   len(k.HelmCharts) > 0 || k.HelmGlobals != nil || len(k.HelmChartInflationGenerator) > 0,
		"generators":   len(k.Generators) > 0,
		"transformers": len(k.Transformers) > 0,
		"validators":   len(k.Validators) > 0,
	}
	for _, field := range sorted(refused) {
		if refused[field] {
			return refusal(name, "%s is not allowed here", field)
		}
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(s.files[name], &fields); err != nil {
		return refusal(name, "%v", err)
	}
	for _, field := range sorted(fields) {
		if field != "commonAnnotations" && field != "metadata" && Fetches(fields[field]) {
			return fetched(name, field)
		}
	}
	for field, args := range generators(&k) {
		if slices.ContainsFunc(args.FileSources, fetchesFile) {
			return fetched(name, field)
		}
	}
	named := slices.Concat(k.Resources, k.Components, k.Bases, k.Crds, k.Configurations) //nolint:staticcheck // old files use bases
	for _, resource := range named {
		target := path.Join(path.Dir(name), resource)
		if LooksRemote(resource) || !s.exists(target) {
			if refused := s.unread[target]; refused != nil {
				return refused
			}
			return refusal(name, "%q is not a file or directory of this repository, and remote ones are not fetched", resource)
		}
	}
	l := s.weigh(path.Dir(name), &k, fields)
	if l.long != nil {
		l.long.File = cmp.Or(l.long.File, name)
		return l.long
	}
	s.loads[path.Dir(name)] = l
	return nil
}

func fetched(name, field string) *Refusal {
	return refusal(name, "%s names a URL, and nothing is fetched here; copy the file into the repository", field)
}

// generators are the sources of all generators, by the field that has them.
func generators(k *types.Kustomization) iter.Seq2[string, types.KvPairSources] {
	return func(yield func(string, types.KvPairSources) bool) {
		for i := range k.ConfigMapGenerator {
			if !yield("configMapGenerator", k.ConfigMapGenerator[i].KvPairSources) {
				return
			}
		}
		for i := range k.SecretGenerator {
			if !yield("secretGenerator", k.SecretGenerator[i].KvPairSources) {
				return
			}
		}
	}
}

func (s *set) exists(target string) bool {
	_, file := s.files[target]
	return file || s.dirs[target]
}
