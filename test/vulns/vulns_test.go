package vulns

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/servers.txt")

const root = "../.."

func reports(t *testing.T) []Report {
	t.Helper()
	list, err := Read("testdata/osv.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 400 {
		t.Fatalf("the pinned database holds %d reports, which is not all of it", len(list))
	}
	return list
}

// against are the reports that stand against modules at their versions, as
// lines; a package that linked does not hold takes a report away.
func against(list []Report, modules map[string]string, linked map[string]bool) []string {
	var out []string
	for _, r := range list {
		for _, a := range r.Affected {
			version, ok := modules[a.Package.Name]
			if !ok {
				continue
			}
			in, fixed := a.At(version)
			if in && (linked == nil || len(a.Specific.Imports) == 0 || slices.ContainsFunc(a.Specific.Imports, func(i Import) bool { return linked[i.Path] })) {
				out = append(out, fmt.Sprintf("%s %s %s fixed in %s: %s", r.ID, a.Package.Name, version, cmp.Or(fixed, "no version"), r.Summary))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// No report stands against a package that the programs or their tests link, at
// the version that go.mod asks for, nor against the Go that builds them.
func TestNoReportStandsAgainstThePrograms(t *testing.T) {
	modules, err := Required(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	goVersion, err := command(root, "go", "env", "GOVERSION")
	if err != nil {
		t.Fatal(err)
	}
	version := "v" + strings.TrimPrefix(strings.Fields(string(goVersion))[0], "go")
	modules["stdlib"], modules["toolchain"] = version, version
	deps, err := command(root, "go", "list", "-deps", "-test", "-tags", "e2e", "./...")
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for path := range strings.FieldsSeq(string(deps)) {
		linked[path] = true
	}
	for _, line := range against(reports(t), modules, linked) {
		t.Error(line)
	}
}

// What stands against modules of the test servers is known. They listen on the
// loopback interface for the time of a test; their versions are those of the
// releases that the project is tried with.
func TestReportsAgainstTestServersAreKnown(t *testing.T) {
	all, err := Modules(root)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, path := range all[1:] {
		modules, err := Required(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range against(reports(t), modules, nil) {
			fmt.Fprintf(&got, "%s: %s\n", filepath.Base(filepath.Dir(path)), line)
		}
	}
	const golden = "testdata/servers.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s is not what stands against the servers now: read what is new, raise what can be, and run the test with -update\n%s", golden, got.String())
	}
}

// Versions that had a published report are found, so that the comparison itself
// is known to work.
func TestOldVersionsAreFound(t *testing.T) {
	for module, old := range map[string]string{
		"golang.org/x/crypto": "v0.47.0", "golang.org/x/net": "v0.38.0", "github.com/go-git/go-git/v5": "v5.19.1",
		"google.golang.org/grpc": "v1.71.0", "github.com/google/cel-go": "v0.29.2", "stdlib": "v1.25.0",
	} {
		if len(against(reports(t), map[string]string{module: old}, nil)) == 0 {
			t.Errorf("nothing stands against %s %s", module, old)
		}
	}
}

// Advisories that the Go database does not hold yet, each with its source: a
// module's first version without it.
var further = map[string]struct{ fixed, source string }{
	"google.golang.org/grpc":          {"v1.85.0", "CVE-2026-84304, CVE-2026-84445: release notes of v1.85.0"},
	"github.com/ProtonMail/go-crypto": {"v1.5.2", "its newest release, with the fixes since v1.1.6"},
}

func TestFurtherAdvisories(t *testing.T) {
	modules, err := Required(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for module, f := range further {
		if v := modules[module]; v != "" && older(v, f.fixed) {
			t.Errorf("go.mod asks for %s %s; raise it to %s (%s)", module, v, f.fixed, f.source)
		}
	}
}

func older(a, b string) bool {
	in, _ := Affected{Ranges: []Range{{Events: []Event{{Introduced: "0"}, {Fixed: strings.TrimPrefix(b, "v")}}}}}.At(a)
	return in
}

// The pinned part can be laid out as the database that govulncheck reads.
func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	url, err := Unpack("testdata/osv.jsonl", dir)
	if err != nil || url != "file://"+dir {
		t.Fatalf("%s, %v", url, err)
	}
	index, err := os.ReadFile(filepath.Join(dir, "index/modules.json"))
	if err != nil || !regexp.MustCompile(`"path":"golang.org/x/crypto"`).Match(index) {
		t.Errorf("%.200s, %v", index, err)
	}
}
