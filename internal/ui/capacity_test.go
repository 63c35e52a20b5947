package ui_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/simulate/handed"
	"github.com/fleetbroker/fleetbroker/internal/simulate/jobs"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// planning is a dashboard of the small fleet whose simulations run in real processes.
func planning(t testing.TB) *daemon {
	t.Helper()
	b := small()
	b.Tick(12 * time.Hour).Round()
	return planningOf(t, b)
}

// planningOf is one of any fleet, a day after its start.
func planningOf(t testing.TB, b *plantest.Builder) *daemon {
	t.Helper()
	d := newDaemonWith(t, func(o *ui.Options) {
		j := jobs.New(jobs.Options{Now: o.Now, Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(j.Close)
		o.Capacity = handed.New(j, nil, nil)
	})
	d.now = plantest.Start.Add(24 * time.Hour)
	d.show(b)
	return d
}

// sendBody is the answer to a request with a body.
func (d *daemon) sendBody(t testing.TB, method, path, kind, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	d.ui.ServeHTTP(w, r)
	return w
}

// planned is the page's JSON.
func capacityOf(t testing.TB, d *daemon) ui.CapacityAnswer {
	t.Helper()
	var got struct{ Data ui.CapacityAnswer }
	w := d.get(t, "/api/ui/capacity")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v: %.300s", w.Code, err, w.Body)
	}
	return got.Data
}

// finished is a job once it runs no more.
func finished(t testing.TB, d *daemon, id string) scenario.Job {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); <-time.After(20 * time.Millisecond) {
		var got struct{ Data ui.CapacityJobAnswer }
		w := d.get(t, "/api/ui/capacity/"+id)
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %v: %.300s", w.Code, err, w.Body)
		}
		if got.Data.Job.State != scenario.Running {
			return got.Data.Job
		}
	}
	t.Fatal("the simulation does not end")
	return scenario.Job{}
}

