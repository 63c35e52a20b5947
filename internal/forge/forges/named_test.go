package forges

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
)

var (
	head  = strings.Repeat("ab", 20)
	other = strings.Repeat("cd", 20)
)

// levels are what each faked forge calls access, and whether it is enough.
var levels = map[forge.Kind]map[string]bool{
	forge.GitHub: {"none": false, "read": false, "write": true, "admin": true}, // maintain is write there, triage read
	forge.GitLab: {"10": false, "20": false, "30": true, "40": true, "50": true},
}

// A head is named by a person of enough access: on GitLab a developer, for a
// reporter may set labels and not write.
func TestNamedByAccess(t *testing.T) {
	for kind, start := range fakes {
		for access, want := range levels[kind] {
			t.Run(fmt.Sprintf("%s %s", kind, access), func(t *testing.T) {
				fake := start(t)
				f := open(t, kind, fake)
				n := fake.Add(forgetest.Pull{Base: "main", Head: head, Fork: true})
				fake.Grant(forgetest.Person{Login: "grace", Access: access})
				fake.Say(n, "grace", "/plan "+head)
				got, err := f.Named(t.Context(), n, head)
				if err != nil || (got.By == "grace") != want || !want && got.By != "" || got.Requests < 2 {
					t.Errorf("got %+v, %v, want named: %v", got, err, want)
				}
			})
		}
	}
}

// What a comment must be to name a head.
func TestNamedByWords(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, _ func() time.Duration) {
		fake.Writer("grace")
		fake.Grant(forgetest.Person{Login: "helper", Access: "write", Bot: true})
		fake.Writer(forgetest.Me)
		command := "/plan " + head
		n := fake.Add(forgetest.Pull{Base: "main", Head: head, Fork: true})
		heard := func() string {
			t.Helper()
			got, err := f.Named(t.Context(), n, head)
			if err != nil {
				t.Fatal(err)
			}
			return got.By
		}
		for _, c := range []struct{ who, body, why string }{
			{"mallory", command, "may not write"},
			{"grace", "do not " + command, "inside of a line"},
			{"grace", "> " + command, "quoted"},
			{"grace", "    " + command, "code"},
			{"grace", "```\n" + command + "\n```", "code"},
			{"grace", "No.\n\nmallory wrote:\n" + command, "a reply by mail that quotes without a mark"},
			{"grace", "<!--\n" + command + "\n-->", "unseen"},
			{"grace", "/plan", "no head"},
			{"grace", "/plan " + head[:39], "a part of it"},
			{"grace", "/plan " + strings.ToUpper(head), "another name"},
			{"grace", "/plan " + other, "another head"},
			{"grace", "/plan " + other + " " + head, "two"},
			{"helper", command, "a program's"},
			{forgetest.Me, command, "our own, which shows what others wrote"},
		} {
			fake.Say(n, c.who, c.body)
			if by := heard(); by != "" {
				t.Fatalf("%q by %s, %s: named by %s", c.body, c.who, c.why, by)
			}
		}
		fake.Say(n, "grace", "looks well")
		fake.Reword("looks well", command)
		if by := heard(); by != "" {
			t.Errorf("an edited comment: named by %s; who edited it is not known", by)
		}
		fake.Say(n, "grace", command+"\r\nlooks well")
		if by := heard(); by != "grace" {
			t.Errorf("named by %q, want grace", by)
		}
		if got, err := f.Named(t.Context(), n, other); err != nil || got.By != "grace" {
			t.Errorf("the other head: %+v, %v; a line of its own names it as well", got, err)
		}
	})
}

