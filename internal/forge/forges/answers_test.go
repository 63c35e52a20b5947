package forges

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

// Answers of which each few bytes would become a struct, and lists of them without end, are
// refused before they fill the memory: by the forge of the fleet, and by that of a tenant's
// source.
func TestAnswersOfManyObjectsTakeLittle(t *testing.T) {
	const size = 32 << 20
	bodies := map[string]string{
		"empty objects":   "[" + strings.Repeat("{},", size/3-2) + "{}]",
		"objects in them": "[" + strings.Repeat(`{"user":{},"head":{"repo":{}},"author":{}},`, size/43-1) + "{}]",
		"empty texts":     `[{"labels":[` + strings.Repeat(`"",`, size/3-20) + `""]}]`,
		"pages":           "[" + strings.Repeat(`{},`, 39_998) + "{}]",
	}
	for _, kind := range []forge.Kind{forge.GitHub, forge.GitLab, forge.Gitea} {
		for name, body := range bodies {
			page := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case strings.HasSuffix(r.URL.Path, "/version"):
					_, _ = w.Write([]byte(`{"version":"1.22.0"}`))
				case strings.HasSuffix(r.URL.Path, "/user"):
					_, _ = w.Write([]byte(`{"login":"bot","username":"bot"}`))
				default:
					page++
					next := "http://" + r.Host + r.URL.Path + "?page=" + string(rune('1'+page))
					w.Header().Set("Link", "<"+next+">; rel=\"next\"")
					w.Header().Set("X-Next-Page", string(rune('1'+page)))
					_, _ = w.Write([]byte(body))
				}
			}))
			c := forge.Config{Kind: kind, URL: s.URL + "/", Repo: "acme/fleet", TokenFile: filepath.Join(t.TempDir(), "token"), User: "bot"}
			if err := os.WriteFile(c.TokenFile, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := Open(c, "")
			if err != nil {
				t.Fatal(err)
			}
			for call, ask := range map[string]func() error{
				"open":    func() error { _, err := f.Open(t.Context(), "main"); return err },
				"comment": func() error { _, err := f.Comment(t.Context(), 1, "<!-- x -->", "x"); return err },
			} {
				page = 0
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := ask()
				runtime.ReadMemStats(&after)
				if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 400 || err == nil || len(err.Error()) > 500 || name != "empty texts" && !errors.Is(err, forge.ErrUnavailable) {
					t.Errorf("%s, %s, %s: %d MiB, %.200v", kind, call, name, took, err)
				} else {
					t.Logf("%s, %s, %s: %d MiB, %.200v", kind, call, name, took, err)
				}
			}
			s.Close()
		}
	}
}
