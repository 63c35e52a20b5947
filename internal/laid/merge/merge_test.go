package merge

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	const base = "a\nb\nc\nd\ne\n"
	for name, c := range map[string]struct{ base, mine, theirs, want string }{
		"one changed":                  {base, "a\nB\nc\nd\ne\n", base, "a\nB\nc\nd\ne\n"},
		"the other changed":            {base, base, "a\nb\nc\nD\ne\n", "a\nb\nc\nD\ne\n"},
		"both, apart":                  {base, "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\nf\n", "A\nb\nc\nd\nE\nf\n"},
		"both the same":                {base, "a\nb\nC\nd\ne\n", "a\nb\nC\nd\ne\n", "a\nb\nC\nd\ne\n"},
		"one deletes, one adds, apart": {base, "b\nc\nd\ne\n", "a\nb\nc\nd\ne\nf\n", "b\nc\nd\ne\nf\n"},
		"the same line, differently":   {base, "a\nb\nC\nd\ne\n", "a\nb\nx\nd\ne\n", ""},
		"neighbouring lines":           {base, "a\nB\nc\nd\ne\n", "a\nb\nC\nd\ne\n", ""},
		"deleted and changed":          {base, "a\nb\nd\ne\n", "a\nb\nC\nd\ne\n", ""},
		"both add there":               {base, "a\nx\nb\nc\nd\ne\n", "a\ny\nb\nc\nd\ne\n", ""},
		"no line end at the end":       {"a\nb\nc", "A\nb\nc", "a\nb\nC", "A\nb\nC"},
		"the end gets a line end":      {"a\nb\nc", "A\nb\nc", "a\nb\nc\n", "A\nb\nc\n"},
		"Windows' line ends stay":      {"a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n"},
		"from nothing":                 {"", "a\n", "b\n", ""},
	} {
		got, clean := Text(c.base, c.mine, c.theirs)
		if got != c.want || clean != (c.want != "") {
			t.Errorf("%s: got %q, %t; want %q", name, got, clean, c.want)
		}
	}
}

// Whatever two people do to a text, the merge is what git makes of it, and a conflict where
// git has one.
func TestText_AsGit(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var base []string
		for i := range rapid.IntRange(0, 12).Draw(t, "lines") {
			base = append(base, fmt.Sprintf("line %d\n", i))
		}
		mine, theirs := edited(t, "mine", base), edited(t, "theirs", base)
		texts := map[string]string{"base": strings.Join(base, ""), "mine": strings.Join(mine, ""), "theirs": strings.Join(theirs, "")}
		for name, text := range texts {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("git", "merge-file", "-p", "mine", "base", "theirs")
		cmd.Dir = dir
		want, err := cmd.Output()
		got, clean := Text(texts["base"], texts["mine"], texts["theirs"])
		if clean != (err == nil) || clean && got != string(want) {
			t.Fatalf("got %t %q, git %v %q", clean, got, err, want)
		}
	})
}

// edited is what somebody made of lines, all of which differ.
func edited(t *rapid.T, who string, lines []string) []string {
	out := slices.Clone(lines)
	for i := range rapid.IntRange(0, 3).Draw(t, who+" edits") {
		text := fmt.Sprintf("%s %d\n", rapid.SampledFrom([]string{who, "both"}).Draw(t, "text"), i)
		at := rapid.IntRange(0, len(out)).Draw(t, "at")
		switch verb := rapid.SampledFrom([]string{"insert", "change", "delete"}).Draw(t, "verb"); {
		case verb == "insert":
			out = slices.Insert(out, at, text)
		case at == len(out):
		case verb == "change":
			out[at] = text
		default:
			out = slices.Delete(out, at, at+1)
		}
	}
	return out
}
