package hostile

import (
	"bytes"
	"encoding/csv"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// shown demands text that a terminal shows and does not obey.
func shown(t *testing.T, sink, in, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Errorf("%s of %q is %q, want UTF-8", sink, in, out)
	}
	if i := strings.IndexFunc(out, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%s of %q is %q, want printable characters alone", sink, in, out)
	}
}

func TestTexts_TerminalShowsThem(t *testing.T) {
	for _, s := range Texts() {
		out := escape.Line(s)
		shown(t, "Line", s, out)
		if again := escape.Line(out); again != out {
			t.Errorf("Line twice of %q is %q, want %q", s, again, out)
		}
		for line := range strings.SplitSeq(escape.Lines(s), "\n") {
			shown(t, "Lines", s, line)
		}
	}
}

func TestTexts_LogsShowThem(t *testing.T) {
	for _, s := range Texts() {
		for _, form := range []string{"text", "json"} {
			var b bytes.Buffer
			opts := &slog.HandlerOptions{ReplaceAttr: escape.Attr}
			var h slog.Handler = slog.NewTextHandler(&b, opts)
			if form == "json" {
				h = slog.NewJSONHandler(&b, opts)
			}
			slog.New(h).Info("failed", "name", s, "error", textError(s))
			shown(t, form+" log", s, strings.TrimSuffix(b.String(), "\n"))
		}
	}
}

type textError string

func (e textError) Error() string { return string(e) }

// The markup that an encoded text may come out as: a paragraph, or a table's
// cell, of plain text.
var (
	paragraph = regexp.MustCompile(`^(<p>[^<]*</p>\n)?$`)
	cell      = regexp.MustCompile(`^<td>[^<]*</td>$`)
)

// What forges look for in rendered text.
var (
	mention     = regexp.MustCompile(`(^|[^\w])@[\w"]`)
	quickAction = regexp.MustCompile(`(?m)^\s*/[a-z]`)
	autolink    = regexp.MustCompile(`(?i)(https?|ftp)://|www\.|mailto:\S+@\w`)
)

func TestTexts_MarkdownIsPlainText(t *testing.T) {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList), goldmark.WithRendererOptions(html.WithUnsafe()))
	render := func(source string) string {
		var b bytes.Buffer
		if err := md.Convert([]byte(source), &b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, s := range Texts() {
		out := escape.Markdown(s)
		shown(t, "Markdown", s, strings.ReplaceAll(out, "\u200d", ""))
		if got := render(out); !paragraph.MatchString(got) {
			t.Errorf("Markdown of %q is %q, rendered %q: want one paragraph of text", s, out, got)
		}
		table := render("| a | b |\n|---|---|\n| " + out + " | end |\n")
		_, row, _ := strings.Cut(table, "<tbody>\n<tr>\n")
		if first, _, _ := strings.Cut(row, "\n"); !cell.MatchString(first) || strings.Count(table, "<td>") != 2 || !strings.Contains(table, "<td>end</td>") {
			t.Errorf("Markdown of %q in a table is %q, rendered %q: want two cells of text", s, out, table)
		}
		text := render(out)
		for name, what := range map[string]*regexp.Regexp{"mention": mention, "quick action": quickAction, "address": autolink} {
			if what.MatchString(strings.TrimPrefix(text, "<p>")) || what.MatchString(out) {
				t.Errorf("Markdown of %q is %q, rendered %q: it holds a %s", s, out, text, name)
			}
		}
		span := render("`" + escape.Code(s) + "x`")
		if !regexp.MustCompile(`^<p><code>[^<]*</code></p>\n$`).MatchString(span) {
			t.Errorf("Code of %q renders as %q, want one code span", s, span)
		}
	}
}

func TestTexts_CSVHoldsNoFormula(t *testing.T) {
	for _, s := range Texts() {
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		if err := w.Write([]string{escape.Cell(s), "end"}); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		row, err := csv.NewReader(&b).Read()
		if err != nil || len(row) != 2 {
			t.Fatalf("Cell of %q is read as %q, %v, want two cells", s, row, err)
		}
		shown(t, "Cell", s, row[0])
		if regexp.MustCompile(`^[=@]|^[+-].*[^0-9.]`).MatchString(row[0]) {
			t.Errorf("Cell of %q is %q, which a spreadsheet takes for a formula", s, row[0])
		}
	}
}

func TestTexts_CommitMessageKeepsItsTrailers(t *testing.T) {
	for _, s := range Texts() {
		m := gitrepo.Message(s, []string{s, "second"}, []string{"Inputs: " + s, "Now: 2026-11-23T00:00:00Z"})
		for line := range strings.SplitSeq(m, "\n") {
			shown(t, "message", s, line)
		}
		for _, key := range []string{"Contract", "Ledger", "Set-Aside", "Plan"} {
			if got := gitobj.Trailers(m, key); len(got) > 0 {
				t.Errorf("message of %q has trailer %s: %q, want none", s, key, got)
			}
		}
		if got := gitobj.Trailers(m, "Now"); len(got) != 1 {
			t.Errorf("message of %q has Now %q, want one", s, got)
		}
	}
}
