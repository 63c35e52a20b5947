package fleet

import (
	stdctx "context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// graft replaces an entry of the base fleet's tenant directory.
func graft(t *testing.T, e func(m *tree.Memory) tree.Entry) *Fleet {
	t.Helper()
	m := tree.NewMemory()
	root := base().build(m)
	replace := func(h tree.Hash, with tree.Entry) tree.Hash {
		list, err := m.Dir(h)
		if err != nil {
			t.Fatal(err)
		}
		list = slices.DeleteFunc(slices.Clone(list), func(o tree.Entry) bool { return o.Name == with.Name })
		return m.AddDir(append(list, with))
	}
	intents, err := root.Find("intents")
	if err != nil {
		t.Fatal(err)
	}
	vision, err := root.Find("intents/vision")
	if err != nil {
		t.Fatal(err)
	}
	h := replace(vision.Hash, e(m))
	h = replace(intents.Hash, tree.Entry{Name: "vision", Kind: tree.Dir, Hash: h})
	root.Root = replace(root.Root, tree.Entry{Name: "intents", Kind: tree.Dir, Hash: h})
	f, err := NewReader().Read(stdctx.Background(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWhatIsNotFollowed(t *testing.T) {
	deep := func(m *tree.Memory) tree.Entry {
		e := tree.Entry{Name: "x.yaml", Kind: tree.File, Hash: m.AddFile([]byte("a: 1"))}
		for range 40 {
			e = tree.Entry{Name: "d", Kind: tree.Dir, Hash: m.AddDir([]tree.Entry{e})}
		}
		return e
	}
	file := func(name string, kind tree.Kind) func(m *tree.Memory) tree.Entry {
		return func(m *tree.Memory) tree.Entry {
			return tree.Entry{Name: name, Kind: kind, Hash: m.AddFile([]byte("/etc/passwd"))}
		}
	}
	for name, tc := range map[string]struct {
		entry func(m *tree.Memory) tree.Entry
		want  string
	}{
		"symbolic link":     {file("x.yaml", tree.Symlink), "intents/vision/x.yaml:1:1: symbolic links are not followed"},
		"link to directory": {file("dir", tree.Symlink), "intents/vision/dir:1:1: symbolic links are not followed"},
		"submodule":         {file("sub", tree.Submodule), "submodules are not read"},
		"long path":         {file(strings.Repeat("x", 1100)+".yaml", tree.File), "longer than 1024 bytes"},
		"odd name":          {file("a\nb.yaml", tree.File), "control characters"},
		"not UTF-8":         {file("a\xff.yaml", tree.File), "control characters"},
		"deep":              {deep, "deeper than 32 directories"},
	} {
		f := graft(t, tc.entry)
		if len(f.Errors()) != 1 || !strings.Contains(f.Diagnostics[0].String(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, diagnostics(f), tc.want)
		}
		if len(f.Frozen) != 2 || len(f.Intents) != 1 {
			t.Errorf("%s: frozen %v, intents %v", name, f.Frozen, names(f))
		}
	}
}

func TestLargeFilesAreRefusedUnread(t *testing.T) {
	f := read(t, NewReader(), base().with("intents/vision/big.yaml", "#"+strings.Repeat("x", strictyaml.MaxSize)), nil)
	if len(f.Errors()) != 1 || !strings.Contains(f.Diagnostics[0].Message, "larger than 1024 KiB") || len(f.Intents) != 1 {
		t.Errorf("got %v", diagnostics(f))
	}
}

// A hundred bad files among a hundred good ones hurt none of these.
func TestAHundredBadFiles(t *testing.T) {
	bad := []string{"a: [", "\t", "\xff", "{}", intent("vision", "z", "resource: 1"), "a: &a [*a]", "---\n---\nx", "kind: Secret\napiVersion: v1\n", intent("other", "z", "resources: {}"), group + "kind: ResourceIntent\n"}
	f := base()
	for i := range 100 {
		f[fmt.Sprintf("intents/vision/good-%02d.yaml", i)] = intent("vision", fmt.Sprintf("good-%02d", i), "resources: {cpu: 1}")
		f[fmt.Sprintf("intents/vision/bad-%02d.yaml", i)] = bad[i%len(bad)]
	}
	got := read(t, NewReader(), f, nil)
	if len(got.Intents) != 101 {
		t.Errorf("%d intents, want 101: %v", len(got.Intents), names(got))
	}
	frozen := map[string]bool{}
	for _, fr := range got.Frozen {
		frozen[fr.Path] = true
		if fr.Intent != "" && fr.Intent != "z" {
			t.Errorf("frozen: %+v", fr)
		}
	}
	for i := range 100 {
		if p := fmt.Sprintf("intents/vision/bad-%02d.yaml", i); !frozen[p] {
			t.Errorf("%s is not frozen", p)
		}
	}
}

func TestOddTops(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string
		want  string
	}{
		"misspelt directory":   {[]string{"intent/vision/x.yaml", "a: 1"}, `warning intent:1:1: the directory intent is not read (did you mean "intents"?)`},
		"no fleet.yaml":        {[]string{"fleet.yaml", ""}, "error fleet.yaml:1:1: fleet.yaml is missing"},
		"intents as a file":    {[]string{"intents/vision/a.yaml", "", "intents", "x"}, "error intents:1:1: intents is not what is expected"},
		"a directory of some":  {[]string{"clusters/old/x.yaml", base()["clusters/rome.yaml"]}, "error clusters/old:1:1: directories are not read here"},
		"tenant of that name":  {[]string{"tenants/namespaces.yaml", group + "kind: Tenant\nmetadata: {name: namespaces}\nspec: {consumers: [rome]}\n"}, "no tenant may be called namespaces"},
		"tenant of the fleet":  {[]string{"tenants/fleetbroker.yaml", group + "kind: Tenant\nmetadata: {name: fleetbroker}\nspec: {consumers: [rome]}\n"}, "no tenant may be called fleetbroker"},
		"file and name differ": {[]string{"clusters/oslo.yaml", base()["clusters/rome.yaml"]}, `metadata.name is "rome", but the file is oslo.yaml`},
		"private key":          {[]string{"tenants/vision.yaml", group + "kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], signers: [{principal: a, publicKey: '-----BEGIN OPENSSH PRIVATE KEY-----'}]}\n"}, "is a private key"},
		"policy":               {[]string{"fleet.yaml", group + "kind: Fleet\nmetadata: {name: acme}\nspec:\n  policies:\n  - name: eu\n    require: |\n      true &&\n      flavor.locaton.country == \"FR\"\n"}, `fleet.yaml:9:13: spec.policies[0].require: unknown field "locaton" (did you mean "location"?)`},
	} {
		f := read(t, NewReader(), base().with(tc.files...), nil)
		if !strings.Contains(strings.Join(diagnostics(f), "\n"), tc.want) {
			t.Errorf("%s: got %v, want %s", name, diagnostics(f), tc.want)
		}
	}
}

// Requests are read beside the intents, from the ledger's tree, and one name
// in both is frozen.
func TestRequests(t *testing.T) {
	inputs := base().build(tree.NewMemory())
	ledger := files{
		"contracts/vision/aa/x/x.yaml":       "not read",
		"requests/vision/202611/r-1.yaml":    intent("vision", "r-1", "resources: {gpu: 1}"),
		"requests/vision/202611/r-2.yaml":    intent("vision", "r-2", "resources: {gpu: 1}, consumer: nowhere"),
		"requests/vision/202611/r-3.yaml":    intent("vision", "a", "resources: {gpu: 1}"),
		"requests/gone/202611/r-4.yaml":      intent("gone", "r-4", "resources: {gpu: 1}"),
		"requests/vision/202611/broken.yaml": "x: [",
	}.build(tree.NewMemory())
	r := NewReader()
	f, err := r.ReadAll(stdctx.Background(), Sources{Inputs: inputs, Ledger: ledger})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(f), []string{"gone/r-4", "vision/r-1", "vision/r-2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if f.Intents[0].ProblemCode != "UnknownTenant" || f.Intents[1].Problem != "" || !strings.HasPrefix(f.Intents[2].Problem, "requests/vision/202611/r-2.yaml:4:") {
		t.Errorf("problems: %q, %q, %q", f.Intents[0].Problem, f.Intents[1].Problem, f.Intents[2].Problem)
	}
	var frozen []string
	for _, fr := range f.Frozen {
		frozen = append(frozen, fr.Path+fr.Tenant+fr.Intent)
	}
	if want := []string{"visiona", "requests/vision/202611/broken.yaml"}; !slices.Equal(frozen, want) {
		t.Errorf("frozen %v, want %v", frozen, want)
	}
	again, err := r.ReadAll(stdctx.Background(), Sources{Inputs: inputs, Ledger: ledger, Last: f})
	if err != nil || describe(again) != describe(f) {
		t.Errorf("read again: %v", err)
	}
}

// failing is a store that cannot be read.
type failing struct{ tree.Store }

func (failing) File(tree.Hash, int64) ([]byte, error) { return nil, errors.New("disk is gone") }

// A store that fails is an error and leaves the reader as it was.
func TestStoreFailure(t *testing.T) {
	m := tree.NewMemory()
	r := NewReader()
	first, err := r.Read(stdctx.Background(), base().build(m), nil)
	if err != nil {
		t.Fatal(err)
	}
	next := base().with("intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}")).build(m)
	if _, err := r.Read(stdctx.Background(), tree.Tree{Store: failing{m}, Root: next.Root}, first); err == nil {
		t.Fatal("the failure was not told")
	}
	f, err := r.Read(stdctx.Background(), next, first)
	if err != nil || len(f.Intents) != 2 || len(f.Diagnostics) > 0 {
		t.Errorf("after the failure: %v, %v", err, f)
	}
	ctx, cancel := stdctx.WithCancel(stdctx.Background())
	cancel()
	if _, err := NewReader().Read(ctx, next, nil); !errors.Is(err, stdctx.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// late is a context that is cancelled after it was asked so many times.
type late struct {
	stdctx.Context
	left int
}

func (l *late) Err() error {
	if l.left--; l.left < 0 {
		return stdctx.Canceled
	}
	return nil
}

// A read that is cancelled half-way does not show in later ones.
func TestCancelledHalfWay(t *testing.T) {
	m := tree.NewMemory()
	good, bad := base().build(m), base().with("clusters/rome.yaml", "").build(m)
	for name, trees := range map[string][2]tree.Tree{"good then bad": {good, bad}, "bad then good": {bad, good}} {
		for asked := 0; ; asked++ {
			r := NewReader()
			first, err := r.Read(stdctx.Background(), trees[0], nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Read(&late{stdctx.Background(), asked}, trees[1], first); err == nil {
				break
			}
			for i, at := range []tree.Tree{trees[1], trees[0]} {
				got, err := r.Read(stdctx.Background(), at, first)
				if err != nil {
					t.Fatal(err)
				}
				want, err := NewReader().Read(stdctx.Background(), at, first)
				if err != nil {
					t.Fatal(err)
				}
				if g, w := describe(got), describe(want); g != w {
					t.Errorf("%s, cancelled when asked %d times, read %d:\n%s\nwant\n%s", name, asked, i, g, w)
				}
			}
		}
	}
}

// FuzzRead: no file, wherever it lies, stops the reader or hurts the others.
func FuzzRead(f *testing.F) {
	for _, p := range sortedKeys(pieces) {
		for _, content := range pieces[p] {
			f.Add(content)
		}
	}
	f.Add(solver)
	f.Fuzz(func(t *testing.T, content string) {
		got := read(t, NewReader(), base().with("intents/vision/fuzz.yaml", content, "intents/nlp/fuzz.yaml", content, "flavors/paris/fuzz.yaml", content, "tenants/fuzz.yaml", content), nil)
		frozen := slices.ContainsFunc(got.Frozen, func(fr model.Freeze) bool { return fr.Intent == "a" })
		if !slices.Contains(names(got), "vision/a") && !frozen {
			t.Fatalf("the good intent is gone: %v", diagnostics(got))
		}
		for _, d := range got.Diagnostics {
			if d.File == "" || d.Line < 1 || d.Column < 1 || d.Message == "" {
				t.Fatalf("a diagnostic without a place: %+v", d)
			}
		}
	})
}
