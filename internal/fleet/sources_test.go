package fleet

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// withSources is a good fleet that names sources.
func withSources(entries string) files {
	f := maps.Clone(base())
	f["fleet.yaml"] = group + "kind: Fleet\nmetadata: {name: acme}\nspec:\n  sources:\n" + entries
	return f
}

// copied is a ledger with the copy of a source.
func copied(t *testing.T, into map[string][]byte, name string, list files) map[string][]byte {
	t.Helper()
	record := v1alpha1.SourceCopy{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSourceCopy}, Metadata: v1alpha1.Metadata{Name: name},
		URL: "https://git.example.org/" + name + ".git", Branch: "main", Commit: strings.Repeat("a", 40),
	}
	for _, p := range slices.Sorted(maps.Keys(list)) {
		content := []byte(list[p])
		into["sources/"+name+"/"+p] = content
		record.Files = append(record.Files, v1alpha1.SourceCopyFile{Path: p, Hash: tree.BlobHash(content).String(), Commit: strings.Repeat("b", 40), Author: "Ada <ada@example.org>"})
	}
	text, err := genyaml.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	into["sources/"+name+"/source.yaml"] = text
	return into
}

const needs = `resources: {gpu: "H100:1"}`

const twoSources = `    - {name: own, url: "https://git.example.org/own.git", tenants: [vision]}
    - {name: more, url: "ssh://git@git.example.org/more.git", branch: trunk, tenants: [vision]}
`

