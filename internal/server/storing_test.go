package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// slowStore takes five seconds for what changes something.
type slowStore struct{}

func (slowStore) Report(_ context.Context, r store.Report) error {
	if r.Content != nil {
		<-time.After(5 * time.Second)
	}
	return nil
}

// While the store is slow and hundreds report something new, who reports that nothing
// changed is answered at once, and the others are told of the store by as many as it may
// be told of at a time.
func TestReports_OfASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAgents(Agents{Reports: slowStore{}, Log: quiet}).routes()
		put := func(name, body string) int {
			r := httptest.NewRequestWithContext(context.WithValue(t.Context(), identityKey{}, pki.Identity{Name: name, Role: pki.Agent}), http.MethodPut, "/api/v2/clusters/"+name+"/flavors", bytes.NewReader([]byte(body)))
			r.Header.Set(wire.HeaderGeneration, "1.1")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		began := time.Now()
		answered := make(chan int, 400)
		for i := range 400 {
			go func() { answered <- put(fmt.Sprintf("busy-%d", i), `{"flavors":[]}`+strings.Repeat(" ", i)) }()
		}
		synctest.Wait()
		if code, took := put("quiet", ""), time.Since(began); code != http.StatusNoContent || took > 0 {
			t.Errorf("a report without news is answered %d after %s", code, took)
		}
		for range 400 {
			if code := <-answered; code != http.StatusNoContent {
				t.Errorf("a report is answered %d", code)
			}
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("400 small reports took %s, want those of one", took)
		}
	})
}
