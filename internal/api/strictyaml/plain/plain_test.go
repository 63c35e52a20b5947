package plain

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"
)

// same compares what both parsers make of a text, and reports whether the plain one reads it.
func same(t *testing.T, text []byte) bool {
	t.Helper()
	got, ok := Parse(text)
	if !ok {
		return false
	}
	var want yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&want); err != nil || len(want.Content) != 1 {
		t.Fatalf("read, and the general parser says %v\n%q", err, text)
	}
	if a, b := show(got), show(want.Content[0]); a != b {
		t.Fatalf("%q\ngot\n%s\nwant\n%s", text, a, b)
	}
	return true
}

// show writes what of nodes has to be the same.
func show(n *yaml.Node) string {
	var b strings.Builder
	var write func(n *yaml.Node, depth int)
	write = func(n *yaml.Node, depth int) {
		fmt.Fprintf(&b, "%*s%d %d %d:%d %q %q\n", depth*2, "", n.Kind, n.Style, n.Line, n.Column, n.Value, n.Anchor)
		for _, c := range n.Content {
			write(c, depth+1)
		}
	}
	write(n, 0)
	return b.String()
}

// plainTexts are read without the general parser.
var plainTexts = map[string]string{
	"a map":                      "a: 1\nb: text\n",
	"no end of line":             "a: 1",
	"spaces":                     "a:   1   \n\n  \nb: two words\n",
	"comments":                   "# head\na: 1 # one\n  # in\nb: # none\n  c: 2\n# tail\n",
	"a map in a map":             "a:\n  b:\n    c: 1\n  d: 2\ne: 3\n",
	"a list":                     "a:\n  - 1\n  - two\nb: 1\n",
	"a list at its key's column": "a:\n- 1\n- 2\nb: 1\n",
	"maps in a list":             "a:\n  - b: 1\n    c: 2\n  - b: 3\n    d:\n      e: 4\n",
	"lists in maps in a list":    "a:\n- b:\n  - 1\n  - 2\n  c: 1\n- b: [1]\n",
	"flow":                       "a: {b: 1, c: [x, y, \"z, }\"], d: {}, e: [], f: {g: 'h'}}\n",
	"flow in a list":             "a:\n  - {b: 1}\n  - [1, 2] # two\n",
	"quotes":                     "a: \"b: c # d\"\nb: 'e \"f\"'\nc: \"\"\n",
	"times and links":            "a: 2026-11-26T12:00:00Z\nb: https://example.org:8443/x\nc: 10:00-12:00\n",
	"numbers":                    "a: -5\nb: 1.5\nc: 010\nd: ~\ne: null\nf: .5\ng: +1\n",
	"operators":                  "a: x == y, z <= (1*2)%3 @home\n",
	"keys like words":            "on: 1\nnull: 2\n1: 3\na.b/c-d: 4\n",
	"the same key twice":         "a: 1\na: 2\n",
	"an intent":                  "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata:\n  name: job\n  labels: {app: training}\nspec:\n  resources:\n    cpu: \"4\"\n    gpu: {count: 1, models: [nvidia-h100]}\n  offload: {namespaces: [{name: team-0, create: true}]}\n",
}

// others are for the general parser.
var others = map[string]string{
	"nothing":              "",
	"comments alone":       "# a\n",
	"a marker":             "---\na: 1\n",
	"an end":               "a: 1\n...\n",
	"a list alone":         "- 1\n",
	"a scalar alone":       "a\n",
	"indented":             " a: 1\n",
	"no value":             "a:\nb: 1\n",
	"no value at the end":  "a:\n",
	"a scalar below":       "a:\n  b\n",
	"a scalar on lines":    "a: b\n  c\n",
	"quotes on lines":      "a: \"b\n  c\"\n",
	"flow on lines":        "a: [1,\n  2]\n",
	"a block":              "a: |\n  b\n",
	"escapes":              "a: \"b\\n\"\n",
	"doubled quotes":       "a: 'b''c'\n",
	"after quotes":         "a: \"b\" c\n",
	"anchors":              "a: &b 1\nc: *b\n",
	"a tag":                "a: !!str 1\n",
	"a merge":              "<<: {a: 1}\n",
	"a quoted key":         "\"a\": 1\n",
	"an explicit key":      "? a\n: 1\n",
	"no space":             "a:1\n",
	"two colons":           "a: b: c\n",
	"a colon at the end":   "a: b:\n",
	"two spaces":           "a: b  c\n",
	"an empty item":        "a:\n-\n- 1\n",
	"a list in a list":     "a:\n- - 1\n",
	"a tab":                "a:\tb\n",
	"letters beyond ASCII": "a: é\n",
	"a carriage return":    "a: b\r\n",
	"wrongly indented":     "a:\n    b: 1\n  c: 2\n",
	"too deep below":       "a: 1\n  b: 2\n",
	"a comma too many":     "a: [1, ]\n",
	"no comma":             "a: [1 2]\n",
	"not closed":           "a: [1\n",
	"a null in flow":       "a: {b: }\n",
	"a key alone in flow":  "a: {b}\n",
	"a hash in a scalar":   "a: b#c\n",
	"an item amid a map":   "a: 1\n- 2\n",
	"a map amid a list":    "a:\n- 1\nb\n",
	"deep":                 "a: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n",
}

func TestParse(t *testing.T) {
	for name, text := range plainTexts {
		t.Run(name, func(t *testing.T) {
			if !same(t, []byte(text)) {
				t.Errorf("not read: %q", text)
			}
		})
	}
	for name, text := range others {
		t.Run(name, func(t *testing.T) {
			if same(t, []byte(text)) {
				t.Errorf("read: %q", text)
			}
		})
	}
}

// The files of the repository itself: all that are plain are read alike.
func TestParse_Files(t *testing.T) {
	read, all := 0, 0
	for _, root := range []string{"../../../../examples", "../../../../fleet-repo-template"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
				if all++; same(t, doc) {
					read++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d documents are plain", read, all)
	if read*2 < all {
		t.Errorf("%d of %d documents are plain, want half at least", read, all)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range plainTexts {
		f.Add([]byte(text))
	}
	for _, text := range others {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		same(t, text)
	})
}

func BenchmarkParse(b *testing.B) {
	text := []byte(plainTexts["an intent"])
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if _, ok := Parse(text); !ok {
				b.Fatal("not read")
			}
		}
	})
	b.Run("general", func(b *testing.B) {
		for b.Loop() {
			var n yaml.Node
			if err := yaml.Unmarshal(text, &n); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What a text costs depends on what is in it, not on how many lines it has.
func TestParse_LinesAreCheap(t *testing.T) {
	text := bytes.Repeat([]byte("\n"), 1<<20)
	var before, after runtime.MemStats
	for name, text := range map[string][]byte{"nothing": text, "a map": append([]byte("a: 1"), text...), "no map": append(text, "a"...)} {
		runtime.ReadMemStats(&before)
		Parse(text)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("%s and a MiB of ends of lines allocate %d MiB, want at most 4", name, got>>20)
		}
	}
}

// A text with more nodes than room is made for at once is read whole.
func TestParse_ManyNodes(t *testing.T) {
	var text bytes.Buffer
	for i := range 3 * maxNodes {
		fmt.Fprintf(&text, "k%d: [a, b, {c: d}]\n", i)
	}
	if !same(t, text.Bytes()) {
		t.Error("it is not read")
	}
}
