package genyaml

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func TestForm(t *testing.T) {
	v := map[string]any{
		"name": "vision-llm-0", "author": "Ada L. <ada@example.org>", "no": "NO", "memory": "128Gi", "cpu": "16",
		"commit": "4f1c2ab", "at": "2026-11-20T08:00:00Z", "empty": map[string]any{}, "none": []any{}, "null": nil,
		"list": []any{"a", 1, map[string]any{"b": 2, "a": []any{"x"}}, []any{"n"}},
		"text": "two\nlines: #1", "nvidia.com/gpu": "4", "score": 0.87, "sun": "☀ & moon\u0085", "sha": "sha256:9f",
	}
	const want = `at: "2026-11-20T08:00:00Z"
author: Ada L. <ada@example.org>
commit: "4f1c2ab"
cpu: "16"
empty: {}
list:
- a
- 1
- a:
  - x
  b: 2
- ["n"]
memory: 128Gi
name: vision-llm-0
"no": "NO"
none: []
"null": null
nvidia.com/gpu: "4"
score: 0.87
sha: sha256:9f
sun: "☀ & moon\u0085"
text: "two\nlines: #1"
`
	got, err := Marshal(v)
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

// drawValue draws anything that JSON can say, with words that YAML likes to
// misread.
func drawValue(t *rapid.T, depth int) any {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "y", "NO", "null", "~", "1e3", "0x10", "010", "1_000", "12:30:45", "2026-11-20", "-", "- a", "a: b", "a:", "a #b", "#", "a ", " a", "128Gi", "1.5", ".5", "+1", "<<", "=", "!x", "&a", "*a", "'", "\"", "\\", "\t", "a\nb", "{}", "[]", "?", "@a", "`", "%", "true", "é", "\u2028", "\U0001F600", "\u0085", "\ufeff", "key", "nvidia.com/gpu"}),
		rapid.String(), rapid.StringMatching(`[a-z0-9:# .-]{0,8}`))
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth > 3 && kind < 2 {
		kind = 3
	}
	switch kind {
	case 0:
		m := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "keys") {
			m[text.Draw(t, "key")] = drawValue(t, depth+1)
		}
		return m
	case 1:
		l := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			l = append(l, drawValue(t, depth+1))
		}
		return l
	case 2:
		return rapid.Float64Range(-1e9, 1e9).Draw(t, "float")
	case 3:
		return float64(rapid.IntRange(-1000000, 1000000).Draw(t, "int"))
	case 4:
		return rapid.SampledFrom([]any{true, false, nil}).Draw(t, "word")
	}
	return text.Draw(t, "text")
}

// TestWhatIsWrittenIsReadAlike: the library reads what Marshal writes as it was
// meant, and so does the reader of this package; the same value is always
// written the same.
func TestWhatIsWrittenIsReadAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := any(map[string]any{"value": drawValue(t, 0)})
		text, err := Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Marshal(v)
		if !bytes.Equal(text, again) {
			t.Fatal("written twice, once so and once so")
		}
		// Go's JSON replaces what is not Unicode; compare with what it wrote.
		raw, _ := json.Marshal(v)
		var want, library, here any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, &library); err != nil || !reflect.DeepEqual(library, want) {
			t.Fatalf("the library reads %#v, want %#v (%v)\n%s", library, want, err, text)
		}
		if err := UnmarshalStrict(text, &here); err != nil || !reflect.DeepEqual(here, want) {
			t.Fatalf("read back %#v, want %#v (%v)\n%s", here, want, err, text)
		}
	})
}

// TestTheReaderNeverDisagrees: whatever text the line reader takes, the
// library takes too and reads the same, also after lines were cut, swapped,
// doubled or moved.
func TestTheReaderNeverDisagrees(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		text, err := Marshal(map[string]any{"a": drawValue(t, 0), "b": drawValue(t, 0), "c": map[string]any{"d": []any{"x", map[string]any{"e": "f"}}}})
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
			switch rapid.IntRange(0, 6).Draw(t, "edit") {
			case 0:
				lines = append(lines[:i], lines[i+1:]...)
			case 1:
				j := rapid.IntRange(0, len(lines)-1).Draw(t, "other")
				lines[i], lines[j] = lines[j], lines[i]
			case 2:
				lines = append(lines[:i], append([]string{lines[i]}, lines[i:]...)...)
			case 3:
				lines[i] = "  " + lines[i]
			case 4:
				lines[i] = strings.TrimPrefix(lines[i], "  ")
			case 5:
				lines[i] = rapid.SampledFrom([]string{"- a", "a: 1", "a:", "# c", "---", "...", "  - b: c", "x: y: z", "x: 'y'", "x: |", "? a", "x: 0777", "x: 1e3", "x: y # c", "\tx: y", "x: y\r"}).Draw(t, "text")
			case 6:
				cut := rapid.IntRange(0, len(lines[i])).Draw(t, "cut")
				lines[i] = lines[i][:cut]
			}
			if len(lines) == 0 {
				lines = []string{""}
			}
		}
		edited := []byte(strings.Join(lines, "\n"))
		asJSON, ok := toJSON(edited)
		if !ok {
			return
		}
		taken++
		var here, library any
		if err := json.Unmarshal(asJSON, &here); err != nil {
			t.Fatalf("made %s of\n%s", asJSON, edited)
		}
		if err := yaml.UnmarshalStrict(edited, &library); err != nil || !reflect.DeepEqual(here, library) {
			t.Fatalf("read %#v, the library %#v (%v)\n%s", here, library, err, edited)
		}
	})
	if taken == 0 {
		t.Error("the reader took nothing: it is of no use")
	}
}

func TestMistakesAreTheLibrarys(t *testing.T) {
	type kind struct {
		Name string         `json:"name"`
		M    map[string]int `json:"m"`
	}
	for _, text := range []string{"name: a\nname: b\n", "name: a\nextra: 1\n", "name: [1]\n", "{", "m:\n  a: 1\n  a: 2\n"} {
		var a, b kind
		got, want := UnmarshalStrict([]byte(text), &a), yaml.UnmarshalStrict([]byte(text), &b)
		if got == nil || want == nil || got.Error() != want.Error() {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	var k kind
	if err := UnmarshalStrict([]byte("# comment\nname: 5\n"), &k); err != nil || k.Name != "5" {
		t.Errorf("%+v %v: want what the library makes of a number in a string's place", k, err)
	}
}
