package tree

import (
	"slices"
	"testing"
)

// files lists a tree as path=content.
func listed(t *testing.T, tr Tree) []string {
	t.Helper()
	var out []string
	err := tr.Walk(func(name string, e Entry) error {
		b, err := tr.Store.File(e.Hash, 0)
		out = append(out, name+"="+string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMerge(t *testing.T) {
	m := NewMemory()
	build := func(files map[string]string) Tree {
		bytes := map[string][]byte{}
		for name, content := range files {
			bytes[name] = []byte(content)
		}
		return m.Build(bytes)
	}
	type files = map[string]string
	for name, c := range map[string]struct {
		base, ours, theirs files
		want, conflicts    []string
	}{
		"nothing new":           {files{"a": "1"}, files{"a": "2"}, files{"a": "1"}, []string{"a=2"}, nil},
		"only theirs":           {files{"a": "1"}, files{"a": "1"}, files{"a": "2"}, []string{"a=2"}, nil},
		"both, other files":     {files{"d/a": "1", "d/b": "1"}, files{"d/a": "2", "d/b": "1"}, files{"d/a": "1", "d/b": "2"}, []string{"d/a=2", "d/b=2"}, nil},
		"both alike":            {files{"a": "1"}, files{"a": "2"}, files{"a": "2"}, []string{"a=2"}, nil},
		"both, the same file":   {files{"d/a": "1"}, files{"d/a": "2"}, files{"d/a": "3"}, []string{"d/a=2"}, []string{"d/a"}},
		"both add a file":       {files{"x": "0"}, files{"x": "0", "a": "2"}, files{"x": "0", "a": "3"}, []string{"a=2", "x=0"}, []string{"a"}},
		"both add a directory":  {files{"x": "0"}, files{"x": "0", "d/a": "2"}, files{"x": "0", "d/b": "3"}, []string{"d/a=2", "d/b=3", "x=0"}, nil},
		"they delete":           {files{"d/a": "1", "d/b": "1"}, files{"d/a": "1", "d/b": "2"}, files{"d/b": "1"}, []string{"d/b=2"}, nil},
		"they delete ours":      {files{"a": "1", "b": "1"}, files{"a": "2", "b": "1"}, files{"b": "1"}, []string{"a=2", "b=1"}, []string{"a"}},
		"both empty it":         {files{"d/a": "1", "d/b": "1", "x": "0"}, files{"d/b": "1", "x": "0"}, files{"d/a": "1", "x": "0"}, []string{"x=0"}, nil},
		"a file for a dir":      {files{"d/a": "1"}, files{"d/a": "2"}, files{"d": "3"}, []string{"d/a=2"}, []string{"d"}},
		"names that sort apart": {files{"d/a": "1", "d.x": "1"}, files{"d/a": "2", "d.x": "1"}, files{"d/a": "1", "d.x": "2"}, []string{"d.x=2", "d/a=2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			merged, conflicts, err := Merge(build(c.base), build(c.ours), build(c.theirs))
			if err != nil {
				t.Fatal(err)
			}
			if got := listed(t, merged); !slices.Equal(got, c.want) || !slices.Equal(conflicts, c.conflicts) {
				t.Errorf("got %q and conflicts %q, want %q and %q", got, conflicts, c.want, c.conflicts)
			}
		})
	}
}

func TestGraft(t *testing.T) {
	m := NewMemory()
	onto := m.Build(map[string][]byte{"fleet.yaml": []byte("ours"), "intents/a": []byte("1"), "bases/b": []byte("1")})
	from := m.Build(map[string][]byte{"fleet.yaml": []byte("theirs"), "intents/c": []byte("2")})
	got, err := Graft(onto, from, "intents", "bases")
	if err != nil {
		t.Fatal(err)
	}
	if list, want := listed(t, got), []string{"fleet.yaml=ours", "intents/c=2"}; !slices.Equal(list, want) {
		t.Errorf("got %q, want %q", list, want)
	}
}
