package market

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// annotationState on a flavor of a market tree says that its provider was not
// Fresh: "<state> <since> [<grace ends>]". What the market knew is whole with
// it, so that a decision can be made again from the tree.
const annotationState = v1alpha1.Group + "/market-state"

// blobSuffix ends the names of a market tree's files.
const blobSuffix = ".yaml"

// Blob is one provider's flavors as a file of the market's tree: a YAML stream
// of Flavors by name, usage included, in canonical form.
type Blob struct {
	Hash    tree.Hash
	Content []byte
}

// written is a blob with where in it each offer stands.
type written struct {
	Blob
	offers []*model.Offer
	ends   []int // of each offer; a withdrawn one takes no room
}

// of is what was written of the offer of a name, and which that was; nil when
// there was none.
func (w *written) of(name string) (*model.Offer, []byte) {
	if w == nil {
		return nil, nil
	}
	i, there := slices.BinarySearchFunc(w.offers, name, func(o *model.Offer, name string) int {
		return strings.Compare(o.Flavor.Metadata.Name, name)
	})
	if !there {
		return nil, nil
	}
	from := 0
	if i > 0 {
		from = w.ends[i-1]
	}
	return w.offers[i], w.Content[from:w.ends[i]]
}

// writeBlob writes a provider's offers, which are in order of their names, and
// copies what was written of them before. Withdrawn ones are left out: they are
// what the provider no longer offers.
func writeBlob(offers []*model.Offer, before *written) *written {
	var out bytes.Buffer
	if before != nil {
		out.Grow(len(before.Content) + 1024)
	}
	w := &written{offers: offers, ends: make([]int, len(offers))}
	for i, o := range offers {
		switch was, text := before.of(o.Flavor.Metadata.Name); {
		case o.State == model.Withdrawn:
		case was == o:
			out.Write(text)
		case len(text) > 0 && was.Flavor == o.Flavor: // all that a provider offers, when it falls silent
			head := annotated(o)
			head.Spec = v1alpha1.FlavorSpec{}
			out.Write(headOf(document(&head)))
			out.Write(text[len(headOf(text)):])
		default:
			f := annotated(o)
			out.Write(document(&f))
		}
		w.ends[i] = out.Len()
	}
	w.Content = out.Bytes()
	if spare := cap(w.Content) - len(w.Content); spare > len(w.Content)/8 {
		w.Content = bytes.Clone(w.Content) // it is kept for long
	}
	w.Hash = tree.BlobHash(w.Content)
	return w
}

// document is a flavor as one document of a blob.
func document(f *v1alpha1.Flavor) []byte {
	doc, err := genyaml.Marshal(f)
	if err != nil {
		panic("market: write flavor " + f.Ref() + ": " + err.Error()) // every field of a kind can be written
	}
	return append([]byte("---\n"), doc...)
}

// headOf is what of a document stands before its spec: in a block of YAML all
// else is indented.
func headOf(doc []byte) []byte {
	return doc[:bytes.Index(doc, []byte("\nspec:"))+1]
}

// annotated is an offer's flavor that says what is known of its provider.
func annotated(o *model.Offer) v1alpha1.Flavor {
	f := *o.Flavor
	f.TypeMeta = v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor}
	if o.State == model.Fresh {
		return f
	}
	f.Metadata.Annotations = map[string]string{}
	maps.Copy(f.Metadata.Annotations, o.Flavor.Metadata.Annotations)
	f.Metadata.Annotations[annotationState] = stateText(o)
	return f
}

func stateText(o *model.Offer) string {
	s := o.State.String() + " " + o.Since.UTC().Format(time.RFC3339)
	if !o.GraceEnds.IsZero() {
		s += " " + o.GraceEnds.UTC().Format(time.RFC3339)
	}
	return s
}

