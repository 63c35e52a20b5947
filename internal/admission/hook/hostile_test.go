package hook

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func reviewOf(resource, object string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"n","resource":{"version":"v1","resource":"` +
		resource + `"},"object":` + object + `}}`
}

func ask(ctx context.Context, h http.Handler, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
	return w
}

func tenants() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "n", Labels: map[string]string{v1alpha1.LabelTenant: "vision"}, Annotations: map[string]string{v1alpha1.AnnotationIntents: "vision.train"},
	}}
}

// Whatever a stranger packs into a body of the largest size, answering takes no more than
// some copies of it.
func TestHostileBodiesTakeLittle(t *testing.T) {
	s := &Server{Client: fake.NewClientset(tenants()), Log: slog.New(slog.DiscardHandler)}
	h := s.Handler()
	room := maxReview - 1<<10
	many := func(element string) string { return strings.Repeat(element+",", room/(len(element)+1)) + element }
	var pairs strings.Builder
	next := `},"labels":{` // the name comes again
	for i := 0; pairs.Len() < room-64; i++ {
		if i > 0 && i%maxElements == 0 {
			pairs.WriteString(next)
		} else if i > 0 {
			pairs.WriteByte(',')
		}
		fmt.Fprintf(&pairs, `"%x":""`, i)
	}
	for name, tc := range map[string]struct{ path, body, want string }{
		"containers":   {PathPods, reviewOf("pods", `{"spec":{"containers":[`+many("{}")+`]}}`), `"patch"`},
		"tolerations":  {PathPods, reviewOf("pods", `{"spec":{"tolerations":[`+many("{}")+`]}}`), "are the most"},
		"owners":       {PathPods, reviewOf("pods", `{"metadata":{"ownerReferences":[`+many("{}")+`]}}`), "are the most"},
		"fields":       {PathPods, reviewOf("pods", `{"metadata":{"managedFields":[`+many("{}")+`]}}`), `"patch"`},
		"labels":       {PathPods, reviewOf("pods", `{"metadata":{"labels":{`+pairs.String()+`}}}`), ""},
		"one map":      {PathPods, reviewOf("pods", `{"metadata":{"labels":{`+strings.ReplaceAll(pairs.String(), next, ",")+`}}}`), "are the most"},
		"depth":        {PathPods, reviewOf("pods", strings.Repeat("[", room)), "no AdmissionReview"},
		"groups":       {PathPods, `{"apiVersion":"admission.k8s.io/v1","request":{"userInfo":{"groups":[` + many(`""`) + `]}}}`, `"allowed":true`},
		"annotations":  {PathRequests, reviewOf("resourcerequests", `{"metadata":{"annotations":{`+strings.ReplaceAll(pairs.String(), next, ",")+`}}}`), "are the most"},
		"another spec": {PathRequests, reviewOf("resourcerequests", `{"spec":[`+many("{}")+`]}`), `"patch"`},
		"a name":       {PathPods, `{"apiVersion":"admission.k8s.io/v1","request":{"namespace":"` + strings.Repeat("n", room) + `"}}`, "no AdmissionReview"},
	} {
		t.Run(name, func(t *testing.T) {
			if len(tc.body) > maxReview || len(tc.body) < maxReview-4<<10 {
				t.Fatalf("the body has %d bytes", len(tc.body))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w := ask(t.Context(), h, tc.path, tc.body)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 96<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
			if !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("got %d %.300s", w.Code, w.Body)
			}
		})
	}
}

// However many ask at once, maxReviews are answered; the others wait, and are told to come
// again.
func TestReviewsAtOnceAreBounded(t *testing.T) {
	var now atomic.Int32
	gate, in := make(chan struct{}), make(chan struct{}, 2*maxBodies)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now.Add(1)
		in <- struct{}{}
		<-gate
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`))
	}))
	t.Cleanup(api.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL, QPS: -1, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h := (&Server{Client: client, Log: slog.New(slog.DiscardHandler)}).Handler()
	var all sync.WaitGroup
	codes := make(chan int, 2*maxBodies)
	review := func(ctx context.Context) {
		all.Go(func() {
			w := ask(ctx, h, PathPods, reviewOf("pods", `{}`))
			if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
				t.Error("nothing says when to come again")
			}
			codes <- w.Code
		})
	}
	for range maxReviews {
		review(t.Context())
	}
	for range maxReviews {
		<-in
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for range 2*maxBodies - maxReviews {
		review(short)
	}
	for range 2*maxBodies - maxReviews {
		if code := <-codes; code != http.StatusTooManyRequests {
			t.Errorf("a review beyond the bound got %d", code)
		}
	}
	if n := now.Load(); n != maxReviews {
		t.Errorf("%d reviews at once", n)
	}
	close(gate)
	all.Wait()
	for range maxReviews {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a review within the bound got %d", code)
		}
	}
	if w := ask(t.Context(), h, PathPods, reviewOf("pods", `{}`)); w.Code != http.StatusOK {
		t.Errorf("the next review got %d: a place was not given back", w.Code)
	}
}
