// Package docs checks the repository's Markdown: what a relative link points
// at is there, its heading included, and diagrams are diagrams. Links to other
// hosts are not followed, because tests reach none.
package docs

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/fleetbroker/fleetbroker/internal/api/logs"
	"github.com/fleetbroker/fleetbroker/internal/monitoring"
)

// root is the top of the repository, seen from here.
const root = "../.."

// diagrams are the first words by which Mermaid knows what to draw.
var diagrams = []string{
	"classDiagram", "erDiagram", "flowchart", "gantt", "graph", "pie", "quadrantChart",
	"sequenceDiagram", "stateDiagram", "stateDiagram-v2", "timeline", "xychart-beta",
}

// page is what is checked of a Markdown file.
type page struct {
	links, anchors, mermaid []string
}

func TestMarkdown(t *testing.T) {
	paths := markdown(t)
	if len(paths) == 0 {
		t.Fatal("there is no Markdown at all")
	}
	for _, path := range paths {
		p := parse(t, path)
		for _, link := range p.links {
			if problem := broken(t, path, link); problem != "" {
				t.Errorf("%s: the link %s %s", path, link, problem)
			}
		}
		for _, diagram := range p.mermaid {
			word, _, _ := strings.Cut(strings.TrimSpace(diagram), "\n")
			word, _, _ = strings.Cut(strings.TrimSuffix(strings.TrimSpace(word), ";"), " ")
			if !slices.Contains(diagrams, word) || strings.Count(strings.TrimSpace(diagram), "\n") == 0 {
				t.Errorf("%s: a mermaid fence draws nothing: it begins with %q", path, word)
			}
		}
	}
}

// markdown lists the repository's Markdown files.
func markdown(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	paths := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	return slices.DeleteFunc(paths, func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err != nil // deleted but not yet committed
	})
}

func parse(t *testing.T, path string) page {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return parsePage(source)
}

// parsePage reads a Markdown text as GitHub does.
func parsePage(source []byte) page {
	var p page
	seen := map[string]int{}
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Link:
			p.links = append(p.links, string(node.Destination))
		case *ast.Image:
			p.links = append(p.links, string(node.Destination))
		case *ast.Heading:
			p.anchors = append(p.anchors, anchor(plain(node, source), seen))
		case *ast.FencedCodeBlock:
			if string(node.Language(source)) == "mermaid" {
				p.mermaid = append(p.mermaid, string(node.Lines().Value(source)))
			}
		}
		return ast.WalkContinue, nil
	})
	return p
}

// plain is the text of a node without its markup.
func plain(node ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if leaf, ok := n.(*ast.Text); ok && entering {
			b.Write(leaf.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// anchor is the fragment GitHub gives a heading: lower case, spaces as hyphens,
// punctuation dropped, repetitions numbered.
func anchor(heading string, seen map[string]int) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
	seen[slug]++
	if n := seen[slug]; n > 1 {
		return fmt.Sprintf("%s-%d", slug, n-1)
	}
	return slug
}

// broken says what is wrong with a link of a page, or nothing.
func broken(t *testing.T, path, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return "is no address: " + err.Error()
	case u.Scheme != "" || u.Host != "":
		return ""
	case strings.HasPrefix(u.Path, "/"):
		return "is absolute: make it relative to the page"
	}
	target := path
	if u.Path != "" {
		target = filepath.Join(filepath.Dir(path), filepath.FromSlash(u.Path))
	}
	if strings.HasPrefix(target, "..") {
		return "leaves the repository"
	}
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		return "points at nothing"
	}
	if u.Fragment == "" || !strings.HasSuffix(target, ".md") {
		return ""
	}
	if !slices.Contains(parse(t, target).anchors, u.Fragment) {
		return "points at a heading that is not there"
	}
	return ""
}

