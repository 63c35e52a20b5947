package delivery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fleets"
	"github.com/fleetbroker/fleetbroker/internal/delivery/reading"
	"github.com/fleetbroker/fleetbroker/internal/delivery/versions"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

const (
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
	// applied is the annotation with the hash.
	applied string
	// u carries the ApplySet's label and the hash. Never modified.
	u *unstructured.Unstructured
}

// manifestFile reports whether a file of a tree holds objects.
func manifestFile(name string) bool {
	return strings.HasSuffix(name, ".yaml") && path.Base(name) != "kustomization.yaml"
}

// parseObjects reads one manifest file, as far as its objects may be delivered.
// set is that of its members.
func parseObjects(name string, text []byte, set fleets.Set) ([]*object, error) {
	list, ok := readGenerated(text)
	if !ok {
		var err error
		if list, err = reading.Objects(text); err != nil {
			return nil, fmt.Errorf("read manifest %s: %w", name, err)
		}
	}
	out := make([]*object, 0, len(list))
	var errs []error
	for _, u := range list {
		o, err := newObject(u, set)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s is not delivered: %w", name, err))
			continue
		}
		out = append(out, o)
	}
	return out, errors.Join(errs...)
}

// readGenerated reads documents as the daemon writes them, several times faster
// than package reading does, which has all others: false.
func readGenerated(text []byte) ([]*unstructured.Unstructured, bool) {
	var list []*unstructured.Unstructured
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var u unstructured.Unstructured
		if err := genyaml.UnmarshalStrict(doc, &u); err != nil || !reading.IsObject(&u) || u.IsList() {
			return nil, false
		}
		list = append(list, &u)
	}
	return list, true
}

func newObject(u *unstructured.Unstructured, set fleets.Set) (*object, error) {
	k := key{kind(u.GetKind()), u.GetNamespace(), u.GetName()}
	if _, ok := kinds[k.Kind]; !ok || k.Kind == kindNode {
		return nil, fmt.Errorf("%s %s is of no kind that is delivered", u.GetAPIVersion(), k)
	}
	if err := manifests.Admissible(u.Object); err != nil {
		return nil, err
	}
	if k.Kind != kindNamespace { // members are pruned; a Namespace never is
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[fleets.LabelPartOf] = set.ID()
		u.SetLabels(labels)
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	o := &object{key: k, hash: hex.EncodeToString(sum[:8]), applied: set.Applied(string(k.Kind)), u: u}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[o.applied] = o.hash
	u.SetAnnotations(annotations)
	return o, nil
}

// in is an object in the version in which a cluster serves its kind.
func (o *object) in(gvr schema.GroupVersionResource) *object {
	if o == nil || o.u.GetAPIVersion() == gvr.GroupVersion().String() {
		return o
	}
	out := *o
	out.u = versions.In(o.u, gvr.GroupVersion())
	return &out
}

// desiredObjects follows what a consumer shall have: each change costs what
// differs from the last.
type desiredObjects struct {
	own fleets.Set
	// root is the ledger's tree, which Confirm is asked about.
	root    tree.Hash
	overlay tree.Hash
	// derived is what is rendered; given the tree that others rendered.
	derived derived
	given   tree.Tree
	byFile  map[string][]*object
	objects map[key]*object
	// contracts are the wanted objects of contract units, by name.
	contracts map[string]contractWant
	// problem says why an overlay is ignored, "" when it is not; refused what of
	// the rendered objects may not reach a cluster, by file.
	problem string
	refused map[string]string
	// differs and byContract say what of the ledger's tree is not as rendered.
	differs    []string
	byContract map[string]string
}

// load takes in what a consumer shall have and returns the units that changed.
// What can fail comes first: a failure leaves all as it was.
func (d *desiredObjects) load(consumer string, want Desired) (map[key]bool, error) {
	var changed map[string][]byte
	var err error
	now := &derived{}
	if want.Given {
		changed, err = d.takeGiven(want.Tree)
	} else {
		now, changed, err = d.derived.next(consumer, want)
	}
	if err != nil {
		return nil, err
	}
	overlaid := (!want.Overlay.IsZero() || !d.overlay.IsZero()) && (len(changed) > 0 || want.Overlay.Root != d.overlay || d.objects == nil)
	if overlaid {
		if changed, d.problem, err = overlay(consumer, now, want); err != nil {
			return nil, err
		}
	}
	d.root, d.given, d.overlay, d.derived = want.Tree.Root, tree.Tree{}, want.Overlay.Root, *now
	d.differs, d.byContract = now.refusals(consumer)
	if want.Given {
		d.root, d.given = want.Root, want.Tree
	}
	if overlaid {
		return d.replace(changed), nil
	}
	return d.follow(changed), nil
}

// overlay is all that is rendered with its overlay, and why that is ignored, ""
// when it is not.
func overlay(consumer string, now *derived, want Desired) (files map[string][]byte, problem string, err error) {
	var rendered map[string][]byte
	if want.Given {
		rendered, err = readFiles(want.Tree)
	} else {
		rendered, err = now.all(consumer)
	}
	if err != nil {
		return nil, "", err
	}
	return manifests.OverlayFiles(consumer, rendered, want.Overlay)
}

// takeGiven reads in what a tree differs from the one before.
func (d *desiredObjects) takeGiven(t tree.Tree) (map[string][]byte, error) {
	changed := map[string][]byte{}
	err := tree.Diff(d.given, t, func(name string, _, to tree.Entry) error {
		if to.Hash.IsZero() {
			changed[name] = nil
			return nil
		}
		text, err := t.Store.File(to.Hash, maxManifest)
		if err != nil {
			return fmt.Errorf("read manifest %s: %w", name, err)
		}
		changed[name] = text
		return nil
	})
	return changed, err
}

// follow reads the files that changed. One that may not reach a cluster is
// refused, and the rest is delivered.
func (d *desiredObjects) follow(changed map[string][]byte) map[key]bool {
	if d.objects == nil {
		d.objects, d.contracts, d.byFile, d.refused = map[key]*object{}, map[string]contractWant{}, map[string][]*object{}, map[string]string{}
	}
	units := map[key]bool{}
	for name := range changed {
		for _, o := range d.byFile[name] {
			d.set(o.key, nil)
			units[o.key.unit()] = true
		}
		delete(d.byFile, name)
		delete(d.refused, name)
	}
	for name, text := range changed {
		if text == nil || !manifestFile(name) {
			continue
		}
		objects, err := parseObjects(name, text, d.own)
		if err != nil {
			d.refused[name] = err.Error()
		}
		d.byFile[name] = objects
		for _, o := range objects {
			d.set(o.key, o)
			units[o.key.unit()] = true
		}
	}
	return units
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

// replace takes files for all that was there, and returns the units that changed.
func (d *desiredObjects) replace(files map[string][]byte) map[key]bool {
	before := d.objects
	d.objects = nil
	d.follow(files)
	changed := map[key]bool{}
	for k, o := range before {
		if d.objects[k] == nil || d.objects[k].hash != o.hash {
			changed[k.unit()] = true
		}
	}
	for k := range d.objects {
		if before[k] == nil {
			changed[k.unit()] = true
		}
	}
	return changed
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
