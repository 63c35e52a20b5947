package hostile

import "strings"

// Entry is one of a tree object as git stores it; Sub is a directory's.
type Entry struct {
	Mode, Name string
	Blob       string
	Sub        []Entry
}

// Trees are directories that git fsck --strict refuses, or that unfold to more
// than anybody can read, each as the entries that are added to a fleet's root.
func Trees() map[string][]Entry {
	evil := Intent("nlp", "evil", "")
	file := func(name string) Entry { return Entry{Mode: "100644", Name: name, Blob: evil} }
	dir := func(name string, sub ...Entry) Entry { return Entry{Mode: "40000", Name: name, Sub: sub} }
	out := map[string][]Entry{
		"twice":             {file("zz.yaml"), file("zz.yaml")},
		"twice-dir":         {dir("zz", file("a.yaml")), dir("zz", file("b.yaml"))},
		"file-and-dir":      {file("zz"), dir("zz", file("a.yaml"))},
		"slash":             {file("zz/evil.yaml")},
		"up":                {dir("zz", file("../nlp/evil.yaml"))},
		"dot":               {dir("."), dir("zz", file("a.yaml"))},
		"dot-dot":           {dir("..", file("evil.yaml"))},
		"dot-git":           {dir(".git", file("config"))},
		"dot-git-case":      {dir(".GiT", file("config"))},
		"dot-git-short":     {dir("git~1", file("config"))},
		"dot-git-space":     {dir(".git ", file("config"))},
		"dot-git-ignorable": {dir(".g\u200cit", file("config"))},
		"empty-name":        {file("")},
		"mode-unknown":      {{Mode: "123456", Name: "zz.yaml", Blob: evil}},
		"mode-zero":         {{Mode: "0", Name: "zz.yaml", Blob: evil}},
		"mode-long":         {{Mode: "100644100644", Name: "zz.yaml", Blob: evil}},
		"mode-letters":      {{Mode: "abc", Name: "zz.yaml", Blob: evil}},
		"mode-padded":       {{Mode: "0100644", Name: "zz.yaml", Blob: evil}},
		"order":             {file("zz.yaml"), file("zy.yaml")},
		"not-utf8":          {file("\xff\xfe.yaml")},
		"long-name":         {file(strings.Repeat("z", 5000))},
		"newline":           {file("z\nInputs: 0.yaml")},
	}
	bomb := []Entry{file("a.yaml")}
	for range 8 {
		level := make([]Entry, 10)
		for i := range level {
			level[i] = dir(string(rune('a'+i)), bomb...)
		}
		bomb = level
	}
	out["bomb"] = []Entry{dir("zz", bomb...)}
	deep := []Entry{file("a.yaml")}
	for range 200 {
		deep = []Entry{dir("d", deep...)}
	}
	out["deep"] = []Entry{dir("zz", deep...)}
	return out
}
