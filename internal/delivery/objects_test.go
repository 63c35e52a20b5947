package delivery

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fleets"
	"github.com/fleetbroker/fleetbroker/internal/delivery/reading"
)

func manifest(name, cpu string) []byte {
	return []byte(fmt.Sprintf(`apiVersion: authentication.liqo.io/v1beta1
kind: ResourceSlice
metadata: {name: %s, namespace: liqo-tenant-paris}
spec: {resources: {cpu: %q}}
`, name, cpu))
}

// Following a tree from change to change gives what reading it at once gives,
// names exactly the units that changed, and overlays coming and going in
// between make no difference.
func TestLoadFollowsTrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := tree.NewMemory()
		overlay := store.Build(map[string][]byte{"kustomization.yaml": []byte("kind: Kustomization\n")})
		followed := desiredObjects{own: fleets.Set{Namespace: "a"}}
		before := map[key]string{}
		for range rapid.IntRange(1, 5).Draw(rt, "rounds") {
			files := map[string][]byte{}
			var listed []string
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 1, 5, rapid.ID).Draw(rt, "slices") {
				file := rapid.SampledFrom([]string{"", "moved-"}).Draw(rt, "file") + fmt.Sprintf("s%d.yaml", n)
				files[file] = manifest(fmt.Sprintf("s%d", n), rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "cpu"))
				listed = append(listed, file)
			}
			files["kustomization.yaml"] = []byte("resources: [" + strings.Join(listed, ", ") + "]\n")
			now := store.Build(files)
			over := tree.Tree{}
			if rapid.IntRange(0, 3).Draw(rt, "overlaid") == 0 {
				over = overlay
			}
			want := Desired{Given: true, Tree: now, Overlay: over}
			changed, err := followed.load("rome", want)
			if err != nil {
				rt.Fatal(err)
			}
			fresh := desiredObjects{own: fleets.Set{Namespace: "a"}}
			if _, err := fresh.load("rome", want); err != nil {
				rt.Fatal(err)
			}
			after := hashes(followed)
			if !maps.Equal(after, hashes(fresh)) {
				rt.Fatalf("got %v, want %v", after, hashes(fresh))
			}
			if !reflect.DeepEqual(followed.contracts, contractsOf(followed)) {
				rt.Fatalf("contracts do not match objects")
			}
			for k := range union(before, after) {
				if before[k] != after[k] && !changed[k.unit()] {
					rt.Fatalf("%s changed and was not named; named: %v", k, changed)
				}
			}
			before = after
		}
	})
}

func hashes(d desiredObjects) map[key]string {
	out := map[key]string{}
	for k, o := range d.objects {
		out[k] = o.hash
	}
	return out
}

func contractsOf(d desiredObjects) map[string]contractWant {
	out := map[string]contractWant{}
	for k, o := range d.objects {
		out[k.Name] = contractWant{slice: o}
	}
	return out
}

func union(a, b map[key]string) map[key]bool {
	out := map[key]bool{}
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}

func TestParseObjectsRefusesWhatIsNotDelivered(t *testing.T) {
	for name, text := range map[string]string{
		"a kind of others":   "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\n",
		"another version":    "apiVersion: offloading.liqo.io/v1alpha1\nkind: VirtualNode\nmetadata: {name: a, namespace: b}\n",
		"what Liqo makes":    "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n",
		"something else":     "apiVersion: v1\nkind: [\n",
		"a made-up Contract": "apiVersion: v1\nkind: Contract\nmetadata: {name: a}\n",
	} {
		if objects, err := parseObjects("x.yaml", []byte(text), fleets.Set{Namespace: "a"}); err == nil && len(objects) > 0 {
			t.Errorf("%s: got %v, want an error", name, objects[0].key)
		}
	}
}

// What is read as the daemon writes it is what is read of any other file, and all files
// of a consumer are read so.
func TestGeneratedManifestsAreReadAsOthersAre(t *testing.T) {
	archives, err := filepath.Glob("../manifests/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, archive := range archives {
		golden, err := txtar.ParseFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range golden.Files {
			if !manifestFile(file.Name) {
				continue
			}
			got, ok := readGenerated(file.Data)
			want, err := reading.Objects(file.Data)
			if n++; err != nil || !ok || !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %s: got %v (%t), want %v (%v)", file.Name, archive, got, ok, want, err)
			}
		}
	}
	if n < 10 {
		t.Fatalf("%d files: has not tested much", n)
	}
	for what, text := range map[string]string{
		"a list":        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata:\n    name: a\n",
		"no name":       "apiVersion: v1\nkind: Namespace\n",
		"a repetition":  "apiVersion: v1\nkind: Namespace\nkind: Namespace\nmetadata:\n  name: a\n",
		"nothing":       "# to do\n",
		"a tail":        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n---\n",
		"for kustomize": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata:\n  name: a\n",
	} {
		if list, ok := readGenerated([]byte(text)); ok {
			t.Errorf("%s: got %v, want it left to the library", what, list)
		}
	}
}

// A Namespace is never a member of the set, and so never pruned.
func TestMemberKinds(t *testing.T) {
	got := memberKinds()
	if slices.Contains(got, "Namespace") || slices.Contains(got, "Node") || !slices.Contains(got, "ResourceSlice.authentication.liqo.io") || !slices.Contains(got, "ResourceQuota") {
		t.Errorf("got kinds %v", got)
	}
}
