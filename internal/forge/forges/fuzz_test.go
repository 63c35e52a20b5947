package forges

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
)

// fuzzed is what a forge answers: a status, two bodies in turn, and a header
// that limits.
type fuzzed struct {
	status    int
	bodies    [2]string
	link      string
	limit     string
	questions atomic.Int64
}

// FuzzForge: whatever a forge answers, each question ends in an error or an
// answer, after a bounded number of requests, and nobody is said to have named a
// head who did not write exactly that.
func FuzzForge(f *testing.F) {
	head := strings.Repeat("a", 40)
	pull := `{"number":1,"iid":1,"index":1,"title":"x","state":"open","user":{"login":"ada"},"author":{"username":"ada"},"head":{"sha":"` + head + `","ref":"x","repo":{"id":1}},"sha":"` + head + `","base":{"ref":"main","repo":{"id":2}},"target_branch":"main","created_at":"2026-11-20T12:00:00Z"}`
	word := `{"id":7,"body":"/plan ` + head + `","note":"x","user":{"login":"ada","id":3},"author":{"username":"ada","id":3},"created_at":"2026-11-20T12:00:00Z","updated_at":"2026-11-20T12:00:00Z"}`
	for _, kind := range []uint8{0, 1, 2} {
		f.Add(kind, 200, pull, "["+pull+"]", "", "")
		f.Add(kind, 200, "["+word+"]", `{"permission":"write","access_level":40,"login":"bot","username":"bot"}`, "", "")
		f.Add(kind, 200, "[null]", "null", "", "")
		f.Add(kind, 200, `[{"user":null,"head":null,"base":null,"author":null}]`, `{}`, `<http://x/?page=2>; rel="next"`, "0")
		f.Add(kind, 403, `{"message":"\u001b[2J"}`, "<html>", "", "9223372036854775807")
		f.Add(kind, 429, "", "{", "", "-1")
		f.Add(kind, 301, "", "", "", "Thu, 01 Jan 1970 00:00:00 GMT")
		f.Add(kind, 500, strings.Repeat("[", 2000), "\x00", "", "")
	}
	var current atomic.Pointer[fuzzed]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := current.Load()
		n := a.questions.Add(1)
		w.Header().Set("Content-Type", "application/json")
		for name, value := range map[string]string{"Link": a.link, "X-Next-Page": a.limit, "Retry-After": a.limit, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": a.limit, "Location": a.link} {
			if value != "" && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
				w.Header().Set(name, value)
			}
		}
		status := a.status
		if status < 200 || status > 599 {
			status = 200
		}
		w.WriteHeader(status)
		if r.Method != http.MethodHead && status != http.StatusNoContent && status != http.StatusNotModified {
			_, _ = w.Write([]byte(a.bodies[n%2])) // the client may have seen enough
		}
	}))
	f.Cleanup(server.Close)
	token := filepath.Join(f.TempDir(), "token")
	if err := os.WriteFile(token, []byte(forgetest.Token+"\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind uint8, status int, first, second, link, limit string) {
		a := &fuzzed{status: status, bodies: [2]string{first, second}, link: link, limit: limit}
		current.Store(a)
		now := time.Unix(1_800_000_000, 0)
		client, err := Open(forge.Config{
			Kind: []forge.Kind{forge.Gitea, forge.GitHub, forge.GitLab}[kind%3], URL: server.URL, Repo: "acme/fleet", TokenFile: token,
			Limits: forge.Limits{Now: func() time.Time { return now }, Sleep: func(ctx context.Context, d time.Duration) error { now = now.Add(d); return ctx.Err() }},
		}, "")
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		list, err := client.Open(ctx, "main")
		if err == nil {
			for _, p := range list {
				if p.Base != "main" {
					t.Fatalf("%+v is into another branch", p)
				}
			}
		}
		pr, gerr := client.Get(ctx, 1)
		if gerr != nil {
			pr = forge.PullRequest{Number: 1, Head: head}
		}
		errs := []error{err, gerr}
		_, err = client.WithCommit(ctx, head)
		errs = append(errs, err)
		reviews, err := client.Reviews(ctx, 1)
		errs = append(errs, err)
		for _, r := range reviews {
			if r.Verdict != forge.Approved && r.Verdict != forge.Rejected {
				t.Fatalf("a review says %q", r.Verdict)
			}
		}
		naming, err := client.Named(ctx, 1, head)
		if errs = append(errs, err); naming.By != "" && !strings.Contains(first+second, "plan") {
			t.Fatalf("%s is said to have named the head", naming.By)
		}
		_, err = client.Comment(ctx, 1, "<!-- marker -->", "<!-- marker -->\nhello")
		errs = append(errs, err)
		left, err := client.Annotate(ctx, pr, []forge.LineComment{{Path: "a.yaml", Line: 1, Body: forge.LineMarker + "hello"}})
		if errs = append(errs, err); left > 1 {
			t.Fatalf("%d of 1 comments were left out", left)
		}
		_, err = client.Save(ctx, forge.Draft{Head: "x", Base: "main", Title: "x"})
		errs = append(errs, err, client.SetStatus(ctx, head, forge.Status{Context: "x", State: forge.Success}), client.Merge(ctx, 1, forge.Merge{Head: head}))
		for _, err := range errs {
			if err != nil && strings.Contains(err.Error(), forgetest.Token) {
				t.Fatal("the token is in an error")
			}
		}
		if n := a.questions.Load(); n > 20_000 {
			t.Fatalf("%d requests", n)
		}
	})
}
