package logs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "give new messages a code, and write the page")

const (
	root = "../../.."
	page = root + "/fleet-repo-template/docs/logs.md"
)

// call is a place in the code that writes a line.
type call struct {
	at, level, message string
	keys               []string
}

// levels of the methods that write. complain is one of the planner's that logs errors.
var levels = map[string]string{
	"Debug": "debug", "DebugContext": "debug", "Info": "info", "InfoContext": "info", "Warn": "warning", "WarnContext": "warning", "Error": "error", "ErrorContext": "error", "complain": "error", "Log": "by its severity",
}

// aKey is a key of a line: one word, as Kubernetes writes them.
var aKey = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

var aLog = regexp.MustCompile(`(?i)(^|\.)(log|slog|to|p)$`)

// calls are all places that write a line, in the order of files.
func calls(t *testing.T) []call {
	t.Helper()
	var out []call
	for _, dir := range []string{"internal", "cmd"} {
		if err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == "testdata" {
				return errOr(err, fs.SkipDir)
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					if found := callOf(t, set, c); found != nil {
						out = append(out, *found)
					}
				}
				return true
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// callOf is what a call writes, nil where it is none of a log.
func callOf(t *testing.T, set *token.FileSet, c *ast.CallExpr) *call {
	t.Helper()
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || levels[sel.Sel.Name] == "" || len(c.Args) == 0 {
		return nil
	}
	var on bytes.Buffer
	writeExpr(&on, sel.X)
	if !aLog.MatchString(on.String()) {
		return nil
	}
	first := 0
	switch sel.Sel.Name {
	case "Log":
		first = 2
	case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
		first = 1
	}
	if len(c.Args) <= first {
		return nil
	}
	at := set.Position(c.Pos()).String()
	message, ok := text(c.Args[first])
	if !ok {
		if name, isName := c.Args[first].(*ast.Ident); isName && name.Name == "message" && sel.Sel.Name == "Error" {
			return nil // complain itself
		}
		if strings.HasPrefix(on.String(), "p") || strings.HasSuffix(on.String(), "t") {
			return nil
		}
		t.Errorf("%s: the message is not a fixed text: put what differs into keys", at)
		return nil
	}
	out := &call{at: at, level: levels[sel.Sel.Name], message: message}
	for i := first + 1; i < len(c.Args); i += 2 {
		if key, ok := text(c.Args[i]); ok {
			if out.keys = append(out.keys, key); i+1 < len(c.Args) && isError(c.Args[i+1]) && key != "error" {
				t.Errorf("%s: an error is under %q: its key is \"error\"", at, key)
			}
		}
	}
	return out
}

// isError reports whether a value is an error, or its text, by how errors are named here.
func isError(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "err"
	case *ast.CallExpr:
		sel, ok := e.Fun.(*ast.SelectorExpr)
		return ok && (sel.Sel.Name == "Error" && isError(sel.X) || len(e.Args) == 1 && isError(e.Args[0]))
	}
	return false
}

func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

func writeExpr(b *bytes.Buffer, e ast.Expr) {
	switch e := e.(type) {
	case *ast.Ident:
		b.WriteString(e.Name)
	case *ast.SelectorExpr:
		writeExpr(b, e.X)
		b.WriteString("." + e.Sel.Name)
	case *ast.CallExpr:
		writeExpr(b, e.Fun)
		b.WriteString("()")
	}
}

// TestEvents: each message that the code writes has a code and stands on the page, each
// code is of a message that the code writes, and none is given twice; errors have one key.
func TestEvents(t *testing.T) {
	all := calls(t)
	if len(all) < 150 {
		t.Fatalf("only %d places write a line: are they looked for in the right way?", len(all))
	}
	levelsOf, places := map[string][]string{}, map[string][]string{}
	for _, c := range all {
		if slices.Contains(c.keys, "err") || slices.Contains(c.keys, "Err") {
			t.Errorf("%s: the key of an error is \"error\"", c.at)
		}
		for _, key := range c.keys {
			if !aKey.MatchString(key) {
				t.Errorf("%s: the key %q is not in camel case, as pullRequest is: with a blank it is no word of a line's text", c.at, key)
			}
		}
		if c.level == "debug" {
			continue
		}
		if strings.ContainsAny(c.message, "\n%") {
			t.Errorf("%s: %q has a value in it", c.at, c.message)
		}
		if !slices.Contains(levelsOf[c.message], c.level) {
			levelsOf[c.message] = append(levelsOf[c.message], c.level)
		}
		where := "daemon"
		if strings.HasPrefix(c.at, root+"/internal/agent") || strings.HasPrefix(c.at, root+"/cmd/fleet-agent") {
			where = "agent"
		}
		if !slices.Contains(places[c.message], where) {
			places[c.message] = append(places[c.message], where)
		}
	}
	events := slices.Clone(Events())
	if *update {
		events = numbered(events, all)
		var b strings.Builder
		for _, e := range events {
			fmt.Fprintf(&b, "%s %s\n", e.Code, e.Message)
		}
		if err := os.WriteFile("events.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seen, known := map[string]bool{}, map[string]bool{}
	var rows strings.Builder
	for _, e := range events {
		if seen[e.Code] || known[e.Message] || !regexp.MustCompile(`^FB\d{4}$`).MatchString(e.Code) {
			t.Errorf("%s %q: twice, or no code", e.Code, e.Message)
		}
		seen[e.Code], known[e.Message] = true, true
		if levelsOf[e.Message] == nil {
			t.Errorf("%s %q: nothing writes it; where it was worded otherwise, write the new words into events.txt at its code; where it is gone, delete the line and give its number to no other", e.Code, e.Message)
		}
		slices.Sort(levelsOf[e.Message])
		slices.Sort(places[e.Message])
		var entries []string
		for _, entry := range Runbook()[e.Code] {
			words, _, _ := strings.Cut(entry, "-notdelivered")
			entries = append(entries, fmt.Sprintf("[%s](runbook.md#%s)", strings.ReplaceAll(words, "-", " "), entry))
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s |\n", e.Code, strings.Join(levelsOf[e.Message], ", "), strings.Join(places[e.Message], ", "), strings.ReplaceAll(e.Message, "|", `\|`), strings.Join(entries, ", "))
	}
	for message := range levelsOf {
		if !known[message] {
			t.Errorf("%q has no code: go test ./internal/api/logs -update", message)
		}
	}
	want := head + rows.String()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("docs/logs.md does not list the codes as they are (%v): go test ./internal/api/logs -update", err)
	}
}

// numbered gives messages without a code the next ones.
func numbered(events []Event, all []call) []Event {
	next := 1000
	known := map[string]bool{}
	for _, e := range events {
		n, _ := strconv.Atoi(strings.TrimPrefix(e.Code, "FB"))
		next = max(next, n)
		known[e.Message] = true
	}
	for _, c := range all {
		if c.level != "debug" && !known[c.message] {
			next++
			events = append(events, Event{fmt.Sprintf("FB%d", next), c.message})
			known[c.message] = true
		}
	}
	return events
}

const head = `# Log lines

The daemon and the agent write one line an event, as text or as JSON (` + "`--log-format`" + `): a
fixed message, what differs in keys of one word (such as pullRequest), the event's code under ` + "`code`" + `, and an error under
` + "`error`" + `; with [traces](tracing.md) on, lines of a round have the trace's id under ` + "`trace`" + `.
A code stays when a message is worded otherwise, so that filters and alerts of
yours should go by it. Lines of libraries (Kubernetes' clients) have no
code; their errors are under ` + "`error`" + ` too.

A line that is equal to one of the last minute, with all its keys, is left out; the next one
that is written says under ` + "`repeated`" + ` how many were. Where none comes, the last of those left
out is written at the minute's end, or the process's, with its own time and the rest of them under ` + "`repeated`" + `:
lines and ` + "`repeated`" + ` add up to what happened. At debug (` + "`--verbose`" + `, of an agent
` + "`--log-level debug`" + `) debug lines are written too, which have no codes and all of which are
written. What to do about an alarm is in the [runbook](runbook.md).

| code | level | of | message | what to do |
|---|---|---|---|---|
`