func TestSources_IntentsOfCopies(t *testing.T) {
	r := NewReader()
	in := withSources(twoSources)
	ledger := copied(t, map[string][]byte{}, "own", files{
		"intents/vision/infer.yaml":       intent("vision", "infer", needs),
		"intents/vision/deep/broken.yaml": intent("vision", "broken", "consumr: rome"),
		"intents/other/evil.yaml":         intent("other", "evil", needs),
	})
	copied(t, ledger, "more", files{"intents/vision/same.yaml": intent("vision", "infer", needs), "intents/vision/single.yaml": intent("vision", "single", needs)})
	copied(t, ledger, "stray", files{"intents/vision/stray.yaml": intent("vision", "stray", needs)})
	m := tree.NewMemory()
	src := Sources{Inputs: in.build(m), Ledger: tree.NewMemory().Build(ledger)}
	f, err := r.ReadAll(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	got := describe(f)
	for _, want := range []string{"vision/single"} {
		if !slices.Contains(names(f), want) {
			t.Errorf("intents %v, want %s among them\n%s", names(f), want, got)
		}
	}
	for _, not := range []string{"vision/infer", "other/evil", "vision/stray", "vision/broken"} {
		if slices.Contains(names(f), not) {
			t.Errorf("intents %v, want no %s", names(f), not)
		}
	}
	var frozen []string
	for _, z := range f.Frozen {
		frozen = append(frozen, strings.Trim(z.Tenant+"/"+z.Intent+" "+z.Path, "/ "))
	}
	for _, want := range []string{"vision/infer", "sources/own/intents/vision/deep/broken.yaml"} {
		if !slices.Contains(frozen, want) {
			t.Errorf("frozen %q, want %q among them", frozen, want)
		}
	}
	if commit, author, ok := f.Sourced("sources/more/intents/vision/single.yaml"); !ok || author != "Ada <ada@example.org>" || commit != strings.Repeat("b", 40) {
		t.Errorf("Sourced = %q, %q, %v", commit, author, ok)
	}
	if _, _, ok := f.Sourced("intents/vision/train.yaml"); ok {
		t.Error("a file of the inputs is said to be of a source")
	}

	// Reading on equals reading from nothing; a copy read from a tree of its own says
	// the same as from the ledger.
	delete(ledger, "sources/more/intents/vision/same.yaml")
	next := Sources{Inputs: src.Inputs, Copies: tree.NewMemory().Build(ledger), Last: f}
	on, err := r.ReadAll(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := NewReader().ReadAll(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	if describe(on) != describe(fresh) {
		t.Errorf("read on:\n%s\nfrom nothing:\n%s", describe(on), describe(fresh))
	}
	if !slices.Contains(names(on), "vision/infer") {
		t.Errorf("intents %v, want vision/infer, which one source names now", names(on))
	}
	// An entry that is gone takes its intents along, whatever lies on the ledger.
	gone, err := r.ReadAll(t.Context(), Sources{Inputs: base().build(m), Ledger: next.Copies, Last: on})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(names(gone), "vision/single") {
		t.Errorf("intents %v, and no source is named", names(gone))
	}
}

func TestSources_Entries(t *testing.T) {
	for name, c := range map[string]struct{ entry, want string }{
		"good":                    {`{name: own, url: "https://git.example.org:8443/own.git", tenants: [vision]}`, ""},
		"ssh":                     {`{name: own, url: "ssh://git@git.example.org/own.git", tenants: [vision], credentialsRef: {name: own-git}}`, ""},
		"no name":                 {`{url: "https://git.example.org/own.git", tenants: [vision]}`, "name is missing"},
		"bad name":                {`{name: ../x, url: "https://git.example.org/own.git", tenants: [vision]}`, "only lower-case letters"},
		"file":                    {`{name: own, url: "file:///srv/git/own.git", tenants: [vision]}`, `scheme "file" is not allowed; use https or ssh`},
		"http":                    {`{name: own, url: "http://git.example.org/own.git", tenants: [vision]}`, `scheme "http" is not allowed`},
		"path":                    {`{name: own, url: "/srv/git/own.git", tenants: [vision]}`, "is not a URL"},
		"scp form":                {`{name: own, url: "git@git.example.org:own.git", tenants: [vision]}`, "is not a URL"},
		"link-local":              {`{name: own, url: "https://169.254.169.254/latest", tenants: [vision]}`, "link-local"},
		"link-local mapped":       {`{name: own, url: "https://[::ffff:169.254.169.254]/latest", tenants: [vision]}`, "link-local"},
		"password":                {`{name: own, url: "https://me:secret@git.example.org/own.git", tenants: [vision]}`, "it holds credentials"},
		"password that is no URL": {`{name: own, url: "https://me:secret%zz@git.example.org/own.git", tenants: [vision]}`, "it is not a URL"},
		"secret in a query":       {`{name: own, url: "https://git.example.org/own.git?token=secret", tenants: [vision]}`, "it has a query"},
		"no tenants":              {`{name: own, url: "https://git.example.org/own.git", tenants: []}`, "tenants is empty"},
		"branch":                  {`{name: own, url: "https://git.example.org/own.git", branch: ../x, tenants: [vision]}`, "is not the name of a branch"},
		"forge":                   {`{name: own, url: "https://git.example.org/own.git", tenants: [vision], forge: {type: gitea, url: "https://git.example.org", repository: own/gpus, user: bot}}`, ""},
		"forge unknown":           {`{name: own, url: "https://git.example.org/own.git", tenants: [vision], forge: {type: svn}}`, `"svn" is no type of forge; write github, gitlab or gitea`},
		"forge over http":         {`{name: own, url: "https://git.example.org/own.git", tenants: [vision], forge: {type: gitea, url: "http://me:secret@git.example.org"}}`, "it is no https URL"},
		"forge with a password":   {`{name: own, url: "https://git.example.org/own.git", tenants: [vision], forge: {type: gitea, url: "https://me:secret@git.example.org"}}`, "it holds credentials"},
		"unknown field":           {`{name: own, url: "https://git.example.org/own.git", tenants: [vision], password: x}`, "password"},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, NewReader(), withSources("    - "+c.entry+"\n"), nil)
			var errs []string
			for _, d := range f.Diagnostics {
				if d.Severity == Error && d.File == fleetFile {
					errs = append(errs, d.String())
				}
			}
			switch got := strings.Join(errs, "\n"); {
			case c.want == "" && got != "":
				t.Errorf("got %q, want no error", got)
			case !strings.Contains(got, c.want):
				t.Errorf("got %q, want %q", got, c.want)
			case strings.Contains(got, "secret"):
				t.Errorf("%q shows a password", got)
			}
		})
	}
}
