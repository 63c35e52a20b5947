//go:build e2e

package hostile

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestGitServers_AreRefusedWithAReason: the program asks a git server over HTTP
// that answers with harm, each time another. It ends with a reason, within the
// bounds.
func TestGitServers_AreRefusedWithAReason(t *testing.T) {
	var now atomic.Pointer[GitServer]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, kind := now.Load().Refs, "advertisement"
		if r.Method == http.MethodPost {
			body, kind = now.Load().Pack, "result"
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-"+kind)
		once, again, endless := strings.Cut(body, Endless)
		_, err := w.Write([]byte(once)) // the program may have seen enough
		for chunk := []byte(strings.Repeat(again, 1+(64<<10)/max(len(again), 1))); endless && err == nil; {
			_, err = w.Write(chunk)
		}
	}))
	t.Cleanup(server.Close)
	for _, s := range GitServers() {
		t.Run(s.Name, func(t *testing.T) {
			now.Store(&s)
			r := run(t, "fleetbroker", "validate", server.URL+"/fleet.git")
			if said := strings.TrimSpace(r.said); r.code == 0 || said == "" || len(said) > 4000 || strings.Count(said, "\n") > 3 {
				t.Errorf("exit code %d, %d lines: %.2000s", r.code, strings.Count(said, "\n")+1, said)
			}
			visible(t, "standard output", r.out)
		})
	}
}
