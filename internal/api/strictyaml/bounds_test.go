package strictyaml

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// Every document that is made to hurt is read or refused within bounds, and
// what is refused says where and why.
func TestHostileDocumentsAreBounded(t *testing.T) {
	scalar := strings.Repeat("x", 100_000)
	for name, tc := range map[string]struct {
		text func() string
		want string // "" when it is read
	}{
		"aliases to a long scalar": {func() string {
			return head + "spec:\n  resources: {cpu: 1}\n  placement:\n    labels:\n      a: &a " + scalar + "\n" + bounded.Numbered(9000, "      k%d: *a\n")
		}, "9:11: aliases expand to more than 64 KiB"},
		"merges of a long scalar": {func() string {
			return head + "spec:\n  resources: {cpu: 1}\n  x: &x {k: " + scalar + "}\n" + bounded.Numbered(4000, "  y%d: {<<: *x}\n")
		}, "unknown field"},
		"60,000 label keys": {func() string {
			return head + "spec:\n  resources: {cpu: 1}\n  placement:\n    labels:\n" + bounded.Numbered(60_000, "      k%d: v\n")
		}, ""},
		"60,000 keys twice": {func() string {
			keys := bounded.Numbered(30_000, "      k%d: v\n")
			return head + "spec:\n  resources: {cpu: 1}\n  placement:\n    labels:\n" + keys + keys
		}, `30008:7: duplicate key "k0" (first on line 8)`},
		"60,000 unknown fields": {func() string { return head + "spec:\n" + bounded.Numbered(60_000, "  k%d: v\n") }, `unknown field "k0"`},
		"a key of 1 MB":         {func() string { return head + "spec:\n  ? " + strings.Repeat("k", 1_000_000) + "\n  : [1]\n" }, "longer than 1024 bytes"},
		"a key of 200 tabs":     {func() string { return head + "spec: {\"" + strings.Repeat("\\t", 200) + "\": 1}\n" }, "longer than 1024 bytes as JSON writes it"},
		"a long key over a long list": {func() string {
			return head + "spec:\n  resources: {cpu: 1}\n  placement:\n    labels:\n      " + strings.Repeat("k", 1000) + ": [" + strings.Repeat("1,", 400_000) + "]\n"
		}, "is a list"},
		"a quantity of 1 MB": {func() string { return head + "spec:\n  resources: {cpu: \"" + strings.Repeat("9", 1_000_000) + "\"}\n" }, "is not a quantity"},
		"a duration of 1 MB": {func() string {
			return head + "spec:\n  schedule: {duration: \"" + strings.Repeat("9", 1_000_000) + "h\"}\n"
		}, "at most 256 are read here"},
		"dense":             {func() string { return head + "spec: [" + strings.Repeat("1,", 500_000) + "]\n" }, "is a list"},
		"dense maps":        {func() string { return head + "spec: [" + strings.Repeat("{},", 330_000) + "]\n" }, "is a list"},
		"deep lists":        {func() string { return head + "spec: " + strings.Repeat("[", 500_000) }, "cannot be read"},
		"deep maps":         {func() string { return head + "spec: " + strings.Repeat("{a: ", 200_000) }, "cannot be read"},
		"deep blocks":       {func() string { return head + "spec:\n" + strings.Repeat("- ", 9_000) + "1\n" }, "is a list"},
		"explicit keys":     {func() string { return head + strings.Repeat("? ", 9_000) + "1\n" }, ""},
		"anchors":           {func() string { return head + "spec:\n" + bounded.Numbered(45_000, "  k%d: &a%[1]d v\n") }, "unknown field"},
		"quotes":            {func() string { return head + "spec: \"" + strings.Repeat("\\u00e9", 170_000) + "\"\n" }, "is not expected here"},
		"comments":          {func() string { return head + strings.Repeat("# c\n", 250_000) + "spec: 1\n" }, "not expected here"},
		"blank lines":       {func() string { return head + "spec: |\n" + strings.Repeat("\n", 1_000_000) }, "not expected here"},
		"comments in lists": {func() string { return head + "spec:\n" + strings.Repeat("- 1 # c\n", 125_000) }, "is a list"},
	} {
		t.Run(name, func(t *testing.T) {
			bounded.Run(t, bounded.Bounds{}, func(t *testing.T) {
				_, got := decode[v1alpha1.ResourceIntent](t, tc.text())
				if tc.want == "" {
					return
				}
				if len(got) == 0 || !strings.Contains(got[0].String(), tc.want) {
					t.Fatalf("got %.300v, want %s", got, tc.want)
				}
				size := 0
				for _, p := range got {
					size += len(p.Message)
				}
				if size > 64<<10 {
					t.Errorf("the problems take %d bytes", size)
				}
			})
		})
	}
}

// What merge keys bring is counted in bytes, as what aliases bring is.
func TestMergedBytesAreCounted(t *testing.T) {
	type anything struct {
		A map[string]json.RawMessage `json:"a,omitempty"`
	}
	_, got := decode[anything](t, "a:\n  x: &x {k: "+strings.Repeat("x", 10_000)+"}\n"+bounded.Numbered(10, "  y%d: {<<: *x}\n"))
	if len(got) == 0 || !strings.Contains(got[0].Message, "aliases expand to more than 64 KiB") {
		t.Errorf("got %v", got)
	}
}

// JSON keeps what a document means: nulls, numbers as the parser reads them, no
// aliases.
func TestJSON(t *testing.T) {
	docs, _ := Split([]byte("a: &a {b: null, c: ~}\nd: *a\ne: [1, 0.5, 010, 1e3, NO, true, '1', x]\n"))
	doc, problems := Parse(docs[0])
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got, problems := doc.JSON()
	if want := `{"a":{"b":null,"c":null},"d":{"b":null,"c":null},"e":[1,0.5,8,1000,"NO",true,"1","x"]}`; string(got) != want || len(problems) > 0 {
		t.Errorf("got  %s %v\nwant %s", got, problems, want)
	}
}

// TestDocument_At_FindsManyPlaces: a place costs no look at the whole text.
func TestDocument_At_FindsManyPlaces(t *testing.T) {
	bounded.Run(t, bounded.Bounds{CPU: 3 * time.Second}, func(t *testing.T) {
		docs, _ := Split([]byte("a:\n" + strings.Repeat("- b\n", 250_000)))
		doc, problems := Parse(docs[0])
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for i := range 250_000 {
			if line, column := doc.At("a", i); line != i+2 || column != 3 {
				t.Fatalf("a[%d] is at %d:%d, want %d:3", i, line, column, i+2)
			}
		}
	})
}
