package laid

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestMerge(t *testing.T) {
	for name, steps := range map[string][]step{
		"an edit and a new version, apart": {
			{files: map[string]string{"a": "1\n2\n3\n4\n"}, want: Outcome{Written: []string{"a"}}},
			{people: map[string]string{"a": "mine\n2\n3\n4\n"}, files: map[string]string{"a": "1\n2\n3\nfour\n"}, want: Outcome{Merged: []string{"a"}}, has: map[string]string{"a": "mine\n2\n3\nfour\n", "a.new": ""}},
			{files: map[string]string{"a": "1\n2\n3\nfour\n"}, want: Outcome{Edited: []string{"a"}}},
			{files: map[string]string{"a": "1\n2\n3\nfour\nfive\n"}, want: Outcome{Merged: []string{"a"}}, has: map[string]string{"a": "mine\n2\n3\nfour\nfive\n"}},
			{people: map[string]string{"a": "1\n2\n3\nfour\nfive\n"}, files: map[string]string{"a": "1\n2\n"}, want: Outcome{Written: []string{"a"}}, has: map[string]string{"a": "1\n2\n"}},
		},
		"the same line: next to it, also what the version after that changes": {
			{files: map[string]string{"a": "1\n2\n3\n4\n"}, want: Outcome{Written: []string{"a"}}},
			{people: map[string]string{"a": "mine\n2\n3\n4\n"}, files: map[string]string{"a": "one\n2\n3\n4\n"}, want: Outcome{Conflicts: []string{"a"}}, has: map[string]string{"a": "mine\n2\n3\n4\n", "a.new": "one\n2\n3\n4\n"}},
			{files: map[string]string{"a": "one\n2\n3\nfour\n"}, want: Outcome{Conflicts: []string{"a"}}, has: map[string]string{"a": "mine\n2\n3\n4\n", "a.new": "one\n2\n3\nfour\n"}},
			{files: map[string]string{"a": "one\n2\n3\nfour\n"}, want: Outcome{Edited: []string{"a"}}, has: map[string]string{"a.new": "one\n2\n3\nfour\n"}},
			{people: map[string]string{"a": "mine, one\n2\n3\nfour\n", "a.new": ""}, files: map[string]string{"a": "one\n2\n3\n4\n"}, want: Outcome{Merged: []string{"a"}}, has: map[string]string{"a": "mine, one\n2\n3\n4\n", "a.new": ""}},
		},
		"taken over by hand": {
			{files: map[string]string{"a": "1\n2\n3\n"}, want: Outcome{Written: []string{"a"}}},
			{people: map[string]string{"a": "mine\n2\nthree\n"}, files: map[string]string{"a": "1\n2\nthree\n"}, want: Outcome{Edited: []string{"a"}}, has: map[string]string{"a": "mine\n2\nthree\n", "a.new": ""}},
		},
		"the merged text would have a key twice": {
			{files: map[string]string{"a.yaml": "a: 1\nb: 2\nc: 3\n"}, want: Outcome{Written: []string{"a.yaml"}}},
			{people: map[string]string{"a.yaml": "x: 9\na: 1\nb: 2\nc: 3\n"}, files: map[string]string{"a.yaml": "a: 1\nb: 2\nc: 3\nx: 1\n"}, want: Outcome{Conflicts: []string{"a.yaml"}}, has: map[string]string{"a.yaml": "x: 9\na: 1\nb: 2\nc: 3\n", "a.yaml.new": "a: 1\nb: 2\nc: 3\nx: 1\n"}},
		},
		"what is no text": {
			{files: map[string]string{"a": "1\n2\n3\n"}, want: Outcome{Written: []string{"a"}}},
			{people: map[string]string{"a": "1\x00\n2\n3\n"}, files: map[string]string{"a": "1\n2\nthree\n"}, want: Outcome{Conflicts: []string{"a"}}, has: map[string]string{"a": "1\x00\n2\n3\n"}},
		},
		"what was there before": {
			{people: map[string]string{"a": "ours\n"}, files: map[string]string{"a": "1\n2\n"}, want: Outcome{Conflicts: []string{"a"}}, has: map[string]string{"a": "ours\n", "a.new": "1\n2\n"}},
			{files: map[string]string{"a": "1\n2\n3\n"}, want: Outcome{Conflicts: []string{"a"}}, has: map[string]string{"a": "ours\n", "a.new": "1\n2\n3\n"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, s := range steps {
				do(t, dir, s.people)
				got, err := merged(dir, s.files)
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if !reflect.DeepEqual(got, s.want) {
					t.Errorf("step %d: got %+v, want %+v", i, got, s.want)
				}
				for name, want := range s.has {
					b, err := os.ReadFile(filepath.Join(dir, name))
					if want == "" && err == nil || want != "" && string(b) != want {
						t.Errorf("step %d: %s has %q (%v), want %q", i, name, b, err, want)
					}
				}
			}
		})
	}
}

func merged(dir string, files map[string]string) (Outcome, error) {
	in := map[string][]byte{}
	for name, content := range files {
		in[name] = []byte(content)
	}
	return Merge(dir, lock, ".base", in, "v1", nil)
}

// A base that is damaged, or that somebody edited, is not merged by.
func TestMerge_ByNoOtherBase(t *testing.T) {
	const first, edited, second = "1\n2\n3\n", "mine\n2\n3\n", "1\n2\nthree\n"
	other := t.TempDir()
	if _, err := merged(other, map[string]string{"a": edited}); err != nil {
		t.Fatal(err)
	}
	forged, err := os.ReadFile(filepath.Join(other, ".base"))
	if err != nil {
		t.Fatal(err)
	}
	for name, base := range map[string]string{"absent": "", "damaged": "\x1f\x8b no", "of other files": string(forged)} {
		dir := t.TempDir()
		if _, err := merged(dir, map[string]string{"a": first}); err != nil {
			t.Fatal(err)
		}
		do(t, dir, map[string]string{"a": edited, ".base": base})
		got, err := merged(dir, map[string]string{"a": second})
		if err != nil || strings.Join(got.Conflicts, "") != "a" {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != edited {
			t.Errorf("%s: the edit is %q, %v", name, b, err)
		}
	}
}

// A version next to the file that people began to work on is neither overwritten nor left
// out of what is merged later.
func TestMerge_HalfMergedByHand(t *testing.T) {
	dir := t.TempDir()
	for _, s := range []step{
		{files: map[string]string{"a": "1\n2\n3\n"}},
		{people: map[string]string{"a": "mine\n2\n3\n"}, files: map[string]string{"a": "one\n2\n3\n"}},
	} {
		do(t, dir, s.people)
		if _, err := merged(dir, s.files); err != nil {
			t.Fatal(err)
		}
	}
	do(t, dir, map[string]string{"a.new": "mine and one\n2\n3\n"})
	if _, err := merged(dir, map[string]string{"a": "one\n2\nthree\n"}); err == nil || !strings.Contains(err.Error(), "a.new was edited") {
		t.Errorf("got %v", err)
	}
	for name, want := range map[string]string{"a": "mine\n2\n3\n", "a.new": "mine and one\n2\n3\n"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s is %q, %v", name, b, err)
		}
	}
}
