package newfleet

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	fleetrepo "github.com/fleetbroker/fleetbroker/fleet-repo-template"
	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/hints"
	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/install"
	"github.com/fleetbroker/fleetbroker/internal/laid"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/schemas"
)

// Lock is the file by which Update knows what people edited.
const Lock = ".fleetbroker/template.lock"

// Base holds the template's files as they were written, for an update to merge by.
const Base = ".fleetbroker/template.base"

// schemaDir is where the editor's schemas lie in a fleet repo.
const schemaDir = ".schemas"

// referenceDir has a page for each kind and its fields.
const referenceDir = "docs/reference"

// neighbours are what reference pages link to, and where a fleet repo has it.
var neighbours = strings.NewReplacer("](../crds)", "](../../install/broker/crds.yaml)", "](../", "](../../"+schemaDir+"/")

// Keys of the lock's choices.
const (
	choiceForge    = "forge"
	choiceFleet    = "fleetID"
	choiceReleases = "releases"
)

// choices of a fleet repo, for its lock.
func choices(forge, id string, p Pin) map[string]string {
	out := map[string]string{choiceForge: forge, choiceFleet: id}
	if p.Releases != "" {
		out[choiceReleases] = p.Releases
	}
	return out
}

// samples are the parts of the template that people own from the first day.
var samples = []string{"fleet.yaml", "clusters", "flavors", "intents", "tenants"}

// allowed is what a directory may have before it becomes a fleet repo.
var allowed = regexp.MustCompile(`(?i)^(\.git|\.gitignore|\.gitattributes|\.editorconfig|(readme|licen[cs]e|copying|notice|security|contributing|codeowners)(\..*)?)$`)

// Make makes a fleet repo in dir for a forge, and returns the paths that it wrote. What
// the directory has stays as it is.
func Make(dir, forge, id string, p Pin) (laid.Outcome, error) {
	if err := Vacant(dir); err != nil {
		return laid.Outcome{}, err
	}
	files, err := named(forge, id, p)
	if err != nil {
		return laid.Outcome{}, err
	}
	kept := map[string][]byte{}
	for name := range files {
		if isSample(name) {
			kept[name] = files[name]
			delete(files, name)
		}
	}
	out, err := laid.Merge(dir, Lock, Base, files, version.Text(), choices(forge, id, p))
	if err != nil {
		return out, fmt.Errorf("make the fleet repo: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a repo is for its readers
			return out, fmt.Errorf("make the fleet repo: %w", err)
		}
		if err := os.WriteFile(to, kept[name], 0o644); err != nil { //nolint:gosec // a repo is for its readers
			return out, fmt.Errorf("make the fleet repo: %w", err)
		}
		out.Written = append(out.Written, name)
	}
	slices.Sort(out.Written)
	return out, nil
}

// Updated is what Update did.
type Updated struct {
	laid.Outcome
	// From is the version that wrote the files, "" where no lock said so; To is this
	// program's. Forge and fleet id are those that the repo was made with.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Forge is whose CI files the repo has.
	Forge string `json:"forge"`
}

// Update brings the template's files in dir to this program's version. Samples and what
// people edited stay. CI takes its program from releases; "" is where it did before.
func Update(dir, releases string) (Updated, error) {
	u := Updated{To: version.Text()}
	if _, err := os.Stat(filepath.Join(dir, "fleet.yaml")); errors.Is(err, fs.ErrNotExist) {
		return u, hints.On(fmt.Errorf("%s is no fleet repo: it has no fleet.yaml", dir), "make one: fleetbroker init "+dir)
	}
	lock, found, err := laid.Read(dir, Lock)
	if err != nil {
		return u, fmt.Errorf("update the fleet repo: %w", err)
	}
	id := lock.Choices[choiceFleet]
	u.From, u.Forge = escape.Line(lock.Version), lock.Choices[choiceForge]
	if err := plausible(lock, id); err != nil {
		return u, err
	}
	if !found { // made before there was a lock
		id = install.ID(func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))) }) //nolint:gosec // the user named the directory
		u.Forge = "github"
		for top, forge := range fleetrepo.Forges {
			if _, err := os.Stat(filepath.Join(dir, top)); err == nil && (forge != "github" || u.Forge == "github") {
				u.Forge = forge
			}
		}
	}
	p, err := PinOf(cmp.Or(releases, lock.Choices[choiceReleases]))
	if err != nil {
		return u, err
	}
	files, err := named(u.Forge, id, p)
	if err != nil {
		return u, err
	}
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return isSample(name) })
	u.Outcome, err = laid.Merge(dir, Lock, Base, files, u.To, choices(u.Forge, id, p))
	if err != nil {
		return u, fmt.Errorf("update the fleet repo: %w", err)
	}
	return u, nil
}

// fleetID is the form of a fleet's id.
var fleetID = regexp.MustCompile(`^[a-v][0-9a-v]{9}$`)

// plausible is an error for a lock that says what no init wrote: everybody who may write to
// the repository may have edited it.
func plausible(lock laid.Lock, id string) error {
	remedy := "take " + Lock + " from the repository's history"
	if id != "" && !fleetID.MatchString(id) {
		return hints.On(fmt.Errorf("%s names the fleet %q, which is no fleet's id", Lock, id), remedy)
	}
	for name := range lock.Files {
		if isSample(name) || slices.Contains(strings.Split(name, "/"), ".git") {
			return hints.On(fmt.Errorf("%s lists %q, which is none of the template's files", Lock, name), remedy)
		}
	}
	return nil
}

func isSample(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return slices.Contains(samples, top)
}

// Vacant is an error when a directory has anything that is not allowed.
func Vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the fleet repo: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "fleet.yaml")); err == nil {
		return hints.On(fmt.Errorf("%s is not empty: it is a fleet repo already", dir), "bring it to this version: fleetbroker init --update "+dir)
	}
	for _, e := range entries {
		if !allowed.MatchString(e.Name()) {
			return hints.On(fmt.Errorf("%s is not empty: it has %s", dir, e.Name()), "name a new directory, or a repository with a README and a licence alone; init changes nothing that exists")
		}
	}
	return nil
}

// named is the fleet repo for a forge with this program's version and the fleet's id.
func named(forge, id string, p Pin) (map[string][]byte, error) {
	files, err := Files(forge)
	if err != nil {
		return nil, err
	}
	p.into(files)
	Name(files, id)
	return files, nil
}

// Name puts the fleet's id into the names that the install bases give in a cluster.
func Name(files map[string][]byte, id string) {
	for file, text := range files {
		if strings.HasPrefix(file, "install/") {
			files[file] = manifests.NameInstall(id, text)
		}
	}
}

// Files is the template for a forge, by path, with the schemas and the reference of their
// fields.
func Files(forge string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(fleetrepo.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		top, _, _ := strings.Cut(name, "/")
		if only, ok := fleetrepo.Forges[top]; ok && only != forge {
			return nil
		}
		out[name], err = fleetrepo.Files.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	err = fs.WalkDir(schemas.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		out[path.Join(schemaDir, path.Base(name))], err = schemas.Files.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the schemas: %w", err)
	}
	pages, err := fs.Glob(schemas.Docs, "docs/*.md")
	if err != nil {
		return nil, fmt.Errorf("read the reference pages: %w", err)
	}
	for _, name := range pages {
		text, err := schemas.Docs.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the reference pages: %w", err)
		}
		out[path.Join(referenceDir, path.Base(name))] = []byte(neighbours.Replace(string(text)))
	}
	return out, nil
}
