package decodable_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/agent/replies"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func slice(name, quantity, instant string) string {
	return fmt.Sprintf(`{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSlice","metadata":{"name":%q,"namespace":"liqo-tenant-rome","annotations":{"x":"<1e5.5>","example.org/startTime":"noon"}},
"spec":{"resources":{"cpu":%q,"memory":"8Gi"}},"status":{"nodeLabels":{"bootTime":"1795608001"},"resources":{"cpu":%[2]q},"conditions":[{"type":"Resources","status":"Accepted","lastTransitionTime":%q}]}}`, name, quantity, instant)
}

// One consumer's slice is never why those of others are not read, as a list and as an event.
func TestSlicesAreReadWhateverIsInThem(t *testing.T) {
	const good, now = "4", "2026-11-20T12:00:01Z"
	for name, bad := range map[string][2]string{
		"no exponent":     {"1e5.5", now},
		"days of work":    {"1e-2147483647", now},
		"hours of sums":   {"1e2147483647", now},
		"many digits":     {strings.Repeat("9", 100_000), now},
		"small letters":   {good, "2026-11-20t12:00:01z"},
		"no such day":     {good, "2026-02-30T12:00:01Z"},
		"a leap second":   {good, "2026-11-20T23:59:60Z"},
		"nothing at all":  {"", ""},
		"what is orderly": {good, now},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Query().Get("watch") != "" {
					for _, one := range []string{slice("bad", bad[0], bad[1]), slice("good", good, now)} {
						fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", one)
						w.(http.Flusher).Flush()
					}
					<-r.Context().Done()
					return
				}
				fmt.Fprintf(w, `{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSliceList","metadata":{},"items":[%s,%s]}`, slice("bad", bad[0], bad[1]), slice("good", good, now))
			}))
			defer server.Close()
			scheme := runtime.NewScheme()
			if err := authv1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c, err := client.NewWithWatch(replies.Bounded(&rest.Config{Host: server.URL}), client.Options{Scheme: scheme, Mapper: mapper(scheme)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			check := func(s *authv1beta1.ResourceSlice) {
				t.Helper()
				cpu, memory := s.Spec.Resources["cpu"], s.Spec.Resources["memory"]
				a, err := v1alpha1.AmountOfQuantity("cpu", cpu)
				orderly := s.Name == "good" || bad[0] == good
				if memory.String() != "8Gi" || s.Annotations["x"] != "<1e5.5>" || s.Annotations["example.org/startTime"] != "noon" || s.Status.NodeLabels["bootTime"] != "1795608001" || len(s.Status.Conditions) != 1 || orderly != (err == nil && a.Int64() == 4000) {
					t.Errorf("%s: cpu %s, %v", s.Name, cpu.String(), err)
				}
				if at := s.Status.Conditions[0].LastTransitionTime; at.IsZero() != (s.Name == "bad" && bad[1] != now) {
					t.Errorf("%s: the instant is %v", s.Name, at)
				}
			}
			var list authv1beta1.ResourceSliceList
			done := make(chan error, 1)
			go func() { done <- c.List(ctx, &list) }()
			select {
			case err := <-done:
				if err != nil || len(list.Items) != 2 {
					t.Fatalf("%d slices, %v", len(list.Items), err)
				}
			case <-ctx.Done():
				t.Fatal("the list is still being decoded")
			}
			check(&list.Items[0])
			check(&list.Items[1])
			w, err := c.Watch(ctx, &authv1beta1.ResourceSliceList{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			for range 2 {
				select {
				case e := <-w.ResultChan():
					s, is := e.Object.(*authv1beta1.ResourceSlice)
					if !is {
						t.Fatalf("event %s of %T", e.Type, e.Object)
					}
					check(s)
				case <-ctx.Done():
					t.Fatal("no event came")
				}
			}
		})
	}
}

func mapper(scheme *runtime.Scheme) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	return m
}
