package rooms

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines is how long a file of Go code may be before it surely has a second
// subject.
const maxLines = 600

// maxPackage is how many lines of code a package may have, without its tests and its
// package comment (doc.go);
// large are those that have more, with how many. These figures may only fall:
// what makes one grow belongs into a package of its own.
const maxPackage = 4000

var large = map[string]int{
	"internal/audit":      4060,
	"internal/cli":        8850,
	"internal/delivery":   4837,
	"internal/fleet":      5320,
	"internal/gitrepo":    7580,
	"internal/reconciler": 5410,
}

// slack is by how much a large package may have fallen below its figure before
// the figure has to follow.
const slack = 100

func TestPackagesStaySmall(t *testing.T) {
	for _, p := range packages(t) {
		if room(p.ImportPath) == "test" {
			continue
		}
		lines := 0
		for _, name := range p.GoFiles {
			if name == "doc.go" {
				continue // a comment
			}
			b, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(b, []byte("// Code generated")) {
				lines += bytes.Count(b, []byte("\n"))
			}
		}
		path := strings.TrimPrefix(p.ImportPath, module)
		switch most, listed := large[path]; {
		case !listed && lines > maxPackage:
			t.Errorf("%s has %d lines, want at most %d: split it by subject", path, lines, maxPackage)
		case listed && lines > most:
			t.Errorf("%s has grown to %d lines, from %d: move what is new into a package of its own", path, lines, most)
		case listed && lines < most-slack:
			t.Errorf("%s has fallen to %d lines: write that into `large`, in place of %d", path, lines, most)
		}
	}
}

// topLevel are the names allowed at the top of the repository, besides those
// that begin with a dot.
var topLevel = []string{
	"cmd", "internal", "schemas", "examples", "fleet-repo-template", "test",
	"go.mod", "go.sum", "Makefile", "README.md", "LICENSE",
}

func TestTopLevel(t *testing.T) {
	for _, path := range files(t) {
		first, _, _ := strings.Cut(path, "/")
		if !strings.HasPrefix(first, ".") && !slices.Contains(topLevel, first) {
			t.Errorf("%s: %q does not belong at the top level", path, first)
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		switch doc := comment(t, p); {
		case doc == "":
			t.Errorf("%s has no package comment", p.ImportPath)
		case p.Name == "main" && !strings.HasPrefix(doc, "Command "):
			t.Errorf("%s: the package comment begins %.40q, want \"Command %s …\"", p.ImportPath, doc, filepath.Base(p.Dir))
		case p.Name != "main" && len(p.GoFiles) > 0 && !strings.HasPrefix(doc, "Package "+p.Name+" "):
			t.Errorf("%s: the package comment begins %.40q, want \"Package %s …\"", p.ImportPath, doc, p.Name)
		}
	}
}

// A package has a package comment or a README, not both: two pages of one subject come to
// differ. Where there is a doc.go, that is what Go's readers find.
func TestOneDocumentPerPackage(t *testing.T) {
	seen := 0
	for _, p := range packages(t) {
		if _, err := os.Stat(filepath.Join(p.Dir, "README.md")); err != nil {
			continue
		}
		if seen++; slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has doc.go and README.md: put what only the README says into doc.go", p.ImportPath)
		}
	}
	if seen == 0 {
		t.Error("no package has a README: is it looked for in the right place?")
	}
}

// community are the files by which a repository meets those who come to it; each is
// there, and what it links to is too.
var community = []string{
	".editorconfig", ".github/CHANGELOG.md", ".github/CODEOWNERS", ".github/CONTRIBUTING.md", ".github/SECURITY.md", ".github/dependabot.yml",
	".github/pull_request_template.md", ".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/config.yml", ".github/ISSUE_TEMPLATE/feature.yml",
}