// StateOf is what a flavor of a market tree says of its provider; Fresh when
// it says nothing.
func StateOf(f *v1alpha1.Flavor) (state model.Freshness, since, graceEnds v1alpha1.Time) {
	words := strings.Fields(f.Metadata.Annotations[annotationState])
	if len(words) < 2 {
		return model.Fresh, v1alpha1.Time{}, v1alpha1.Time{}
	}
	at := func(i int) v1alpha1.Time {
		if i >= len(words) {
			return v1alpha1.Time{}
		}
		t, err := time.Parse(time.RFC3339, words[i])
		if err != nil {
			return v1alpha1.Time{}
		}
		return v1alpha1.TimeOf(t)
	}
	switch words[0] {
	case model.Silent.String():
		return model.Silent, at(1), at(2)
	case model.Lost.String():
		return model.Lost, at(1), at(2)
	case model.Elsewhere.String():
		return model.Elsewhere, at(1), at(2)
	}
	return model.Fresh, v1alpha1.Time{}, v1alpha1.Time{}
}

// Plain takes out of a flavor of a market tree what it says of its provider.
func Plain(f *v1alpha1.Flavor) {
	delete(f.Metadata.Annotations, annotationState)
	if len(f.Metadata.Annotations) == 0 {
		f.Metadata.Annotations = nil
	}
}

// ParseBlob reads a YAML stream of Flavors: a file of a market's tree, an
// answer of GET /market, or a file that somebody wrote for `plan --market`.
func ParseBlob(content []byte) ([]*v1alpha1.Flavor, error) {
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var out []*v1alpha1.Flavor
	seen := map[string]bool{}
	for n := 1; ; n++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		if blank(doc) {
			continue
		}
		f := &v1alpha1.Flavor{}
		if err := genyaml.UnmarshalStrict(doc, f); err != nil {
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		switch {
		case f.Kind != v1alpha1.KindFlavor || f.APIVersion != v1alpha1.APIVersion:
			return nil, fmt.Errorf("document %d is a %q of %q: a market file is a YAML stream of kind Flavor, apiVersion %s", n, f.Kind, f.APIVersion, v1alpha1.APIVersion)
		case f.Metadata.Name == "" || f.Metadata.Namespace == "":
			return nil, fmt.Errorf("document %d: a flavor needs metadata.name and metadata.namespace (its provider)", n)
		case seen[f.Ref()]:
			return nil, fmt.Errorf("document %d: flavor %s is listed twice", n, f.Ref())
		}
		seen[f.Ref()] = true
		normaliseGPU(f)
		out = append(out, f)
	}
}

// blank reports whether a document holds nothing but comments.
func blank(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// Blobs are the files of the market's tree by provider.
func (s *Snapshot) Blobs() map[string]Blob {
	out := map[string]Blob{}
	for _, l := range s.listings() {
		if l.view == nil {
			continue
		}
		if b := l.view.blob().Blob; len(b.Content) > 0 {
			out[l.provider] = b
		}
	}
	return out
}

// Tree is the market as a git tree: <provider>.yaml for each provider. Its
// store holds the files.
func (s *Snapshot) Tree() tree.Tree { return s.tree() }

func treeOf(list []*listing) tree.Tree {
	store := &blobStore{blobs: make(map[tree.Hash][]byte, len(list))}
	for _, l := range list {
		if l.view == nil {
			continue
		}
		b := l.view.blob()
		if len(b.Content) == 0 {
			continue
		}
		store.blobs[b.Hash] = b.Content
		store.entries = append(store.entries, tree.Entry{Name: l.provider + blobSuffix, Kind: tree.File, Hash: b.Hash})
	}
	tree.Sort(store.entries)
	store.root = tree.DirHash(store.entries)
	return tree.Tree{Store: store, Root: store.root}
}

// blobStore is the store of one market's tree.
type blobStore struct {
	root    tree.Hash
	entries []tree.Entry
	blobs   map[tree.Hash][]byte
}

// Dir implements tree.Store.
func (s *blobStore) Dir(h tree.Hash) ([]tree.Entry, error) {
	if h != s.root {
		return nil, fmt.Errorf("directory %s of the market: %w", h, fs.ErrNotExist)
	}
	return s.entries, nil
}

// File implements tree.Store.
func (s *blobStore) File(h tree.Hash, limit int64) ([]byte, error) {
	b, ok := s.blobs[h]
	if !ok {
		return nil, fmt.Errorf("file %s of the market: %w", h, fs.ErrNotExist)
	}
	if limit > 0 && int64(len(b)) > limit {
		return nil, tree.ErrTooLarge
	}
	return b, nil
}
