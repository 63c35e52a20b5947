// Package bulk bounds what a cluster can make its connection hold in memory. The
// cluster is another's: its API server may answer without end, and its
// administrators may make as many objects, and as large ones, as they like.
//
// Invariants: the answers that are being read, and the objects that are kept, of one
// connection never exceed their bounds, in bytes and in what they decode to; what exceeds
// them is an error that says so, and the cluster is not served.
//
// Callers: delivery, one Bounds a connection. Its methods are safe for concurrent use.
package bulk

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetbroker/fleetbroker/internal/forge/jsonbound"
)

// What one cluster may have: some thirty thousand objects of the usual size.
const (
	maxAnswers = 64 << 20
	maxObjects = 96 << 20
	// maxParts and maxValues are of the JSON of answers that are being read, objects within
	// objects counted: half a kilobyte of memory each, and 40 bytes.
	maxParts  = 600_000
	maxValues = 4_000_000
)

// Bounds count what one connection holds. The zero value is ready.
type Bounds struct {
	// Answers and Objects replace the defaults where they are not 0, in bytes.
	Answers, Objects int64

	mu      sync.Mutex
	reading int64
	parts   int
	values  int
	kept    int64
	sizes   map[string]int64 // of kept objects
}

// Answer bounds the body of an answer. Watches are streams of objects, which Keep
// bounds; their decoder bounds the bytes of each of them.
func (b *Bounds) Answer(r *http.Request, answer *http.Response) {
	if answer != nil && answer.Body != nil {
		answer.Body = &body{ReadCloser: answer.Body, of: b, count: jsonbound.Counter{Frames: r.URL.Query().Get("watch") != ""}}
	}
}

// Wrap bounds the answers that a transport brings.
func (b *Bounds) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		b.Answer(r, answer)
		return answer, err
	})
}

type body struct {
	io.ReadCloser
	of    *Bounds
	mu    sync.Mutex
	size  int64
	count jsonbound.Counter
	shut  bool
}

// Read implements io.Reader.
func (o *body) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut {
		return n, err
	}
	parts, values, size := o.count.Objects, o.count.Values, int64(n)
	o.count.Count(p[:n])
	if o.count.Frames {
		size = 0
	}
	o.size += size
	if why := o.of.read(size, o.count.Objects-parts, o.count.Values-values); why != nil {
		return 0, why
	}
	return n, err
}

// read takes what was read of an answer into account.
func (b *Bounds) read(size int64, parts, values int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading += size
	b.parts += parts
	b.values += values
	if most := cmp.Or(b.Answers, maxAnswers); b.reading > most {
		return fmt.Errorf("the cluster answers with more than %d MiB at a time", most>>20)
	}
	if b.parts > maxParts || b.values > maxValues {
		return fmt.Errorf("the cluster answers with more than %d objects, or %d values, at a time", maxParts, maxValues)
	}
	return nil
}

// Close implements io.Closer.
func (o *body) Close() error {
	o.mu.Lock()
	if !o.shut {
		o.shut = true
		_ = o.of.read(-o.size, -o.count.Objects, -o.count.Values) // what is given back is never too much
	}
	o.mu.Unlock()
	return o.ReadCloser.Close()
}

// Keep takes an object's content into account, in place of what it was before. An
// error means that the object may not be kept.
func (b *Bounds) Keep(key string, content map[string]any) error {
	size := int64(len(key)) + sizeOf(content)
	b.mu.Lock()
	defer b.mu.Unlock()
	if most := cmp.Or(b.Objects, maxObjects); b.kept+size-b.sizes[key] > most {
		return fmt.Errorf("keep %s (%d bytes): the cluster has more than %d MiB of objects that are watched; look for namespaces and Liqo objects that are many or large", key, size, most>>20)
	}
	if b.sizes == nil {
		b.sizes = map[string]int64{}
	}
	b.kept += size - b.sizes[key]
	b.sizes[key] = size
	return nil
}

// Forget takes an object out of account that is gone.
func (b *Bounds) Forget(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept -= b.sizes[key]
	delete(b.sizes, key)
}

// RoundTripper is a function as an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Transform is an informer's: it trims an object and keeps it within the bounds.
// Where an informer cannot keep what it lists it says so, as of any list that fails.
func (b *Bounds) Transform(kind string, trim cache.TransformFunc) cache.TransformFunc {
	return func(obj any) (any, error) {
		obj, err := trim(obj)
		if u, ok := obj.(*unstructured.Unstructured); ok && err == nil {
			err = b.Keep(nameOf(kind, u), u.Object)
		}
		return obj, err
	}
}

// Gone is an informer's handler that makes room where objects are deleted.
func (b *Bounds) Gone(kind string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		if u, ok := obj.(*unstructured.Unstructured); ok {
			b.Forget(nameOf(kind, u))
		}
	}}
}

func nameOf(kind string, u *unstructured.Unstructured) string {
	return kind + " " + u.GetNamespace() + "/" + u.GetName()
}

// each is what a value takes besides its text.
const each = 16

// sizeOf is about as much as a decoded value takes as JSON.
func sizeOf(value any) int64 {
	size := int64(each)
	switch v := value.(type) {
	case string:
		size += int64(len(v))
	case []any:
		for _, e := range v {
			size += sizeOf(e)
		}
	case map[string]any:
		for k, e := range v {
			size += int64(len(k)) + sizeOf(e)
		}
	}
	return size
}
