package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The README and the examples' own page say how many examples there are, and the latter
// lists each.
func TestExamples_AreCounted(t *testing.T) {
	dirs, err := filepath.Glob("../../examples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	words := map[int]string{10: "ten", 11: "eleven", 12: "twelve", 13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen", 17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty"}
	word := words[len(dirs)]
	if word == "" {
		t.Fatalf("there are %d examples: add the word for it to this test", len(dirs))
	}
	for page, want := range map[string]string{"../../README.md": word + " complete fleets", "../../examples/README.md": strings.ToUpper(word[:1]) + word[1:] + " complete fleets"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", page, want)
		}
		for _, dir := range dirs {
			link := filepath.Base(filepath.Dir(dir)) + "/README.md"
			if strings.Contains(page, "examples") && !strings.Contains(string(text), "("+link+")") {
				t.Errorf("%s does not list %s", page, link)
			}
		}
	}
}