// TestCapacity: a simulation is begun by a form and by JSON, with what changed; its results
// are those of the planner, next to what was; who asked sees it.
func TestCapacity(t *testing.T) {
	d := planning(t)
	page := capacityOf(t, d)
	if strings.Join(page.Providers, " ") != "berlin milan paris" || len(page.Jobs) != 0 || page.Token == "" {
		t.Fatalf("%+v", page)
	}
	w := d.sendBody(t, http.MethodPost, "/api/ui/capacity", "application/json", `{"days": 2, "growth": "3", "without": ["berlin"], "prices": [{"of": "milan", "times": "2"}]}`, "X-CSRF-Token", page.Token)
	at := w.Header().Get("Location")
	if w.Code != http.StatusAccepted || !strings.HasPrefix(at, "/api/ui/capacity/") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	job := finished(t, d, strings.TrimPrefix(at, "/api/ui/capacity/"))
	if job.State != scenario.Done || job.Words != "demand × 3; without berlin; prices of milan × 2" || job.Progress != 100 {
		t.Fatalf("%+v", job)
	}
	// vision/train (8 H100), 3 × vision/serve (2 L4) and nlp/embed (4 A100) were placed, two wait.
	as, changed := job.AsIs, job.Changed
	if job.Rows != 7 || as.Arrived != 7 || changed.Arrived != 21 || as.GPUs != 72 || changed.GPUs != 40 {
		t.Errorf("%d rows; %+v, %+v", job.Rows, as, changed)
	}
	// 16 + 4 H100 are asked for and 16 are there, at more than the cheap one pays; three times
	// as much leaves the A100 nowhere, and 24 of the L4 hold 18.
	if as.NeverPlaced < 1 || changed.NeverPlaced <= as.NeverPlaced || as.Cost.IsZero() || len(changed.Never) == 0 {
		t.Errorf("as it is %+v, changed %+v", as, changed)
	}
	if !strings.Contains(changed.Never[0].Asks, "GPU") || len(as.Providers) != 3 || len(changed.Providers) != 2 {
		t.Errorf("%+v", changed)
	}
	text := d.get(t, "/ui/capacity/"+job.ID).Body.String()
	for _, want := range []string{"demand × 3; without berlin; prices of milan × 2", "Never placed", "As it is", "berlin"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	form := url.Values{"token": {page.Token}, "days": {"1"}, "growth": {"1"}, "without": {""}, "of": {""}, "times": {"1"}}
	w = d.sendBody(t, http.MethodPost, "/ui/capacity", "application/x-www-form-urlencoded", form.Encode(), "Sec-Fetch-Site", "same-origin")
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/ui/capacity/") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	same := finished(t, d, strings.TrimPrefix(w.Header().Get("Location"), "/ui/capacity/"))
	one, _ := json.Marshal(same.AsIs)
	two, _ := json.Marshal(same.Changed)
	if same.State != scenario.Done || !bytes.Equal(one, two) || same.Words != "nothing changed" {
		t.Errorf("without a change: %s\n%s", one, two)
	}
	d.look(view.Viewer{All: true, Identity: "certificate:bo"})
	if got := capacityOf(t, d); len(got.Jobs) != 0 {
		t.Errorf("another person sees %+v", got.Jobs)
	}
	if w := d.get(t, "/ui/capacity/"+job.ID); w.Code != http.StatusNotFound {
		t.Errorf("another person's page: %d", w.Code)
	}
}

// TestCapacity_Refuses: without a token, with another's, from another site, by who does not
// see all tenants, and what cannot be simulated.
func TestCapacity_Refuses(t *testing.T) {
	d := planning(t)
	d.look(view.Viewer{All: true, Identity: "certificate:eve"})
	eve := capacityOf(t, d).Token
	d.look(view.Viewer{All: true, Identity: "certificate:ada"})
	token := capacityOf(t, d).Token
	for name, tc := range map[string]struct {
		method, path, kind, body string
		header                   []string
		status                   int
		reason                   string
	}{
		"no token":         {"POST", "/api/ui/capacity", "application/json", `{}`, nil, 403, "BadToken"},
		"another's token":  {"POST", "/api/ui/capacity", "application/json", `{}`, []string{"X-CSRF-Token", eve}, 403, "BadToken"},
		"a made-up token":  {"POST", "/api/ui/capacity", "application/json", `{}`, []string{"X-CSRF-Token", "1.x"}, 403, "BadToken"},
		"another site":     {"POST", "/api/ui/capacity", "application/json", `{}`, []string{"X-CSRF-Token", token, "Sec-Fetch-Site", "cross-site"}, 403, "CrossOrigin"},
		"another origin":   {"POST", "/api/ui/capacity", "application/json", `{}`, []string{"X-CSRF-Token", token, "Origin", "https://evil.example"}, 403, "CrossOrigin"},
		"a form as JSON":   {"POST", "/api/ui/capacity", "text/plain", `{}`, []string{"X-CSRF-Token", token}, 415, "BadRequest"},
		"a key twice":      {"POST", "/api/ui/capacity", "application/json", `{"days":1,"days":2}`, []string{"X-CSRF-Token", token}, 400, "BadRequest"},
		"too much":         {"POST", "/api/ui/capacity", "application/json", `{"growth":"` + strings.Repeat("1", 70<<10) + `"}`, []string{"X-CSRF-Token", token}, 400, "BadRequest"},
		"days in quotes":   {"POST", "/api/ui/capacity", "application/json", `{"days":"x"}`, []string{"X-CSRF-Token", token}, 400, "BadRequest"},
		"days":             {"POST", "/api/ui/capacity", "application/json", `{"days":91}`, []string{"X-CSRF-Token", token}, 400, "BadChange"},
		"growth":           {"POST", "/api/ui/capacity", "application/json", `{"growth":"1e9"}`, []string{"X-CSRF-Token", token}, 400, "BadChange"},
		"an unknown one":   {"POST", "/api/ui/capacity", "application/json", `{"without":["<b>"]}`, []string{"X-CSRF-Token", token}, 400, "BadChange"},
		"nothing is left":  {"POST", "/api/ui/capacity", "application/json", `{"without":["paris","berlin","milan"]}`, []string{"X-CSRF-Token", token}, 400, "BadChange"},
		"a price below 0":  {"POST", "/api/ui/capacity", "application/json", `{"prices":[{"times":"-1"}]}`, []string{"X-CSRF-Token", token}, 400, "BadChange"},
		"no job to cancel": {"DELETE", "/api/ui/capacity/" + aJob, "application/json", ``, []string{"X-CSRF-Token", token}, 404, "NotFound"},
		"cancel, no token": {"DELETE", "/api/ui/capacity/" + aJob, "application/json", ``, nil, 403, "BadToken"},
	} {
		w := d.sendBody(t, tc.method, tc.path, tc.kind, tc.body, tc.header...)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), `"reason":"`+tc.reason+`"`) || strings.Contains(w.Body.String(), "<b>") && tc.kind != "application/json" {
			t.Errorf("%s: %d %s, want %d %s", name, w.Code, w.Body, tc.status, tc.reason)
		}
	}
	if w := d.sendBody(t, "POST", "/api/ui/capacity", "application/json", `{"days":"x"}`, "X-CSRF-Token", token); !strings.Contains(w.Body.String(), "days: it is a string; write a whole number") {
		t.Errorf("days in quotes: %s", w.Body)
	}
	if got := capacityOf(t, d); len(got.Jobs) != 0 {
		t.Errorf("something was begun: %+v", got.Jobs)
	}
	d.mu.Lock()
	d.now = d.now.Add(13 * time.Hour)
	d.mu.Unlock()
	if w := d.sendBody(t, "POST", "/api/ui/capacity", "application/json", `{}`, "X-CSRF-Token", token); w.Code != http.StatusForbidden {
		t.Errorf("a token of 13 hours ago: %d", w.Code)
	}
	for _, who := range []view.Viewer{{}, {Groups: []string{"team-vision"}, Identity: "oidc:1"}} {
		d.look(who)
		for _, path := range []string{"/ui/capacity", "/api/ui/capacity", "/ui/capacity/" + aJob} {
			if w := d.get(t, path); w.Code != http.StatusForbidden {
				t.Errorf("%+v gets %s: %d", who, path, w.Code)
			}
		}
		if w := d.sendBody(t, "POST", "/api/ui/capacity", "application/json", `{}`, "X-CSRF-Token", token); w.Code != http.StatusForbidden {
			t.Errorf("%+v begins a simulation: %d", who, w.Code)
		}
		if strings.Contains(d.get(t, "/ui/").Body.String(), "/ui/capacity") {
			t.Errorf("%+v is shown the way there", who)
		}
	}
}

