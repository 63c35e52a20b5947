package vulns

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Report is one of the database (schema OSV), as far as it is read here.
type Report struct {
	ID        string     `json:"id"`
	Aliases   []string   `json:"aliases"`
	Summary   string     `json:"summary"`
	Modified  time.Time  `json:"modified"`
	Withdrawn string     `json:"withdrawn"`
	Affected  []Affected `json:"affected"`
}

// Affected is a module of a report.
type Affected struct {
	Package struct {
		Name string `json:"name"`
	} `json:"package"`
	Ranges   []Range `json:"ranges"`
	Specific struct {
		Imports []Import `json:"imports"`
	} `json:"ecosystem_specific"`
}

// Range is versions, as events in order.
type Range struct {
	Events []Event `json:"events"`
}

// Event begins or ends the affected versions.
type Event struct {
	Introduced string `json:"introduced,omitempty"`
	Fixed      string `json:"fixed,omitempty"`
}

// Import is an affected package.
type Import struct {
	Path string `json:"path"`
}

// At reports whether a version ("v1.2.3") is in a range, and the version that
// ends the range: empty where none is known.
func (a Affected) At(version string) (in bool, fixed string) {
	for _, r := range a.Ranges {
		in, fixed = false, ""
		for _, e := range r.Events {
			switch {
			case e.Introduced == "0" || e.Introduced != "" && semver.Compare(version, "v"+e.Introduced) >= 0:
				in = true
			case e.Fixed != "" && semver.Compare(version, "v"+e.Fixed) >= 0:
				in = false
			case e.Fixed != "" && in && fixed == "":
				fixed = e.Fixed
			}
		}
		if in {
			return true, fixed
		}
	}
	return false, ""
}

// Read reads reports, one a line.
func Read(path string) ([]Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []Report
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if r.Withdrawn == "" {
			out = append(out, r)
		}
	}
	return out, lines.Err()
}

// Unpack lays the reports of a file out as a database that govulncheck reads
// (go.dev/doc/security/vuln/database) and returns its URL.
func Unpack(path, dir string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	type vuln struct {
		ID       string    `json:"id"`
		Modified time.Time `json:"modified"`
		Fixed    string    `json:"fixed,omitempty"`
	}
	type module struct {
		Path  string `json:"path"`
		Vulns []vuln `json:"vulns"`
	}
	var modules []module
	var all []vuln
	files := map[string][]byte{}
	for line := range bytes.Lines(data) {
		var r Report
		if err := json.Unmarshal(line, &r); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		files["ID/"+r.ID+".json"] = line
		all = append(all, vuln{ID: r.ID, Modified: r.Modified})
		for _, a := range r.Affected {
			i := slices.IndexFunc(modules, func(m module) bool { return m.Path == a.Package.Name })
			if i < 0 {
				i, modules = len(modules), append(modules, module{Path: a.Package.Name})
			}
			modules[i].Vulns = append(modules[i].Vulns, vuln{ID: r.ID, Modified: r.Modified})
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	for name, v := range map[string]any{"index/modules.json": modules, "index/vulns.json": all, "index/db.json": map[string]time.Time{"modified": time.Unix(0, 0).UTC()}} {
		if files[name], err = json.Marshal(v); err != nil {
			return "", err
		}
	}
	for name, content := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return "", err
		}
	}
	return "file://" + filepath.ToSlash(dir), nil
}

// Required are the modules that a go.mod names, by path, what replaces one in
// its place.
func Required(goMod string) (map[string]string, error) {
	out, err := command(filepath.Dir(goMod), "go", "mod", "edit", "-json", filepath.Base(goMod))
	if err != nil {
		return nil, err
	}
	var m struct {
		Require []struct{ Path, Version string }
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", goMod, err)
	}
	modules := map[string]string{}
	for _, r := range m.Require {
		modules[r.Path] = r.Version
	}
	for _, r := range m.Replace {
		if _, ok := modules[r.Old.Path]; ok && r.New.Version != "" {
			delete(modules, r.Old.Path)
			modules[r.New.Path] = r.New.Version
		}
	}
	return modules, nil
}