// target is a link of a Markdown page to a file, or a path between backticks that is
// one of the repository's; makeTarget is one of the Makefile's.
var (
	link       = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	quotedPath = regexp.MustCompile("`((?:cmd|internal|test|schemas|examples|fleet-repo-template)/[a-zA-Z0-9_./-]+)`")
	makeTarget = regexp.MustCompile("make ([a-z-]+(?: [a-z-]+)*)`")
)

func TestCommunityFilesAreThereAndTrue(t *testing.T) {
	makefile := read(t, "Makefile")
	checked := 0
	exists := func(in, path string) {
		t.Helper()
		checked++
		if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
			t.Errorf("%s names %s, which does not exist", in, path)
		}
	}
	for _, name := range community {
		text := read(t, name)
		if strings.TrimSpace(text) == "" {
			t.Errorf("%s is empty", name)
		}
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			exists(name, filepath.Join(filepath.Dir(name), m[1]))
		}
		for _, m := range quotedPath.FindAllStringSubmatch(text, -1) {
			exists(name, m[1])
		}
		for _, m := range regexp.MustCompile("`([a-z_]+\\.go)`").FindAllStringSubmatch(text, -1) {
			checked++
			if !slices.ContainsFunc(files(t), func(path string) bool { return filepath.Base(path) == m[1] }) {
				t.Errorf("%s names %s, which is nowhere", name, m[1])
			}
		}
		for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
			for target := range strings.FieldsSeq(m[1]) {
				checked++
				if !regexp.MustCompile(`(?m)^` + target + `[ :]`).MatchString(makefile) {
					t.Errorf("%s says make %s, which the Makefile does not have", name, target)
				}
			}
		}
	}
	for line := range strings.Lines(read(t, ".github/CODEOWNERS")) {
		if words := strings.Fields(line); len(words) > 1 && strings.HasPrefix(words[0], "/") {
			exists(".github/CODEOWNERS", words[0])
		}
	}
	if checked < 30 {
		t.Errorf("only %d names were checked", checked)
	}
}

// comment is the package comment; a package of tests only has it in one of
// them.
func comment(t *testing.T, p pkg) string {
	t.Helper()
	if p.Doc != "" || len(p.GoFiles) > 0 {
		return p.Doc
	}
	for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if doc := file.Doc.Text(); doc != "" {
			return doc
		}
	}
	return ""
}

// Paths of one person's machine mean nothing on another's. They are put
// together here so that this file does not find itself.
var machinePath = regexp.MustCompile("(^|[\\s\"'`(=:])/(" + strings.Join([]string{"work", "root", "home", "Users"}, "|") + `)/\w`)

// unfinished marks what somebody meant to come back to.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func TestNoMachinePaths(t *testing.T) {
	for _, path := range files(t) {
		if found := machinePath.FindString(read(t, path)); found != "" {
			t.Errorf("%s names a path of one machine: %q…", path, strings.TrimSpace(found))
		}
	}
}

func TestGoFilesAreShortAndFinished(t *testing.T) {
	for _, path := range files(t) {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		text := read(t, path)
		if found := unfinished.FindString(text); found != "" {
			t.Errorf("%s says %q: finish it, or open an issue", path, found)
		}
		generated := strings.HasPrefix(filepath.Base(path), "zz_generated") || strings.HasSuffix(path, "_test.go")
		if lines := strings.Count(text, "\n"); lines > maxLines && !generated {
			t.Errorf("%s has %d lines, more than %d: is there a second subject in it?", path, lines, maxLines)
		}
	}
}

// files lists the repository's files, without those it ignores and those
// copied from elsewhere.
func files(t *testing.T) []string {
	t.Helper()
	out, err := command(t, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimRight(out, "\x00"), "\x00"), func(path string) bool {
		return strings.HasPrefix(path, "test/env/crds/") || !regular(path)
	})
}

// regular leaves out what is listed but deleted, and links.
func regular(path string) bool {
	info, err := os.Lstat(filepath.Join("../..", path))
	return err == nil && info.Mode().IsRegular()
}

// read returns a file's text; nothing if it is not text.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return ""
	}
	return string(data)
}