// TestCapacity_OtherReplica: with a key that both have, a page of one replica can be sent to
// another; without one, or with another key, it cannot.
func TestCapacity_OtherReplica(t *testing.T) {
	ada := view.Viewer{All: true, Identity: "certificate:ada"}
	one, two := planning(t), planning(t)
	one.look(ada)
	two.look(ada)
	send := func() int {
		return two.sendBody(t, http.MethodPost, "/api/ui/capacity", "application/json", `{"days": 91}`, "X-CSRF-Token", capacityOf(t, one).Token).Code
	}
	if code := send(); code != http.StatusForbidden {
		t.Errorf("each with a key of its own: %d", code)
	}
	one.ui.ShareTokens(bytes.Repeat([]byte("k"), 32))
	two.ui.ShareTokens(nil)
	if code := send(); code != http.StatusForbidden {
		t.Errorf("one of them with a key: %d", code)
	}
	two.ui.ShareTokens(bytes.Repeat([]byte("k"), 32))
	if code := send(); code != http.StatusBadRequest { // the change is read
		t.Errorf("both with one: %d", code)
	}
}

// simulating are the child processes of this one that simulate.
func simulating(t testing.TB) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent …; a zombie is no process that works.
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		line, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if err == nil && len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(os.Getpid()) && strings.HasPrefix(string(line), "fleetbroker: simulate") {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	return pids
}

// TestCapacity_CancelsOnABigFleet: a simulation of 10,000 contracts and 1,000 flavors that is
// far from its end is cancelled by what the page's button sends. Its process is gone, another
// can begin, and who is not its owner, or has no token, ends nothing.
func TestCapacity_CancelsOnABigFleet(t *testing.T) {
	d := planningOf(t, big(10_000, 1000))
	ada, bo := view.Viewer{All: true, Identity: "certificate:ada"}, view.Viewer{All: true, Identity: "certificate:bo"}
	d.look(bo)
	bos := capacityOf(t, d).Token
	d.look(ada)
	token := capacityOf(t, d).Token
	send := func(path string, form url.Values) *httptest.ResponseRecorder {
		return d.sendBody(t, http.MethodPost, path, "application/x-www-form-urlencoded", form.Encode(), "Sec-Fetch-Site", "same-origin")
	}
	begin := url.Values{"token": {token}, "days": {"90"}, "growth": {"2"}, "times": {"1"}}
	w := send("/ui/capacity", begin)
	at := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(at, "/ui/capacity/") {
		t.Fatalf("begun: %d %.300s", w.Code, w.Body)
	}
	id := strings.TrimPrefix(at, "/ui/capacity/")
	await(t, "the process of the simulation", func() bool { return len(simulating(t)) == 1 })
	page := d.get(t, at).Body.String()
	if !strings.Contains(page, `action="`+at+`/cancel"`) || !strings.Contains(page, "<progress") {
		t.Fatalf("the page of a simulation that runs has no button: %.500s", page)
	}
	if w := send(at+"/cancel", url.Values{}); w.Code != http.StatusForbidden {
		t.Errorf("without a token: %d", w.Code)
	}
	d.look(bo)
	if w := send(at+"/cancel", url.Values{"token": {bos}}); w.Code != http.StatusNotFound {
		t.Errorf("by another account: %d", w.Code)
	}
	d.look(ada)
	if len(simulating(t)) != 1 {
		t.Fatal("it ended, and nobody with the right to cancel it did")
	}
	if w := send(at+"/cancel", url.Values{"token": {token}}); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/ui/capacity" {
		t.Fatalf("cancelled: %d %.300s", w.Code, w.Body)
	}
	await(t, "the end of the process", func() bool { return len(simulating(t)) == 0 })
	job := finished(t, d, id)
	if job.State != scenario.Cancelled || job.Changed != nil || job.Progress >= 100 {
		t.Errorf("it is %s at %d %%, with results: %t", job.State, job.Progress, job.Changed != nil)
	}
	if page := d.get(t, "/ui/capacity").Body.String(); !strings.Contains(page, "Cancelled") {
		t.Error("the list does not say that it was cancelled")
	}
	if w := send("/ui/capacity", begin); w.Code != http.StatusSeeOther {
		t.Errorf("the next one: %d %.300s", w.Code, w.Body)
	}
}

// await waits for what is to come, for two minutes.
func await(t testing.TB, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); !is(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: not after two minutes", what)
		}
	}
}
