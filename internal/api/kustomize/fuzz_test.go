package kustomize

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// FuzzPlain: whatever a file of a kustomization holds, it is refused with a
// place, or documents of JSON that reads as the same again; what is counted
// before a build is within its bounds.
func FuzzPlain(f *testing.F) {
	for _, text := range []string{
		"resources: [a.yaml]\n", "resources: [https://evil.example/x.yaml]\n", "kind: List\nitems: [{kind: List, items: [{kind: X}]}]\n", "a: &a [1]\nb: [*a, *a]\n", "a: 1\na: 2\n",
		"patches: [{patch: '[{op: add, path: /spec/x, value: 1}]', target: {kind: X}}]\n", "replacements: [{path: x}]\nimages: [{name: a}]\nreplicas: [{name: a, count: 3}]\n",
		"---\na: 1\n---\nb: 2\n", "", "\x00", "[]", "- a", "a: .nan", "-.0", "? {a: b}\n: c\n",
		"'" + strings.Repeat("\t", 200) + "': 1\n", // a key that is written longer than YAML reads one
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := Plain("kustomization.yaml", text)
		if err != nil {
			if refused := new(Refusal); !errors.As(err, &refused) || refused.Message == "" || refused.Line < 0 {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		for doc := range bytes.SplitSeq(first, []byte("\n---\n")) {
			if len(bytes.TrimSpace(doc)) > 0 && !json.Valid(doc) {
				t.Fatalf("no JSON: %s", doc)
			}
		}
		if second, err := Plain("kustomization.yaml", first); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%v\n%s\nreads as\n%s", err, first, second)
		}
		s, err := read(map[string][]byte{"d/kustomization.yaml": text, "d/a.yaml": text})
		if err != nil {
			return
		}
		n := 0
		for _, count := range s.counts {
			if n += count.n; count.n < 0 || n > len(text)*2+2 {
				t.Fatalf("%d objects in %d bytes", n, len(text))
			}
		}
	})
}
