package hostile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	dom "golang.org/x/net/html"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	plans "github.com/fleetbroker/fleetbroker/internal/planner/report"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/internal/review"
)

// fixed are fields that no text of others reaches: they are checked where they are
// read, or name one of the program's own words.
var fixed = []string{"Currency", "Inputs", "Market", "Fingerprint"}

// fill puts a text into every field of a value that is a plain string, with one
// entry in each list and behind each pointer.
func fill(v reflect.Value, text string, depth int) {
	if depth == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !slices.Contains(fixed, f.Name) {
				fill(v.Field(i), text, depth-1)
			}
		}
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), text, depth-1)
		}
	case reflect.Slice:
		if kind := v.Type().Elem().Kind(); kind == reflect.String || kind == reflect.Struct || kind == reflect.Pointer {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), text, depth-1)
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]int]() {
			v.Set(reflect.ValueOf(map[string]int{text: 1}))
		}
	}
}

// actions are what a plan does with intents.
var actions = []planner.Action{
	planner.Place, planner.Keep, planner.Resize, planner.Move, planner.Release, planner.Preempt,
	planner.Queued, planner.Refuse, planner.Suspend, planner.Done, planner.Frozen, planner.Find,
}

// planOf is a plan in which every text is one text, a decision of each kind.
func planOf(text string) (*planner.Plan, plans.Meta) {
	p, m := &planner.Plan{}, plans.Meta{}
	fill(reflect.ValueOf(p).Elem(), text, 5)
	fill(reflect.ValueOf(&m).Elem(), text, 5)
	p.Currency, p.Intents, p.Unsettled = "EUR", nil, nil
	for i, a := range actions {
		d := &planner.Decision{}
		fill(reflect.ValueOf(d).Elem(), text, 5)
		d.Action, d.Path, d.Considered, d.Fitting, d.Position = a, fmt.Sprintf("%s%d", text, i), 3, 1, i
		for k := range d.Contracts {
			d.Contracts[k].Action, d.Contracts[k].Currency = a, "EUR"
		}
		p.Intents = append(p.Intents, d)
	}
	m.Errors = append(m.Errors, plans.Problem{File: text, Line: 3, Column: 1, Message: text}, plans.Problem{File: p.Intents[7].Path, Message: text})
	return p, m
}

// explained is an explanation in which every text is one text.
func explained(text string) *planner.Explanation {
	e := &planner.Explanation{}
	fill(reflect.ValueOf(e).Elem(), text, 6)
	e.Decision.Action = planner.Queued
	fits := e.Offers[0]
	fits.Fits = true
	e.Offers = append(e.Offers, fits)
	return e
}

// comments are what the program posts on a forge, with one text wherever one of
// others is said.
func comments(t *testing.T, side review.Side, text string) map[string]string {
	t.Helper()
	unverified := []review.Unverified{{Path: text, Author: text, Why: text}, {Path: "intents/vision/x.yaml", Author: text, Why: text}}
	wanted := []review.Wanted{{Tenant: text, Name: text, Path: text}, {Tenant: "vision", Name: text, Path: text + "x"}}
	p, m := planOf(text)
	reserved, _ := review.Reserved(wanted, ledger.Empty(), strings.Repeat("a", 40), p, unverified[1:])
	of := review.Of(review.Input{
		Branch: text, Signed: true, Signatures: text, Unverified: unverified, Before: side, After: side, Own: &side, OnceVerified: &side,
		Changes: review.Changes{Work: []string{text}, Policy: []string{text}, Generated: []string{text}, Other: []string{text}, Removed: []string{text}},
	})
	conflict := review.Of(review.Input{Branch: text, Conflicts: []string{text}})
	out := map[string]string{
		"the comment of a pull request": of.Comment, "the comment of a conflict": conflict.Comment,
		"the comment of a refusal": review.Refusal(tree.Hash{}, text).Comment,
		"the comment of a merge":   reserved, "the comment of a squash": review.Unsigned("", strings.Repeat("a", 40), unverified),
	}
	for what, draw := range map[string]func(io.Writer) error{
		"a plan in markdown": func(w io.Writer) error { return plans.Markdown(w, p, m, plans.MarkdownOptions{Limit: 1 << 22}) },
		"an explanation in markdown": func(w io.Writer) error {
			return plans.ExplainMarkdown(w, explained(text), plans.ExplainOptions{All: true})
		},
	} {
		var b strings.Builder
		if err := draw(&b); err != nil {
			t.Fatal(err)
		}
		out[what] = b.String()
	}
	for i, l := range of.Lines {
		out[fmt.Sprint("line ", i)] = l.Message
	}
	return out
}

// fenced is a block of code, which no forge looks into.
var fenced = regexp.MustCompile("(?ms)^(```+)(diff)?\n.*?^```+\n")

// marks counts the elements of a comment as a forge renders it, and what forges
// look for in the text of it.
func marks(t *testing.T, comment string) map[string]int {
	t.Helper()
	md := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList), goldmark.WithRendererOptions(html.WithUnsafe()))
	var b bytes.Buffer
	if err := md.Convert([]byte(comment), &b); err != nil {
		t.Fatal(err)
	}
	doc, err := dom.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for n := range doc.Descendants() {
		switch {
		case n.Type == dom.ElementNode:
			out["<"+n.Data+">"]++
			for _, a := range n.Attr {
				if a.Key != "align" && a.Key != "class" && a.Key != "style" {
					out["<"+n.Data+" "+a.Key+">"]++
				}
			}
		case n.Type == dom.CommentNode:
			out["<!-- -->"]++
		case n.Type == dom.TextNode && n.Parent.Data != "code":
			for name, what := range map[string]*regexp.Regexp{"mention": mention, "address": autolink} {
				if what.MatchString(n.Data) {
					out[name]++
				}
			}
		}
	}
	out["quick action"] = len(quickAction.FindAllString(fenced.ReplaceAllString(comment, ""), -1))
	return out
}

