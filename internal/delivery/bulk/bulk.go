// Package bulk bounds what a cluster can make its connection hold in memory. The
// cluster is another's: its API server may answer without end, and its
// administrators may make as many objects, and as large ones, as they like.
//
// Invariants: the answers that are being read, and the objects that are kept, of one
// connection never exceed their bounds, in bytes and in what they decode to; what exceeds
// them is an error that says so, and the cluster is not served. The pages of a list count
// together, because who reads them keeps all. An answer in a form that is not counted is an
// error. No answer has a request wait for longer than retryafter.Most.
//
// Callers: delivery, one Bounds a connection. Its methods are safe for concurrent use.
package bulk

import (
	"cmp"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/retryafter"
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
	// maxEvent is of one event of a watch, in bytes: the watch's decoder takes no larger one,
	// but reads it first.
	maxEvent = 16 << 20
	// maxName is of an object's kind, namespace and name; Kubernetes takes 253 of a name and 63 of
	// a namespace.
	maxName = 512
)

// Bounds count what one connection holds. The zero value is ready.
type Bounds struct {
	// Answers and Objects replace the defaults where they are not 0, in bytes.
	Answers, Objects int64
	// Over is called with each object that may not be kept; nil: nobody asks. A watch drops
	// it without a word, so that what is kept is not what is there.
	Over func(error)

	mu      sync.Mutex
	reading int64
	parts   int
	values  int
	pages   map[string]page // of lists that go on
	kept    int64
	sizes   map[string]int64 // of kept objects
	over    error            // of the first object that was not kept
}

// page is what was read of a list's pages.
type page struct {
	size          int64
	parts, values int
}

// Answer bounds an answer: its body, and how long it has its request wait. Watches are
// streams of objects, which Keep bounds, and of which each has its bounds here.
func (b *Bounds) Answer(r *http.Request, answer *http.Response) {
	if answer == nil {
		return
	}
	retryafter.Bound(answer.Header)
	if answer.Body == nil {
		return
	}
	query := r.URL.Query()
	list := listOf(r.URL.Path, query)
	o := &body{ReadCloser: answer.Body, of: b, count: jsonbound.Counter{Frames: query.Get("watch") != ""}, form: uncounted(answer.Header)}
	if query.Get("continue") != "" {
		o.list = list
	} else {
		b.begin(list)
	}
	answer.Body = o
}

// uncounted is the form of an answer of which two bytes may be an object without being
// counted, "" where it has none of them: the libraries decode by what the answer says that
// it is, whatever was asked for.
func uncounted(header http.Header) string {
	form, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if strings.Contains(form, "protobuf") || strings.Contains(form, "cbor") {
		return form
	}
	return ""
}

// listOf names a list, whose pages differ by where they go on.
func listOf(path string, query url.Values) string {
	return path + "?" + url.Values{"labelSelector": query["labelSelector"], "fieldSelector": query["fieldSelector"]}.Encode()
}

// begin gives back the pages of a list as it was read last.
func (b *Bounds) begin(list string) {
	b.mu.Lock()
	was := b.pages[list]
	delete(b.pages, list)
	b.mu.Unlock()
	_ = b.read(-was.size, -was.parts, -was.values) // what is given back is never too much
}

// Refused is why an object was not kept, nil where all are.
func (b *Bounds) Refused() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

// On bounds the answers to who uses a config, and has them asked for in JSON: in another form
// they are not read.
func (b *Bounds) On(config *rest.Config) {
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			b.Answer(r, answer)
			return answer, err
		})
	})
}

type body struct {
	io.ReadCloser
	of    *Bounds
	mu    sync.Mutex
	size  int64
	count jsonbound.Counter
	shut  bool
	form  string // that is not read
	list  string // of which it is a further page
}

// Read implements io.Reader.
func (o *body) Read(p []byte) (int, error) {
	if o.form != "" {
		return 0, fmt.Errorf("the cluster answers in %s, though JSON was asked for", escape.Reason(o.form))
	}
	n, err := o.ReadCloser.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut {
		return n, err
	}
	parts, values, size := o.count.Objects, o.count.Values, o.size
	o.count.Count(p[:n])
	o.size = int64(o.count.Bytes)
	if why := o.of.read(o.size-size, o.count.Objects-parts, o.count.Values-values); why != nil {
		return 0, why
	}
	if o.count.Frames && o.size > maxEvent {
		return 0, fmt.Errorf("the cluster answers with an event of more than %d MiB", maxEvent>>20)
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
		o.of.end(o)
	}
	o.mu.Unlock()
	return o.ReadCloser.Close()
}

// end gives back what was read of an answer, but for a page of a list that may go on.
func (b *Bounds) end(o *body) {
	if o.list == "" {
		_ = b.read(-o.size, -o.count.Objects, -o.count.Values) // what is given back is never too much
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages == nil {
		b.pages = map[string]page{}
	}
	was := b.pages[o.list]
	b.pages[o.list] = page{was.size + o.size, was.parts + o.count.Objects, was.values + o.count.Values}
}

// Keep takes an object's content into account, in place of what it was before. An
// error means that the object may not be kept.
func (b *Bounds) Keep(key string, content map[string]any) error {
	err := b.keep(key, int64(len(key))+sizeOf(content))
	if err != nil && b.Over != nil {
		b.Over(err)
	}
	return err
}

func (b *Bounds) keep(key string, size int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(key) > maxName {
		err := fmt.Errorf("keep %.64q...: its name has %d bytes, of which there may be %d", key, len(key), maxName)
		b.over = cmp.Or(b.over, err)
		return err
	}
	if most := cmp.Or(b.Objects, maxObjects); b.kept+size-b.sizes[key] > most {
		err := fmt.Errorf("keep %s (%d bytes): the cluster has more than %d MiB of objects that are watched; look for namespaces and Liqo objects that are many or large", key, size, most>>20)
		b.over = cmp.Or(b.over, err)
		return err
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
