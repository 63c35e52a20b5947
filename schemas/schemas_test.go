package schemas

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/schemagen/gen"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
)

// What is checked in is what `make generate` writes.
func TestFresh(t *testing.T) {
	want, err := gen.Files("..")
	if err != nil {
		t.Fatal(err)
	}
	crds, sources, err := gen.CRDs("..")
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(want, crds)
	for name, content := range sources {
		want["../"+name] = content
	}
	for name, content := range want {
		got, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Errorf("%v: run make generate", err)
			continue
		}
		if !bytes.Equal(got, content) {
			t.Errorf("%s is stale: run make generate", name)
		}
	}
	for _, pattern := range []string{"*.json", "docs/*.md", "crds/*.yaml"} {
		have, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range have {
			if want[filepath.ToSlash(name)] == nil {
				t.Errorf("%s is generated from no kind: delete it", name)
			}
		}
	}
}

// compile is the schema of any kind.
func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	entries, err := fs.Glob(Files, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range entries {
		text, err := Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("https://fleetbroker.io/schemas/v1alpha1/"+name, doc); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile("https://fleetbroker.io/schemas/v1alpha1/fleetbroker.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, doc string) error {
	t.Helper()
	j, err := yaml.YAMLToJSONStrict([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(j))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// Every document of ours, wherever it stands, satisfies its schema.
func TestDocumentsSatisfyTheirSchemas(t *testing.T) {
	s := compile(t)
	n := 0
	for _, root := range []string{"testdata", "../examples", "../fleet-repo-template"} {
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(p) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			for _, doc := range strings.Split(string(text), "\n---\n") {
				if !strings.Contains(doc, "\napiVersion: fleetbroker.io/v1alpha1\n") && !strings.HasPrefix(doc, "apiVersion: fleetbroker.io/v1alpha1\n") {
					continue
				}
				n++
				if err := validate(t, s, doc); err != nil {
					t.Errorf("%s: %v", p, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 40 {
		t.Errorf("only %d documents were found", n)
	}
}

// The reader accepts what the schemas accept: the documents of the formats,
// every field of them.
func TestTheReaderAcceptsThem(t *testing.T) {
	in, err := tree.FromDisk("testdata/fleet", 0)
	if err != nil {
		t.Fatal(err)
	}
	diags, err := fleet.Validate(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diags {
		// The one intent that has every field has two that do not go together.
		if d.Severity == fleet.Warning && d.Code == "NoEffect" && strings.Contains(d.Message, "spec.update.maxUnavailable: 0 does not hold") {
			continue
		}
		t.Errorf("%s %s", d.Severity, d)
	}
}

const head = "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: a, namespace: b}\nspec:\n"

func TestMistakesAreFound(t *testing.T) {
	s := compile(t)
	if err := validate(t, s, head+"  resources: {gpu: 1}\n"); err != nil {
		t.Fatal(err)
	}
	for name, doc := range map[string]string{
		"unknown field":      head + "  resources: {gpu: 1}\n  budgett: {}\n",
		"unknown gpu field":  head + "  resources: {gpu: {counts: 1}}\n",
		"missing resources":  head + "  priority: 1\n",
		"money in words":     head + "  resources: {gpu: 1}\n  budget: {maxHourly: much}\n",
		"enum":               head + "  resources: {gpu: 1}\n  stage: peers\n",
		"day":                head + "  resources: {gpu: 1}\n  schedule: {windows: [{days: [Mo], from: \"1\", to: \"2\"}]}\n",
		"quantity":           head + "  resources: {cpu: four}\n",
		"resource name":      head + "  resources: {memroy: 1Gi}\n",
		"duration":           head + "  resources: {gpu: 1}\n  schedule: {duration: 3d5}\n",
		"time":               head + "  resources: {gpu: 1}\n  schedule: {notBefore: tomorrow}\n",
		"spread":             head + "  resources: {gpu: 1}\n  placement: {spread: {on: region}}\n",
		"name":               strings.Replace(head, "name: a", "name: A", 1) + "  resources: {gpu: 1}\n",
		"no namespace":       strings.Replace(head, ", namespace: b", "", 1) + "  resources: {gpu: 1}\n",
		"unknown kind":       strings.Replace(head, "ResourceIntent", "Intent", 1) + "  resources: {gpu: 1}\n",
		"of another version": strings.Replace(head, "v1alpha1", "v1", 1) + "  resources: {gpu: 1}\n",
	} {
		if err := validate(t, s, doc); err == nil {
			t.Errorf("%s: was accepted", name)
		}
	}
}

// Every field that a person can write has a description: editors show it.
func TestEveryFieldIsDescribed(t *testing.T) {
	names, err := fs.Glob(Files, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Defs map[string]struct {
				Properties map[string]struct {
					Description string
				}
			} `json:"$defs"`
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		var bare []string
		for def, d := range doc.Defs {
			for field, p := range d.Properties {
				if p.Description == "" {
					bare = append(bare, def+"."+field)
				}
			}
		}
		if slices.Sort(bare); len(bare) > 0 {
			t.Errorf("%s: no description of %v", name, bare)
		}
	}
}
