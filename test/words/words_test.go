// Package words holds texts that people read to a list of words that stay out: dialect, and
// turns of phrase that say less than a plain word. It is the project's word list for
// errors, help, logs and pages; each entry says what to write instead.
//
// Read are the string literals of the programs' packages and the Markdown pages for users.
// Not read are tests, comments, generated files, what is persisted in ledgers (package
// planner, which tests of its own hold to its recorded decisions), and the reference pages.
package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// leave is what stays out, and what to write in its place. A pattern is a regular
// expression without regard to case.
var leave = []struct{ pattern, instead string }{
	{`\banew\b`, "again"},
	{`\bonce more\b`, "again"},
	{`\bholds good\b`, "applies"},
	{`\b(lay|lays|laid) down\b`, "create, write"},
	{`\bmend(s|ed|ing)?\b`, "fix, repair"},
	{`\bfor ever\b`, "permanently, until deleted"},
	{`\byet to come\b`, "in the future"},
	{`\bno time at all\b`, "must be greater than zero"},
	{`\bof the first form\b`, "v1"},
	{`\bis due here\b`, "is expected here"},
	{`\bsomebody else\b`, "another account"},
	{`\b(somebody|nobody) who may\b`, "an authorised account, no authorised account"},
	{`\bdear(er|est)?\b`, "expensive, more expensive, most expensive"},
	{`\bspeaks? against\b`, "why it was rejected"},
	{`\bgo(es)? unheard\b`, "does not report"},
	{`\b(nobody|no broker|agents?|providers?) (is|are) (not )?heard\b`, "no report is taken, does not report"},
	{`\b(has|have) (not told|told nothing)\b`, "did not report"},
	{`\bcannot be told from\b`, "cannot determine"},
	{`\bfor another day\b`, "tried again tomorrow"},
	{`\btoo dear\b`, "over budget"},
	{`\bwiser\b`, "better, more exact"},
	{`\blet be\b`, "left alone"},
	{`\bstands? twice\b`, "is listed twice"},
	{`\bstands? (in|on) (files|line|the (same|comment|contract))\b`, "is in, is on"},
	{`\bbeside\b`, "next to"},
	{`\btells? of\b`, "reports, shows"},
	{`\bover there\b`, "name the place"},
	{`\bthis (page|command|file) (tells|says) you\b`, "show it"},
	{`\bshadow mode\b`, "dry run"},
}

// allowed are texts that have such a word and keep it: names, formats that are fixed, and
// headings that links lead to.
var allowed = []string{
	"beside-flux",               // an example's directory
	"## Beside Flux or Argo CD", // the guide's heading
	"# Beside Flux",
	"tells of its pods",                       // a reason that ledgers keep
	"decision.dearest", `"dearest,omitempty"`, // a field that ledgers keep
	"a file beside the daemon, never in the fleet repo (`--trust-root`)", // in schemas that are published
	"Keep it beside the daemon and\n# the auditor",                       // in trust roots that were written
}

// found are the words of a text that stay out, with what to write.
func found(text string) (out []string) {
	for _, ok := range allowed {
		text = strings.ReplaceAll(text, ok, "")
	}
	for i, l := range leave {
		if m := patterns[i].FindString(text); m != "" {
			out = append(out, strconv.Quote(m)+": write "+l.instead)
		}
	}
	return out
}

var patterns = func() (out []*regexp.Regexp) {
	for _, l := range leave {
		out = append(out, regexp.MustCompile(`(?i)`+l.pattern))
	}
	return out
}()

func TestWords(t *testing.T) {
	texts := 0
	for where, text := range literals(t) {
		texts++
		for _, word := range found(text) {
			t.Errorf("%s has %s", where, word)
		}
	}
	lines := 0
	for where, text := range pages(t) {
		lines++
		for _, word := range found(text) {
			t.Errorf("%s has %s", where, word)
		}
	}
	if texts < 5000 || lines < 3000 {
		t.Errorf("only %d texts and %d lines were read", texts, lines)
	}
}

// The list finds what it lists, and lets plain words be.
func TestFound(t *testing.T) {
	for text, want := range map[string]int{
		"mend it first: fleetbroker validate":              1,
		"Liqo makes the namespace anew, for ever":          2,
		"the same key stands twice, beside the other":      2,
		"let somebody who may sign it":                     1,
		"it is fixed again, next to the daemon":            0,
		"recommend, amended, dearth, besides, understands": 0,
		"see examples/beside-flux":                         0,
	} {
		if got := found(text); len(got) != want {
			t.Errorf("%q: got %q, want %d", text, got, want)
		}
	}
}

// literals are the string literals of the programs' packages, by where they are.
func literals(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	walk(t, []string{"../../cmd", "../../internal"}, ".go", func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../../internal/planner/") || strings.Contains(path, "/forgetest/") {
			return
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(file) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil {
					out[strings.TrimPrefix(set.Position(l.Pos()).String(), "../../")] = text
				}
			}
			return true
		})
	})
	return out
}

// pages are the lines of the Markdown pages for users, by where they are.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	walk(t, []string{"../../README.md", "../../fleet-repo-template", "../../examples"}, ".md", func(path string) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(content), "\n") {
			out[strings.TrimPrefix(path, "../../")+":"+strconv.Itoa(i+1)] = line
		}
	})
	return out
}

func walk(t *testing.T, roots []string, ext string, visit func(path string)) {
	t.Helper()
	for _, root := range roots {
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(path) == ext {
				visit(filepath.ToSlash(path))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
