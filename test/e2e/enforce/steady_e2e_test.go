//go:build e2e

package enforce

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// steady watches the provider's copy of a slice, every version of it, and
// remembers each that is not granted with so many GPUs.
type steady struct {
	mu   sync.Mutex
	seen int
	bad  []string
	stop func()
}

func (f *fleet) steady(slice string, count int64) *steady {
	f.t.Helper()
	c, err := client.NewWithWatch(f.Clusters["paris"].Config, client.Options{Scheme: f.paris.Scheme()})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	w, err := c.Watch(ctx, &authv1beta1.ResourceSliceList{}, client.InNamespace(f.twin.providerSpace))
	if err != nil {
		f.t.Fatal(err)
	}
	s, done := &steady{}, make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if o, ok := e.Object.(*authv1beta1.ResourceSlice); !ok || o.Name == slice {
				s.note(e, count)
			}
		}
	}()
	s.stop = func() {
		w.Stop()
		cancel()
		<-done
	}
	f.t.Cleanup(s.stop)
	return s
}

func (s *steady) note(e watch.Event, count int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen++
	o, ok := e.Object.(*authv1beta1.ResourceSlice)
	if !ok || e.Type == watch.Deleted {
		s.bad = append(s.bad, fmt.Sprintf("%s %T", e.Type, e.Object))
		return
	}
	if n, c := gpus(o); n != count || c.Status != accepted {
		s.bad = append(s.bad, fmt.Sprintf("version %s: %d GPUs, %s %s: %s", o.ResourceVersion, n, c.Status, c.Reason, c.Message))
	}
}

// held fails the test for every version that was not granted, and when there
// was none at all.
func (s *steady) held(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == 0 || len(s.bad) > 0 {
		t.Errorf("of %d versions of the slice these were not granted:\n%s", s.seen, strings.Join(s.bad, "\n"))
	}
}
