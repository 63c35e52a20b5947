package laid

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const lock = ".lock"

// step is one Write after people did something.
type step struct {
	people map[string]string // "" deletes
	files  map[string]string
	want   Outcome
	has    map[string]string // "" is absent
}

func TestWrite(t *testing.T) {
	for name, steps := range map[string][]step{
		"new, again, changed, dropped": {
			{files: map[string]string{"a": "1", "d/b": "1"}, want: Outcome{Written: []string{"a", "d/b"}}, has: map[string]string{"a": "1", "d/b": "1"}},
			{files: map[string]string{"a": "1", "d/b": "1"}, want: Outcome{Unchanged: 2}},
			{files: map[string]string{"a": "2"}, want: Outcome{Written: []string{"a"}, Removed: []string{"d/b"}}, has: map[string]string{"a": "2", "d/b": "", "d": ""}},
		},
		"an edit stays, its new version is told once": {
			{files: map[string]string{"a": "1"}, want: Outcome{Written: []string{"a"}}},
			{people: map[string]string{"a": "mine"}, files: map[string]string{"a": "1"}, want: Outcome{Edited: []string{"a"}}, has: map[string]string{"a": "mine", "a.new": ""}},
			{files: map[string]string{"a": "2"}, want: Outcome{Conflicts: []string{"a"}}, has: map[string]string{"a": "mine", "a.new": "2"}},
			{files: map[string]string{"a": "2"}, want: Outcome{Edited: []string{"a"}}, has: map[string]string{"a": "mine", "a.new": "2"}},
			{files: map[string]string{"a": "3"}, want: Outcome{Conflicts: []string{"a"}}, has: map[string]string{"a": "mine", "a.new": "3"}},
			{people: map[string]string{"a": "mine and 3", "a.new": ""}, files: map[string]string{"a": "3"}, want: Outcome{Edited: []string{"a"}}, has: map[string]string{"a": "mine and 3", "a.new": ""}},
		},
		"taking the new version ends the edit": {
			{files: map[string]string{"a": "1"}, want: Outcome{Written: []string{"a"}}},
			{people: map[string]string{"a": "mine"}, files: map[string]string{"a": "2"}, want: Outcome{Conflicts: []string{"a"}}},
			{people: map[string]string{"a": "2"}, files: map[string]string{"a": "2"}, want: Outcome{Removed: []string{"a.new"}, Unchanged: 1}, has: map[string]string{"a.new": ""}},
			{files: map[string]string{"a": "3"}, want: Outcome{Written: []string{"a"}}, has: map[string]string{"a": "3"}},
		},
		"what was there before stays": {
			{people: map[string]string{"README.md": "ours"}, files: map[string]string{"README.md": "theirs", "a": "1"}, want: Outcome{Written: []string{"a"}, Conflicts: []string{"README.md"}}, has: map[string]string{"README.md": "ours", "README.md.new": "theirs"}},
		},
		"what people deleted stays deleted": {
			{files: map[string]string{"a": "1"}, want: Outcome{Written: []string{"a"}}},
			{people: map[string]string{"a": ""}, files: map[string]string{"a": "1"}, want: Outcome{Edited: []string{"a"}}, has: map[string]string{"a": ""}},
			{files: map[string]string{"a": "2"}, want: Outcome{Edited: []string{"a"}}, has: map[string]string{"a": "", "a.new": ""}},
		},
		"an edited file is not removed": {
			{files: map[string]string{"a": "1"}, want: Outcome{Written: []string{"a"}}},
			{people: map[string]string{"a": "mine"}, files: map[string]string{}, want: Outcome{Edited: []string{"a"}}, has: map[string]string{"a": "mine"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, s := range steps {
				do(t, dir, s.people)
				got, err := write(dir, s.files)
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

func do(t *testing.T, dir string, people map[string]string) {
	t.Helper()
	for name, content := range people {
		at := filepath.Join(dir, name)
		if content == "" {
			if err := os.Remove(at); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func write(dir string, files map[string]string) (Outcome, error) {
	in := map[string][]byte{}
	for name, content := range files {
		in[name] = []byte(content)
	}
	return Write(dir, lock, in, "v1", nil)
}

// What cannot be done safely is an error that names the file.
func TestWrite_Refuses(t *testing.T) {
	outside := t.TempDir()
	for name, c := range map[string]struct {
		lay  func(t *testing.T, dir string)
		want string
	}{
		"a lock of a newer program": {func(t *testing.T, dir string) { do(t, dir, map[string]string{lock: "format: 9\nversion: v9.0.0\n"}) }, "format 9, written by fleetbroker v9.0.0"},
		"a lock that is none":       {func(t *testing.T, dir string) { do(t, dir, map[string]string{lock: "hello: 1\n"}) }, "has no format"},
		"a broken lock":             {func(t *testing.T, dir string) { do(t, dir, map[string]string{lock: "{"}) }, "read .lock"},
		"a directory in the way": {func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "a"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "read a: it is not a file"},
		"a link out of it": {func(t *testing.T, dir string) {
			if err := os.Symlink(outside, filepath.Join(dir, "d")); err != nil {
				t.Fatal(err)
			}
		}, "d/b: path escapes"},
		"an edited new version": {func(t *testing.T, dir string) {
			do(t, dir, map[string]string{"a": "mine", "a.new": "half merged"})
		}, "a.new was edited"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.lay(t, dir)
			if _, err := write(dir, map[string]string{"a": "1", "d/b": "1"}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("outside has %v, %v", entries, err)
			}
		})
	}
}

// An update that cannot write one file writes none: all are of the version before, with
// their lock, and all that is in the way is named.
func TestWrite_AllOrNothing(t *testing.T) {
	before := map[string]string{"a": "1", "d/b": "1", "z": "1"}
	for name, c := range map[string]struct {
		people map[string]string
		files  map[string]string
		want   []string
	}{
		"an edited new version, at the end": {map[string]string{"z": "mine", "z.new": "half merged"}, map[string]string{"a": "2", "z": "2"}, []string{"z.new was edited"}},
		"a file where a directory goes":     {map[string]string{"e": "mine"}, map[string]string{"a": "2", "d/b": "2", "e/c": "2"}, []string{"e/c"}},
		"two of them":                       {map[string]string{"z": "mine", "z.new": "half merged", "a": "mine", "a.new": "half merged"}, map[string]string{"a": "2", "d/b": "2", "z": "2"}, []string{"a.new was edited", "z.new was edited"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := write(dir, before); err != nil {
				t.Fatal(err)
			}
			do(t, dir, c.people)
			was := contents(t, dir)
			out, err := write(dir, c.files)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			if is := contents(t, dir); !reflect.DeepEqual(is, was) || !reflect.DeepEqual(out, Outcome{}) {
				t.Errorf("it reports %+v and left %q, want %q", out, is, was)
			}
		})
	}
}

// contents are all files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// A damaged lock is named with its field, and not with Go's types.
func TestRead_ADamagedLock(t *testing.T) {
	for text, want := range map[string]string{
		"format: x\n":           `read .lock: it is damaged: format: it is a string; write a whole number, without quotes; take it from the repository's history`,
		"format: 1\nfiles: 3\n": `files: it is a number; write an object`,
		"{":                     `it is damaged: yaml: line 1: `,
	} {
		dir := t.TempDir()
		do(t, dir, map[string]string{lock: text})
		if _, _, err := Read(dir, lock); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, found, err := Read(filepath.Join(dir, "none"), lock); found || err != nil {
		t.Errorf("no directory: %v, %v", found, err)
	}
	if _, err := Write(dir, lock, map[string][]byte{"a": []byte("1")}, "v1.2.3", map[string]string{"forge": "gitea"}); err != nil {
		t.Fatal(err)
	}
	got, found, err := Read(dir, lock)
	if err != nil || !found || got.Version != "v1.2.3" || got.Choices["forge"] != "gitea" || got.Files["a"] != digest([]byte("1")) {
		t.Errorf("got %+v, %v, %v", got, found, err)
	}
}
