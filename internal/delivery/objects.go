package delivery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

const (
	// annotationApplied carries the hash of what was applied last.
	annotationApplied = v1alpha1.Group + "/applied"
	// annotationPoke on a slice makes Liqo look at it again; its value is the
	// uid of the virtual node it was poked for.
	annotationPoke = v1alpha1.Group + "/poke"

	// annotationReminded on a slice and on the NamespaceMaps beside it makes Liqo
	// replicate them anew; its value is since when the provider lacks the slice.
	annotationReminded = v1alpha1.Group + "/reminded"

	// maxManifest is a generous bound of a generated file, in bytes.
	maxManifest = 4 << 20
)

// object is one wanted object, ready to be applied.
type object struct {
	key  key
	hash string
	// u carries the ApplySet's label and the hash. Never modified.
	u *unstructured.Unstructured
}

// manifestFile reports whether a file of a tree holds objects.
func manifestFile(name string) bool {
	return strings.HasSuffix(name, ".yaml") && path.Base(name) != "kustomization.yaml"
}

// parseObjects reads one manifest file. applySet is the id its members carry.
func parseObjects(name string, text []byte, applySet string) ([]*object, error) {
	list, ok := readGenerated(text)
	if !ok {
		var err error
		if list, err = ssautil.ReadObjects(bytes.NewReader(text)); err != nil {
			return nil, fmt.Errorf("read manifest %s: %w", name, err)
		}
	}
	out := make([]*object, 0, len(list))
	for _, u := range list {
		o, err := newObject(u, applySet)
		if err != nil {
			return nil, fmt.Errorf("read manifest %s: %w", name, err)
		}
		out = append(out, o)
	}
	return out, nil
}

// readGenerated reads documents as the daemon writes them, several times faster
// than the library does, which has all others: false.
func readGenerated(text []byte) ([]*unstructured.Unstructured, bool) {
	var list []*unstructured.Unstructured
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var u unstructured.Unstructured
		if err := genyaml.UnmarshalStrict(doc, &u); err != nil || !ssautil.IsKubernetesObject(&u) || ssautil.IsKustomization(&u) || u.IsList() {
			return nil, false
		}
		list = append(list, &u)
	}
	return list, true
}

func newObject(u *unstructured.Unstructured, applySet string) (*object, error) {
	k := key{kind(u.GetKind()), u.GetNamespace(), u.GetName()}
	info, ok := kinds[k.Kind]
	if !ok || k.Kind == kindNode || info.gvr.GroupVersion().String() != u.GetAPIVersion() {
		return nil, fmt.Errorf("%s %s is of no kind that is delivered", u.GetAPIVersion(), k)
	}
	if k.Kind != kindNamespace { // members are pruned; a Namespace never is
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[labelPartOf] = applySet
		u.SetLabels(labels)
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	o := &object{key: k, hash: hex.EncodeToString(sum[:8]), u: u}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationApplied] = o.hash
	u.SetAnnotations(annotations)
	return o, nil
}

// desiredObjects follows a consumer's tree: each new tree costs what differs
// from the last.
type desiredObjects struct {
	applySet string
	tree     tree.Tree
	overlay  tree.Hash
	byFile   map[string][]*object
	objects  map[key]*object
	// contracts are the wanted objects of contract units, by name.
	contracts map[string]contractWant
	// problem says why an overlay is ignored, "" when it is not.
	problem string
}

// load reads a new tree and returns the units that changed.
func (d *desiredObjects) load(consumer string, t, overlay tree.Tree) (map[key]bool, error) {
	if d.objects != nil && t.Root == d.tree.Root && overlay.Root == d.overlay {
		return nil, nil
	}
	if !overlay.IsZero() || !d.overlay.IsZero() {
		return d.loadOverlaid(consumer, t, overlay)
	}
	changed := map[key]bool{}
	files := map[string][]*object{}
	err := tree.Diff(d.tree, t, func(name string, _, to tree.Entry) error {
		if !manifestFile(name) {
			return nil
		}
		if to.Hash.IsZero() {
			files[name] = nil
			return nil
		}
		text, err := t.Store.File(to.Hash, maxManifest)
		if err != nil {
			return fmt.Errorf("read manifest %s: %w", name, err)
		}
		files[name], err = parseObjects(name, text, d.applySet)
		return err
	})
	if err != nil {
		return nil, err
	}
	if d.objects == nil {
		d.objects, d.contracts, d.byFile = map[key]*object{}, map[string]contractWant{}, map[string][]*object{}
	}
	for name := range files {
		for _, o := range d.byFile[name] {
			d.set(o.key, nil)
			changed[o.key.unit()] = true
		}
	}
	for name, objects := range files {
		d.byFile[name] = objects
		if objects == nil {
			delete(d.byFile, name)
		}
		for _, o := range objects {
			d.set(o.key, o)
			changed[o.key.unit()] = true
		}
	}
	d.tree = t
	return changed, nil
}

// set puts an object in, or takes one out.
func (d *desiredObjects) set(k key, o *object) {
	if o == nil {
		delete(d.objects, k)
	} else {
		d.objects[k] = o
	}
	unit := k.unit()
	if unit.Kind != kindContract {
		return
	}
	want := d.contracts[unit.Name]
	if k.Kind == kindSlice {
		want.slice = o
	} else {
		want.nodes = replaced(want.nodes, k, o)
	}
	d.contracts[unit.Name] = want
	if want.slice == nil && len(want.nodes) == 0 {
		delete(d.contracts, unit.Name)
	}
}

// replaced is a new list in which an object stands for the one of its key, in
// order; nil takes that one out.
func replaced(list []*object, k key, o *object) []*object {
	out := make([]*object, 0, len(list)+1)
	for _, had := range list {
		if had.key != k {
			out = append(out, had)
		}
	}
	if o != nil {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *object) int { return compareKeys(a.key, b.key) })
	return out
}

// loadOverlaid builds the whole tree with its overlay. An overlay that cannot
// be used is ignored and said so.
func (d *desiredObjects) loadOverlaid(consumer string, t, overlay tree.Tree) (map[key]bool, error) {
	rendered, err := readFiles(t)
	if err != nil {
		return nil, err
	}
	patches, err := readFiles(overlay)
	if err != nil {
		return nil, err
	}
	text, problem := manifests.ApplyOverlay(consumer, rendered, patches)
	d.problem = problem
	next := map[key]*object{}
	for name, b := range text {
		if !manifestFile(name) {
			continue
		}
		objects, err := parseObjects(name, b, d.applySet)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			next[o.key] = o
		}
	}
	changed := map[key]bool{}
	for k, o := range d.objects {
		if next[k] == nil || next[k].hash != o.hash {
			changed[k.unit()] = true
		}
	}
	for k := range next {
		if d.objects[k] == nil {
			changed[k.unit()] = true
		}
	}
	d.objects, d.contracts, d.byFile = map[key]*object{}, map[string]contractWant{}, map[string][]*object{}
	d.tree, d.overlay = t, overlay.Root
	for k, o := range next {
		d.set(k, o)
	}
	if overlay.IsZero() { // back to following differences: by file
		d.objects, d.tree = nil, tree.Tree{}
		if _, err := d.load(consumer, t, overlay); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

func readFiles(t tree.Tree) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := t.Walk(func(name string, e tree.Entry) error {
		if e.Kind != tree.File && e.Kind != tree.Executable {
			return nil
		}
		b, err := t.Store.File(e.Hash, maxManifest)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		out[name] = b
		return nil
	})
	return out, err
}