// However many people ask, the forge is sent few requests, and the newest who ask
// are looked up.
func TestNamedIsBounded(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, _ func() time.Duration) {
		fake.Writer("grace")
		n := fake.Add(forgetest.Pull{Base: "main", Head: head, Fork: true})
		for i := range 15 {
			fake.Grant(forgetest.Person{Login: fmt.Sprintf("m%d", i), Access: "10"})
			fake.Say(n, fmt.Sprintf("m%d", i), "/plan "+head)
		}
		before := fake.Requests()
		if got, err := f.Named(t.Context(), n, head); err != nil || got.By != "" || fake.Requests()-before > got.Requests+1 || got.Requests > 20 {
			t.Errorf("got %+v, %v with %d requests", got, err, fake.Requests()-before)
		}
		fake.Say(n, "grace", "/plan "+head)
		if got, err := f.Named(t.Context(), n, head); err != nil || got.By != "grace" {
			t.Errorf("got %+v, %v, want grace", got, err)
		}
		for range 21 { // pages of two here, of which ten are read
			fake.Say(n, "mallory", "first")
		}
		before = fake.Requests()
		if got, err := f.Named(t.Context(), n, head); err != nil || got.By != "" || fake.Requests()-before > 10 {
			t.Errorf("got %+v, %v with %d requests, want the newest ten pages alone", got, err, fake.Requests()-before)
		}
		// Who writes much before or after others keeps nobody from naming a head.
		fake.Say(n, "grace", "/plan "+head)
		for range 3 {
			fake.Say(n, "mallory", "last")
		}
		if got, err := f.Named(t.Context(), n, head); err != nil || got.By != "grace" {
			t.Errorf("got %+v, %v, want grace", got, err)
		}
	})
}

// Gitea gives all comments at once. Where they are more than is read, those of the last day,
// hour or minutes are.
func TestNamedAmongMoreThanIsRead(t *testing.T) {
	var asked []string
	long := fmt.Sprintf(`{"user": {"id": 2, "login": "mallory"}, "body": %q}`, strings.Repeat("x", 60_000))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch at := time.Now().UTC().Format(time.RFC3339); {
		case strings.HasSuffix(r.URL.Path, "/comments"):
			since := r.URL.Query().Get("since")
			asked = append(asked, since)
			many := 600
			if when, err := time.Parse(time.RFC3339, since); err == nil && time.Since(when) < 2*time.Hour {
				many = 1
			}
			fmt.Fprintf(w, `[%s{"user": {"id": 1, "login": "grace"}, "body": "/plan %s", "created_at": %q, "updated_at": %q}]`, strings.Repeat(long+",", many), head, at, at)
		case strings.HasSuffix(r.URL.Path, "/teams"):
			w.WriteHeader(http.StatusMethodNotAllowed)
		case strings.HasSuffix(r.URL.Path, "/assignees"):
			fmt.Fprint(w, `[{"id": 1, "login": "grace"}]`)
		default:
			fmt.Fprintf(w, `{"id": 9, "login": %q}`, forgetest.Me)
		}
	}))
	defer server.Close()
	f, err := Open(forge.Config{Kind: forge.Gitea, URL: server.URL, Repo: "acme/fleet", TokenFile: "t", Read: func(string) ([]byte, error) { return []byte("t"), nil }}, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Named(t.Context(), 1, head)
	if err != nil || got.By != "grace" || len(asked) != 3 {
		t.Errorf("got %+v, %v after %d lists, want grace after all, a day's and an hour's", got, err, len(asked))
	}
}

// Who may write is the forge's word at the moment.
func TestNamedAsksEachTime(t *testing.T) {
	fake := forgetest.GitLab(t)
	f := open(t, forge.GitLab, fake)
	n := fake.Add(forgetest.Pull{Base: "main", Head: head, Fork: true})
	fake.Say(n, "grace", "/plan "+head)
	for _, c := range []struct {
		state string
		want  string
	}{{"active", "grace"}, {"blocked", ""}, {"awaiting", ""}} {
		fake.Grant(forgetest.Person{Login: "grace", Access: "30", State: c.state})
		if got, err := f.Named(t.Context(), n, head); err != nil || got.By != c.want {
			t.Errorf("%s: %+v, %v", c.state, got, err)
		}
	}
	fake.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		fails := strings.Contains(r.URL.Path, "/members/")
		if fails {
			w.WriteHeader(http.StatusForbidden)
		}
		return fails
	})
	if got, err := f.Named(t.Context(), n, head); err == nil || got.By != "" {
		t.Errorf("got %+v, %v, want an error", got, err)
	}
}
