package bulk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// configOf reaches a server that answers by serve, within bounds.
func configOf(t *testing.T, b *Bounds, serve http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.CloseClientConnections)
	config := &rest.Config{Host: server.URL, QPS: -1}
	b.On(config)
	return config
}

// watched follows the namespaces of a server until the test ends; what lists and watches fail
// of arrives in failed.
func watched(t *testing.T, b *Bounds, serve http.HandlerFunc) (inf cache.SharedIndexInformer, failed <-chan error) {
	t.Helper()
	client, err := dynamic.NewForConfig(configOf(t, b, serve))
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 64)
	inf = dynamicinformer.NewFilteredDynamicInformer(client, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", 0, cache.Indexers{}, nil).Informer()
	_ = inf.SetTransform(b.Transform("Namespace", func(o any) (any, error) { return o, nil }))
	_ = inf.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		select {
		case errs <- err:
		default:
		}
	})
	go inf.RunWithContext(t.Context())
	return inf, errs
}

func failsWith(t *testing.T, failed <-chan error, want string) {
	t.Helper()
	for end := time.After(30 * time.Second); ; {
		select {
		case err := <-failed:
			if strings.Contains(err.Error(), want) {
				return
			}
		case <-end:
			t.Fatalf("it goes on, want an error with %q", want)
		}
	}
}

func namespace(name, text string) string {
	return fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":"7","annotations":{"a":%q}}}`, name, text)
}

// A list whose pages never end is refused as one without pages is: who reads it keeps all of
// them. The next list has all room again.
func TestPages_CountTogether(t *testing.T) {
	b := &Bounds{Answers: 1 << 20}
	text := strings.Repeat("x", 100<<10)
	_, failed := watched(t, b, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"x"},"items":[%s]}`, namespace("a", text))
	})
	failsWith(t, failed, "more than 1 MiB at a time")
	failsWith(t, failed, "more than 1 MiB at a time") // the pages of the first are given back
}

// One event of a watch is bounded while it comes in, and not when it is whole.
func TestEvents_AreBounded(t *testing.T) {
	b := &Bounds{}
	answer := &http.Response{Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"type":"ADDED","object":{"a":"`), endless{}))}
	b.Answer(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/namespaces?watch=true", nil), answer)
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil || !strings.Contains(err.Error(), "an event of more than 16 MiB") || n > maxEvent {
		t.Errorf("%d bytes are read, %v", n, err)
	}
	_ = answer.Body.Close()
	if b.reading != 0 {
		t.Errorf("%d bytes are still counted", b.reading)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A watch drops without a word what cannot be kept. Whoever goes by what is kept learns it,
// before the watch says that it has shown all.
func TestWatches_SayWhatIsNotKept(t *testing.T) {
	told := make(chan error, 64)
	b := &Bounds{Objects: 1 << 20, Over: func(err error) {
		select {
		case told <- err:
		default:
		}
	}}
	inf, _ := watched(t, b, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := range 20 {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", namespace(fmt.Sprint("n", i), strings.Repeat("x", 100<<10)))
		}
		_, _ = fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"resourceVersion":"30","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if !cache.WaitForCacheSync(t.Context().Done(), inf.HasSynced) {
		t.Fatal("it is never read")
	}
	if err := b.Refused(); err == nil || !strings.Contains(err.Error(), "keep Namespace /n") || len(inf.GetStore().ListKeys()) == 20 {
		t.Errorf("%d of 20 objects are kept, Refused: %v", len(inf.GetStore().ListKeys()), err)
	}
	select {
	case err := <-told:
		if err == nil || !strings.Contains(err.Error(), "more than 1 MiB") {
			t.Errorf("Over: %v", err)
		}
	default:
		t.Error("Over is not called")
	}
}

// Whoever asks to be left alone for years is asked again soon.
func TestAnswers_HaveNobodyWaitForLong(t *testing.T) {
	for has, want := range map[string]string{"": "", "0": "0", "3": "3", "31536000": "10", "99999999999999999999": "10", "-1": "10", "Wed, 21 Oct 2065 07:28:00 GMT": "10"} {
		answer := &http.Response{Header: http.Header{}, Body: http.NoBody}
		if has != "" {
			answer.Header.Set("Retry-After", has)
		}
		new(Bounds).Answer(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), answer)
		if got := answer.Header.Get("Retry-After"); got != want {
			t.Errorf("%q: %q, want %q", has, got, want)
		}
	}
}

// Nothing is decoded from a form in which two bytes are an object and are not counted, though
// the libraries would: 20 million of them took 4 GiB.
func TestAnswers_OfFormsThatAreNotCounted(t *testing.T) {
	for _, form := range []string{"application/vnd.kubernetes.protobuf", "Application/Vnd.Kubernetes.Protobuf;stream=watch", "application/cbor", "application/cbor-seq"} {
		client, err := kubernetes.NewForConfig(configOf(t, &Bounds{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", form)
			// An Unknown of a Lease's metadata with 20 owners.
			_, _ = io.WriteString(w, "k8s\x00\x0a\x1f\x0a\x16coordination.k8s.io/v1\x12\x05Lease\x12\x2a\x0a\x28"+strings.Repeat("\x6a\x00", 20))
		}))
		if err != nil {
			t.Fatal(err)
		}
		lease, err := client.CoordinationV1().Leases("a").Get(t.Context(), "b", metav1.GetOptions{})
		if err == nil || !strings.Contains(err.Error(), "though JSON was asked for") {
			t.Errorf("%s: %d owners, %v", form, len(lease.OwnerReferences), err)
		}
	}
}

// A name that no API server of Kubernetes gives is not kept, and is not said whole.
func TestNames_AreBounded(t *testing.T) {
	b := &Bounds{}
	keep := b.Transform("ResourceSlice", func(obj any) (any, error) { return obj, nil })
	object := func(namespace, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "namespace": namespace}}}
	}
	if _, err := keep(object(strings.Repeat("n", 63), strings.Repeat("x", 253))); err != nil {
		t.Error(err)
	}
	for _, o := range []*unstructured.Unstructured{object("a", strings.Repeat("x", 1<<20)), object(strings.Repeat("n", 600), "b")} {
		_, err := keep(o)
		if err == nil || len(err.Error()) > 300 || !strings.Contains(err.Error(), "bytes, of which there may be 512") {
			t.Errorf("%d bytes: %.400v", len(o.GetName()+o.GetNamespace()), err)
		}
	}
	if b.Refused() == nil {
		t.Error("nobody says that something was not kept")
	}
}

// Two lists of one path are two: the pages of one count until it is asked for from its start,
// whatever is asked of the other.
func TestPages_CountBySelector(t *testing.T) {
	b := &Bounds{Answers: 1 << 20}
	read := func(query string) error {
		answer := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`"` + strings.Repeat("x", 300<<10) + `"`))}
		b.Answer(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/namespaces?"+query, nil), answer)
		_, err := io.Copy(io.Discard, answer.Body)
		return errors.Join(err, answer.Body.Close())
	}
	for i, of := range []struct {
		query string
		taken bool
	}{
		{"labelSelector=a&limit=9", true}, {"labelSelector=a&continue=x", true}, {"labelSelector=a&continue=y", true}, {"labelSelector=b", true},
		{"labelSelector=a&continue=z", true}, {"labelSelector=b&continue=z", false}, {"labelSelector=a", true}, {"labelSelector=a&continue=x", true},
	} {
		if err := read(of.query); of.taken != (err == nil) {
			t.Errorf("request %d, %s: %v", i, of.query, err)
		}
	}
}