// orderly is the corpus' fleet, read and planned on.
func orderly(t *testing.T) review.Side {
	t.Helper()
	files := map[string][]byte{}
	for path, content := range Fleet() {
		files[path] = []byte(content)
	}
	f, err := fleet.NewReader().Read(t.Context(), tree.NewMemory().Build(files), nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	m := market.New(market.Options{Now: func() time.Time { return now }})
	m.SetInputs(market.Inputs{Fleet: f.Policy, Clusters: f.Clusters, Flavors: f.Flavors, Prices: f.Prices})
	return review.Side{Fleet: f, World: world.Build(world.Input{Now: v1alpha1.TimeOf(now), Fleet: f, Ledger: ledger.Empty(), Market: m.Snapshot()})}
}

// Whatever stands in a plan, an explanation or what is known of a pull request, the
// comments made of it have the elements that they have of plain words, and nobody is
// mentioned, nothing linked and no quick action run.
func TestTexts_CommentsShowThem(t *testing.T) {
	if raw := marks(t, "/merge\n\n@root www.evil.example <b>x</b>\n"); raw["mention"] == 0 || raw["quick action"] == 0 || raw["<a>"] == 0 || raw["<b>"] == 0 {
		t.Fatalf("what is not encoded has %v: this test would see nothing", raw)
	}
	side := orderly(t)
	want := map[string]map[string]int{}
	for what, comment := range comments(t, side, "plain") {
		want[what] = marks(t, comment)
	}
	if len(want) < 7 || want["a plan in markdown"]["<td>"] < 4*len(actions) || want["the comment of a pull request"]["<code>"] == 0 {
		t.Fatalf("the comments are too short to show anything: %v", want)
	}
	texts := Texts()
	for i, s := range texts {
		if strings.TrimSpace(s) == "" || len(s) > 300 || testing.Short() && i%20 != 0 {
			continue
		}
		for what, comment := range comments(t, side, s) {
			for line := range strings.SplitSeq(comment, "\n") {
				shown(t, what, s, strings.ReplaceAll(line, "\u200d", ""))
			}
			got := marks(t, comment)
			for mark, n := range got {
				if n > want[what][mark] {
					t.Errorf("%s: %q makes %d of %s, want %d\n%.3000s", what, s, n, mark, want[what][mark], comment)
				}
			}
		}
	}
}

// Whatever stands in a plan or an explanation, a terminal shows it.
func TestTexts_PlansShowThem(t *testing.T) {
	for _, s := range Texts() {
		p, m := planOf(s)
		e := explained(s)
		for what, draw := range map[string]func(io.Writer) error{
			"a plan":                  func(w io.Writer) error { return plans.Text(w, p, m, plans.Options{}) },
			"a wide plan":             func(w io.Writer) error { return plans.Text(w, p, m, plans.Options{Wide: true, Width: -1}) },
			"an explanation":          func(w io.Writer) error { return plans.ExplainText(w, e, plans.ExplainOptions{}) },
			"a complete explanation":  func(w io.Writer) error { return plans.ExplainText(w, e, plans.ExplainOptions{All: true}) },
			"offers that fail on one": func(w io.Writer) error { return plans.ExplainText(w, e, plans.ExplainOptions{Why: s}) },
		} {
			var b strings.Builder
			if err := draw(&b); err != nil {
				t.Fatal(err)
			}
			for line := range strings.SplitSeq(b.String(), "\n") {
				shown(t, what, s, line)
			}
		}
	}
}

// The commands that a person runs in a fleet repo show its hostile files, names of
// files included, in each form that is for people.
func TestTexts_CommandsShowThem(t *testing.T) {
	dir := t.TempDir()
	files := Fleet()
	for _, in := range Specs() {
		for path, content := range in.Files {
			files[path] = content
		}
	}
	for i, s := range Texts() {
		if name := strings.NewReplacer("/", "", "\x00", "").Replace(s); len(name) < 200 && !strings.HasPrefix(s, "name ") {
			files[fmt.Sprintf("intents/vision/%d%s.yaml", i, name)] = fmt.Sprintf("%skind: ResourceIntent\nmetadata: {name: %q}\n%q: 1\n", group, s, s)
		}
	}
	for path, content := range files {
		name := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args     []string
		terminal bool
	}{
		{[]string{"validate", dir}, true},
		{[]string{"validate", "-o", "github", dir}, false},
		{[]string{"plan", dir}, true},
		{[]string{"plan", "-o", "wide", dir}, false},
		{[]string{"plan", "-o", "markdown", dir}, false},
		{[]string{"get", "intents", "-C", dir}, true},
		{[]string{"get", "intents", "-C", dir}, false},
		{[]string{"get", "intents", "-o", "markdown", "-C", dir}, false},
		{[]string{"get", "flavors", "-C", dir}, true},
		{[]string{"status", "-C", dir}, true},
	} {
		what := strings.Join(c.args[:len(c.args)-1], " ")
		var out, said bytes.Buffer
		code := cli.Run(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &said, Terminal: c.terminal, Now: time.Now}, c.args)
		if out.Len() == 0 {
			t.Errorf("%s says nothing: exit code %d: %.500s", what, code, said.String())
		}
		for line := range strings.SplitSeq(out.String()+said.String(), "\n") {
			line = strings.ReplaceAll(line, "\u200d", "") // of markdown's encoder
			if !c.terminal {
				line = strings.ReplaceAll(line, "\t", " ") // between cells
			}
			shown(t, what, "the corpus", line)
		}
	}
}
