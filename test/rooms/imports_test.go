package rooms

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the prefix of the project's own import paths.
const module = "github.com/fleetbroker/fleetbroker/"

// pkg is what `go list` says of a package.
type pkg struct {
	ImportPath, Name, Doc, Dir string
	GoFiles, Imports, Deps     []string
	TestGoFiles, XTestGoFiles  []string
}

// room is where a package belongs: the first directory under internal, or the
// first of the path ("cmd", "test").
func room(importPath string) string {
	path, ours := strings.CutPrefix(importPath, module)
	if !ours {
		return ""
	}
	parts := strings.Split(path, "/")
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[1]
	}
	return parts[0]
}

// rooms are the distinct rooms of some import paths, without those that the
// rules do not concern.
func rooms(importPaths []string) []string {
	var found []string
	for _, path := range importPaths {
		if r := room(path); r != "" {
			found = append(found, r)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// narrow rooms may reach only those named.
var narrow = map[string][]string{
	"api":       {},
	"forge":     {},
	"review":    {"api", "fleet", "ledger", "planner"},
	"ledger":    {"api"},
	"manifests": {"api"},
	"notify":    {"api", "ledger"},
	"planner":   {"api", "ledger"},
}

// outside are the rooms that touch the world, each in its own way; wide rooms
// may join them.
var (
	outside = []string{"delivery", "gitrepo", "market"}
	wide    = []string{"cli", "cmd", "reconciler", "server"}
)

// floors are the packages of the planner, the lowest first: each imports only
// those that come before it. Those of tests alone stand on top.
var floors = []string{
	"planner/quantity", "planner/keys", "planner/nodes", "planner/inventory", "planner/alike", "planner/lacking", "planner/tariff", "planner/stranded", "planner/match", "planner/scarcity", "planner/account", "planner/lifecycle", "planner/batch", "planner/domain", "planner/parts", "planner/booking", "planner/draft", "planner/bulk", "planner/looks", "planner/layout", "planner/said", "planner/rules", "planner/seating", "planner/place", "planner/joint", "planner/formulate", "planner/ahead", "planner/settle", "planner/consolidate", "planner/contend", "planner/explain", "planner/beyond", "planner/invariant", "planner", "planner/report", "planner/plantest", "planner/sealed",
}

// floor is where a package stands among the planner's, -1 for others and for one
// that has no place yet.
func floor(importPath string) int {
	return slices.Index(floors, strings.TrimPrefix(importPath, module+"internal/"))
}

// climbs are the imports by which a package of the planner reaches up.
func climbs(p pkg) []string {
	if room(p.ImportPath) != "planner" {
		return nil
	}
	at := floor(p.ImportPath)
	if at < 0 {
		return []string{"has no place in the order of the planner's packages (floors)"}
	}
	var broken []string
	for _, path := range p.Imports {
		if room(path) == "planner" && floor(path) >= at {
			broken = append(broken, floors[at]+" imports "+floors[floor(path)]+", which stands above it")
		}
	}
	return broken
}

// violations are the rules a package breaks, in words.
func violations(p pkg) []string {
	own := room(p.ImportPath)
	if own == "test" {
		return nil
	}
	broken := climbs(p)
	reached := slices.DeleteFunc(rooms(p.Deps), func(r string) bool { return r == own })
	if allowed, ok := narrow[own]; ok {
		for _, r := range reached {
			if !slices.Contains(allowed, r) {
				broken = append(broken, own+" reaches "+r)
			}
		}
	}
	if !slices.Contains(wide, own) {
		known := slices.DeleteFunc(append(reached, own), func(r string) bool { return !slices.Contains(outside, r) })
		if len(known) > 1 {
			broken = append(broken, own+" knows "+strings.Join(known, " and "))
		}
	}
	if own != "cli" && own != "cmd" && own != "reconciler" && slices.Contains(rooms(p.Imports), "reconciler") {
		broken = append(broken, own+" imports reconciler")
	}
	if slices.Contains(reached, "test") && !slices.Contains([]string{"cli", "cmd"}, own) {
		broken = append(broken, own+" reaches test; only cli may, for the demo")
	}
	return broken
}

func TestImportRule(t *testing.T) {
	for _, p := range packages(t) {
		for _, broken := range violations(p) {
			t.Errorf("%s: %s", p.ImportPath, broken)
		}
	}
}

// The rule itself, on packages made up for it.
func TestImportRuleFindsViolations(t *testing.T) {
	in := func(path string, deps ...string) pkg {
		p := pkg{ImportPath: module + path}
		for _, dep := range deps {
			p.Deps = append(p.Deps, module+dep)
		}
		p.Imports = p.Deps
		return p
	}
	cases := map[string]struct {
		pkg  pkg
		want []string
	}{
		"a room's own packages":         {in("internal/api/tree", "internal/api/v1alpha1"), nil},
		"api imports a room":            {in("internal/api", "internal/ledger"), []string{"api reaches ledger"}},
		"planner may use both":          {in("internal/planner", "internal/api", "internal/ledger"), nil},
		"planner uses its lower floors": {in("internal/planner", "internal/planner/quantity"), nil},
		"a floor uses one above it":     {in("internal/planner/quantity", "internal/planner"), []string{"planner/quantity imports planner, which stands above it"}},
		"a package without a floor":     {in("internal/planner/attic"), []string{"has no place in the order of the planner's packages (floors)"}},
		"planner may not use a third":   {in("internal/planner", "internal/market"), []string{"planner reaches market"}},
		"market alone":                  {in("internal/market", "internal/api"), nil},
		"market knows git":              {in("internal/market", "internal/gitrepo/x"), []string{"market knows gitrepo and market"}},
		"a room knows two":              {in("internal/agent", "internal/gitrepo", "internal/delivery"), []string{"agent knows delivery and gitrepo"}},
		"reconciler knows all":          {in("internal/reconciler", "internal/gitrepo", "internal/delivery", "internal/market"), nil},
		"cli imports reconciler":        {in("internal/cli", "internal/reconciler", "test/env"), nil},
		"server imports reconciler":     {in("internal/server", "internal/reconciler"), []string{"server imports reconciler"}},
		"market imports a test's code":  {in("internal/market", "test/env"), []string{"market reaches test; only cli may, for the demo"}},
		"tests are exempt":              {in("test/e2e", "internal/gitrepo", "internal/market", "internal/reconciler"), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := violations(c.pkg)
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// packages lists all packages of the module, those with end-to-end tests only
// included.
func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := command(t, "go", "list", "-e", "-tags", "e2e",
		"-json=ImportPath,Name,Doc,Dir,GoFiles,Imports,Deps,TestGoFiles,XTestGoFiles", module+"...")
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	decoder := json.NewDecoder(strings.NewReader(out))
	for {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 2 {
		t.Fatalf("go list knows of %d packages only", len(all))
	}
	return all
}

// command runs a program at the top of the repository.
func command(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	return string(out), err
}

// What the programs are built of is theirs alone: what starts servers for tests and the
// demo makes directories as soon as it is linked, and an image has no place for them.
func TestProgramsAreBuiltWithoutTests(t *testing.T) {
	for _, p := range packages(t) {
		if room(p.ImportPath) != "cmd" || p.Name != "main" {
			continue
		}
		for _, dep := range p.Deps {
			if room(dep) == "test" || strings.HasSuffix(dep, "/envtest") || dep == "testing" {
				t.Errorf("%s reaches %s", p.ImportPath, dep)
			}
		}
	}
}
