package bulk

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// TestAnswers_AreBounded: answers without end are errors, those that are read one
// after the other are not, and watches are left alone.
func TestAnswers_AreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk, err := strings.Repeat("x", 64<<10), error(nil)
		if r.URL.Path == "/events" {
			chunk = `{"a":"` + chunk + `"}`
		}
		for n := 0; err == nil && (r.URL.Path != "/whole" || n < 1<<20); n += len(chunk) {
			_, err = io.WriteString(w, chunk)
		}
	}))
	t.Cleanup(server.Close)
	b := &Bounds{Answers: 2 << 20}
	open := func(path string) io.ReadCloser {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Answer(r, answer)
		return answer.Body
	}
	for range 5 {
		body := open("/whole")
		if text, err := io.ReadAll(body); err != nil || len(text) != 1<<20 {
			t.Fatalf("an answer of 1 MiB: %d bytes, %v", len(text), err)
		}
		if err := body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	body := open("/endless")
	text, err := io.ReadAll(body)
	if err == nil || !strings.Contains(err.Error(), "more than 2 MiB at a time") || len(text) > 2<<20 {
		t.Errorf("an answer without end: %d bytes, %v", len(text), err)
	}
	_ = body.Close()
	several := []io.ReadCloser{open("/whole"), open("/whole"), open("/whole")}
	failed := 0
	for _, body := range several {
		if _, err := io.ReadAll(body); err != nil {
			failed++
		}
	}
	for _, body := range several {
		_, _ = body.Close(), body.Close() // a second time changes nothing
	}
	if failed != 1 {
		t.Errorf("of three answers of 1 MiB that are open at once %d failed, want 1", failed)
	}
	watch := open("/events?watch=true")
	if _, err := io.CopyN(io.Discard, watch, 8<<20); err != nil {
		t.Errorf("a watch: %v", err)
	}
	_ = watch.Close()
	if b.reading != 0 {
		t.Errorf("%d bytes are still counted", b.reading)
	}
}

// TestTransform_KeepsAndForgets: what an informer is given counts until it is told
// that it is gone.
func TestTransform_KeepsAndForgets(t *testing.T) {
	b := &Bounds{Objects: 1 << 10}
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "namespace": "a", "x": strings.Repeat("x", 400), "gone": strings.Repeat("x", 1000)}}}
	}
	keep := b.Transform("ResourceSlice", func(obj any) (any, error) {
		unstructured.RemoveNestedField(obj.(*unstructured.Unstructured).Object, "metadata", "gone")
		return obj, nil
	})
	one, err := keep(object("one"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keep(object("two")); err == nil || !strings.Contains(err.Error(), "ResourceSlice a/two") {
		t.Errorf("an object too many: %v", err)
	}
	b.Gone("ResourceSlice").OnDelete(cache.DeletedFinalStateUnknown{Obj: one})
	if _, err := keep(object("two")); err != nil {
		t.Error(err)
	}
}

// TestObjects_AreBounded: many objects, and large ones, are refused by name; what
// is gone makes room.
func TestObjects_AreBounded(t *testing.T) {
	b := &Bounds{Objects: 1 << 20}
	large := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": strings.Repeat("x", 400<<10)}, "finalizers": []any{"b"}}}
	for _, key := range []string{"one", "two", "one", "two"} { // the same again is the same
		if err := b.Keep(key, large); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Keep("three", large); err == nil || !strings.Contains(err.Error(), "keep three") {
		t.Errorf("a third: %v", err)
	}
	b.Forget("one")
	if err := b.Keep("three", large); err != nil {
		t.Errorf("a third in the place of the first: %v", err)
	}
	b.Forget("two")
	b.Forget("three")
	b.Forget("three")
	many := 0
	for ; many < 1<<20; many++ {
		if b.Keep(fmt.Sprint("small-", many), map[string]any{}) != nil {
			break
		}
	}
	if many < 1000 || many == 1<<20 {
		t.Errorf("%d small objects are kept", many)
	}
}

// TestAnswers_OfManyObjectsTakeLittle: a list, or an event of a watch, whose few bytes each
// would become a map is refused before it is decoded; lists and streams of namespaces as
// clusters have them are not, whatever number of them comes one after the other.
func TestAnswers_OfManyObjectsTakeLittle(t *testing.T) {
	const head = `{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`
	usual := `{"metadata":{"name":"n","labels":{"a":"b"},"annotations":{"a":"b,{"},"managedFields":[{"manager":"kubectl","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}}]},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}},`
	bodies := map[string]string{
		"/empty":   head + strings.Repeat("{},", 20<<20) + "{}]}",
		"/numbers": head + `{"metadata":{"name":"n"},"a":[` + strings.Repeat("1,", 20<<20) + "1]}]}",
		"/usual":   head + strings.Repeat(usual, 30_000) + "{}]}",
		"/event":   `{"type":"ADDED","object":{"kind":"Namespace","a":[` + strings.Repeat("{},", 4<<20) + "{}]}}",
		"/events":  strings.Repeat(`{"type":"ADDED","object":`+strings.TrimSuffix(usual, ",")+"}\n", 100_000),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, bodies[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	b := &Bounds{}
	for _, of := range []struct {
		path  string
		taken bool
	}{{"/empty", false}, {"/usual", true}, {"/numbers", false}, {"/usual", true}, {"/event?watch=true", false}, {"/events?watch=true", true}, {"/usual", true}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+of.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Answer(r, answer)
		n, err := io.Copy(io.Discard, answer.Body)
		if of.taken != (err == nil) || !of.taken && !strings.Contains(err.Error(), "more than 600000 objects, or 4000000 values") {
			t.Errorf("%s: %d bytes, %v", of.path, n, err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if b.reading != 0 || b.parts != 0 || b.values != 0 {
		t.Errorf("%d bytes, %d objects, %d values are still read", b.reading, b.parts, b.values)
	}
}
