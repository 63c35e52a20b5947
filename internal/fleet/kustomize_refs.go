package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// kustomizationFile is a kustomization as far as its references go.
type kustomizationFile struct {
	path string
	kind string
	// dirs are the directories it refers to.
	dirs  []string
	diags []Diagnostic
}

// kustomizationFields are the fields that are read. What is missing here runs
// programs, fetches from the network, or makes things that are no intents.
var kustomizationFields = []string{
	"apiVersion", "kind", "metadata", "resources", "bases", "components", "patches", "patchesStrategicMerge", "patchesJson6902",
	"namePrefix", "nameSuffix", "namespace", "commonLabels", "labels", "commonAnnotations", "replacements", "vars", "configurations", "sortOptions",
}

// open reads the kustomization of a directory.
func (k *kustomizer) open(dirPath string) (*kustomizationFile, error) {
	if kf, ok := k.known[dirPath]; ok {
		return kf, nil
	}
	sub, err := k.tree.Sub(dirPath)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dirPath, err)
	}
	entries, err := sub.Entries()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dirPath, err)
	}
	name := kustomization(entries)
	kf := &kustomizationFile{path: path.Join(dirPath, name)}
	k.known[dirPath] = kf
	if name == "" {
		kf.path = dirPath
		kf.fail(1, 1, "the directory has no kustomization.yaml")
		return kf, nil
	}
	content, err := sub.ReadFile(name, strictyaml.MaxSize)
	if errors.Is(err, tree.ErrTooLarge) {
		kf.fail(1, 1, "the file is too large")
		return kf, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kf.path, err)
	}
	return kf, k.references(kf, dirPath, content)
}

func (kf *kustomizationFile) fail(line, column int, format string, args ...any) {
	kf.diags = append(kf.diags, Diagnostic{File: kf.path, Line: line, Column: column, Message: fmt.Sprintf(format, args...), Severity: Error, Code: "Kustomize"})
}

// references reads what a kustomization refers to and refuses what it may not.
func (k *kustomizer) references(kf *kustomizationFile, dirPath string, content []byte) error {
	sources, problems := strictyaml.Split(content)
	if len(problems) == 0 && len(sources) != 1 {
		problems = []strictyaml.Problem{{Line: 1, Column: 1, Message: "one document is due"}}
	}
	var doc *strictyaml.Document
	fields := map[string]json.RawMessage{}
	if len(problems) == 0 {
		if doc, problems = strictyaml.Parse(sources[0]); len(problems) == 0 {
			problems = doc.Decode(&fields)
		}
	}
	for _, p := range problems {
		kf.fail(p.Line, p.Column, "%s", p.Message)
	}
	if len(problems) > 0 {
		return nil
	}
	kf.kind = doc.Text("kind")
	for _, name := range sortedKeys(fields) {
		if !slices.Contains(kustomizationFields, name) {
			line, column := doc.KeyAt(name)
			if near := nearest.Of(name, kustomizationFields); near != "" {
				kf.fail(line, column, "the field %s is not supported in a fleet repo (did you mean %q?)", name, near)
				continue
			}
			kf.fail(line, column, "the field %s is not supported in a fleet repo: kustomizations here may not run programs, fetch anything, use charts or change schemas", name)
		}
	}
	for _, name := range sortedKeys(fields) {
		if name != "commonAnnotations" && name != "metadata" && kustomize.Fetches(fields[name]) {
			line, column := doc.At(name)
			kf.fail(line, column, "%s names an address on the network; nothing is fetched, copy the file into the fleet repo", name)
		}
	}
	for _, name := range []string{"resources", "bases", "components"} {
		var refs []string
		if raw, ok := fields[name]; ok && json.Unmarshal(raw, &refs) != nil {
			line, column := doc.At(name)
			kf.fail(line, column, "%s is not a list of paths", name)
		}
		for i, ref := range refs {
			line, column := doc.At(name, i)
			if err := k.reference(kf, dirPath, ref, line, column); err != nil {
				return err
			}
		}
	}
	return nil
}

// reference resolves one entry of a kustomization.
func (k *kustomizer) reference(kf *kustomizationFile, dirPath, ref string, line, column int) error {
	if kustomize.LooksRemote(ref) {
		kf.fail(line, column, "%q is not a path within the fleet repo; remote bases are not fetched, copy them under %s/", ref, basesDir)
		return nil
	}
	p := path.Join(dirPath, ref)
	if !k.may(p) {
		kf.fail(line, column, "%q leads out of the tenant's directory; only that and %s/ can be read", ref, basesDir)
		return nil
	}
	e, err := k.tree.Find(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kf.fail(line, column, "%q: there is no file or directory %s", ref, p)
	case err != nil:
		return fmt.Errorf("resolve %s: %w", p, err)
	case e.Kind == tree.Dir:
		kf.dirs = append(kf.dirs, p)
	case e.Kind == tree.Symlink || e.Kind == tree.Submodule:
		kf.fail(line, column, "%q: symbolic links and submodules are not followed", ref)
	}
	return nil
}

func (k *kustomizer) may(p string) bool {
	for _, a := range k.allowed {
		if p == a || strings.HasPrefix(p, a+"/") {
			return true
		}
	}
	return false
}