func TestParsePage(t *testing.T) {
	p := parsePage([]byte("# A `b`, c!\n\n## Twice\n\n## Twice\n\n[x](y.md#z \"t\") ![i](i.png) `[no](no.md)` [r]\n\n" +
		"```mermaid\nflowchart LR\n  a --> b\n```\n\n```\n[no](no.md)\n```\n\n[r]: ref.md\n"))
	if want := []string{"a-b-c", "twice", "twice-1"}; !slices.Equal(p.anchors, want) {
		t.Errorf("got the anchors %q, want %q", p.anchors, want)
	}
	if want := []string{"y.md#z", "i.png", "ref.md"}; !slices.Equal(p.links, want) {
		t.Errorf("got the links %q, want %q", p.links, want)
	}
	if len(p.mermaid) != 1 || !strings.HasPrefix(p.mermaid[0], "flowchart LR\n") {
		t.Errorf("got the diagrams %q", p.mermaid)
	}
}

func TestBrokenLinks(t *testing.T) {
	cases := map[string]string{
		"README.md":                        "",
		"#liqos-customresourcedefinitions": "",
		"../doc.go":                        "",
		"https://example.org/none":         "",
		"none.md":                          "points at nothing",
		"README.md#none":                   "points at a heading that is not there",
		"/README.md":                       "is absolute: make it relative to the page",
		"../../../../none":                 "leaves the repository",
	}
	for link, want := range cases {
		if got := broken(t, "test/env/crds/README.md", link); got != want {
			t.Errorf("%s: got %q, want %q", link, got, want)
		}
	}
}

// Each alert leads to an entry of the runbook.
func TestAlertsLeadToTheRunbook(t *testing.T) {
	const runbook = "fleet-repo-template/docs/runbook.md"
	for _, a := range monitoring.Alerts() {
		if problem := broken(t, runbook, "#"+a.Entry); problem != "" {
			t.Errorf("alert %s: #%s %s", a.Name, a.Entry, problem)
		}
	}
}

// alertNames are alerts as the runbook names them.
var alertNames = regexp.MustCompile("`((?:Fleetbroker|FleetAgent)[A-Z][A-Za-z]+)`")

// noAlarm is how an entry of the runbook says why no program sends anybody there: what is
// done by hand, and what intents, contracts and pods show by themselves.
const noAlarm = "\n**Alarm** none: "

// Each entry of the runbook is where an alert or a line of the log leads to, or says why none
// can be; each of those is an entry, and each alert that the runbook names exists.
func TestRunbookIsLed(t *testing.T) {
	const runbook = "fleet-repo-template/docs/runbook.md"
	led := map[string]string{}
	for _, a := range monitoring.Alerts() {
		led[a.Entry] = a.Name
	}
	codes := map[string]bool{}
	for _, e := range logs.Events() {
		codes[e.Code] = true
	}
	for code, entries := range logs.Runbook() {
		if !codes[code] {
			t.Errorf("runbook.txt: there is no event %s", code)
		}
		for _, entry := range entries {
			led[entry] = code
			if problem := broken(t, runbook, "#"+entry); problem != "" {
				t.Errorf("%s: #%s %s", code, entry, problem)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(runbook)))
	if err != nil {
		t.Fatal(err)
	}
	entries, seen := map[string]bool{}, map[string]int{}
	for part := range strings.SplitSeq("\n"+string(text), "\n## ") {
		heading, body, _ := strings.Cut(part, "\n")
		if len(entries) == 0 && strings.HasPrefix(strings.TrimSpace(part), "# ") {
			continue // what stands before the first entry
		}
		entry := anchor(strings.ReplaceAll(heading, "`", ""), seen)
		entries[entry] = true
		if without := strings.Contains("\n"+body, noAlarm); (led[entry] == "") != without {
			t.Errorf("#%s: %s leads there, and it says why no alert and no line of the log does: %v", entry, cmp.Or(led[entry], "nothing"), without)
		}
	}
	for _, name := range alertNames.FindAllStringSubmatch(string(text), -1) {
		if !slices.ContainsFunc(monitoring.Alerts(), func(a monitoring.Alert) bool { return a.Name == name[1] }) {
			t.Errorf("the runbook names the alert %s, which does not exist", name[1])
		}
	}
	if len(entries) < 60 {
		t.Errorf("%d entries", len(entries))
	}
}
