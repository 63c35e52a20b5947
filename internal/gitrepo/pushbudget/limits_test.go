package pushbudget

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// answer is what a git server answers to a push, or to a fetch.
func answer(push bool, status int, text string, header ...string) *http.Response {
	path := "/fleet.git/git-upload-pack"
	if push {
		path = "/fleet.git/git-receive-pack"
	}
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(text)),
		Request: &http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}},
	}
}

// TestLimitsAreObeyed: what counts as a limit, and until when.
func TestLimitsAreObeyed(t *testing.T) {
	reset := strconv.FormatInt(noon.Add(5*time.Minute).Unix(), 10)
	for name, c := range map[string]struct {
		answer *http.Response
		held   time.Duration
	}{
		"seconds":             {answer(true, 429, "", "Retry-After", "90"), 90 * time.Second},
		"a date":              {answer(true, 429, "", "Retry-After", noon.Add(2*time.Minute).Format(http.TimeFormat)), 2 * time.Minute},
		"a date gone by":      {answer(true, 429, "", "Retry-After", noon.Add(-time.Minute).Format(http.TimeFormat)), time.Second},
		"no time":             {answer(true, 429, ""), time.Minute},
		"no number":           {answer(true, 429, "", "Retry-After", "soon"), time.Minute},
		"too long":            {answer(true, 429, "", "Retry-After", "86400"), time.Hour},
		"in 68 years":         {answer(true, 429, "", "Retry-After", "99999999999999999999"), time.Hour},
		"403 with a time":     {answer(true, 403, "", "Retry-After", "30"), 30 * time.Second},
		"403 used up":         {answer(true, 403, "", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset), 5 * time.Minute},
		"403 by words":        {answer(true, 403, `{"message":"You have exceeded a secondary rate limit."}`), time.Minute},
		"403 of GitLab":       {answer(true, 403, "", "RateLimit-Remaining", "0", "RateLimit-Reset", reset), 5 * time.Minute},
		"403 without a right": {answer(true, 403, "Write access to repository not granted."), 0},
		"503 with a time":     {answer(true, 503, "", "Retry-After", "20"), 20 * time.Second},
		"503 for too long":    {answer(true, 503, "", "Retry-After", "3600"), 5 * time.Minute},
		"503":                 {answer(true, 503, "upstream"), 0},
		"401":                 {answer(true, 401, "", "Retry-After", "20"), 0},
		"taken":               {answer(true, 200, "rate limit", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watch{noon}
			b := New(Options{Now: w.now, Sleep: w.sleep})
			want, err := io.ReadAll(c.answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			c.answer.Body = io.NopCloser(strings.NewReader(string(want)))
			b.Answered(c.answer)
			if got, err := io.ReadAll(c.answer.Body); err != nil || string(got) != string(want) {
				t.Errorf("the body is %q then, %v; it was %q", got, err, want)
			}
			if got := wait(b, w, Urgent); got != c.held {
				t.Errorf("held for %s, want %s", got, c.held)
			}
			if got := b.Figures().Held; got != c.held {
				t.Errorf("shown as held for %s, want %s", got, c.held)
			}
			if err := b.Err(); (err != nil) != (c.held > 0) {
				t.Errorf("not ready: %v", err)
			}
			if b.mayRead() != nil {
				t.Error("a limit of pushes holds reads")
			}
			w.at = w.at.Add(c.held)
			if wait(b, w, Status) != 0 || b.Err() != nil {
				t.Error("held for longer")
			}
		})
	}
}

// TestHoldsGrow: a forge that names no time is asked less and less often, until it takes
// something.
func TestHoldsGrow(t *testing.T) {
	w, lines := &watch{noon}, &logtest.Lines{}
	b := New(Options{Now: w.now, Sleep: w.sleep, Log: lines.Logger()})
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		b.Answered(answer(true, 429, ""))
		if got := wait(b, w, Urgent); got != want*time.Minute {
			t.Fatalf("held for %s, want %d min", got, want)
		}
		w.at = w.at.Add(want * time.Minute)
	}
	asked := answer(true, 200, "")
	asked.Request.Method = http.MethodGet
	asked.Request.URL = &url.URL{Path: "/fleet.git/info/refs", RawQuery: "service=git-receive-pack"}
	b.Answered(asked)
	b.Answered(answer(true, 429, ""))
	if got := wait(b, w, Urgent); got != time.Hour {
		t.Errorf("that refs were listed ends the limit: held for %s", got)
	}
	w.at = w.at.Add(time.Hour)
	b.Answered(answer(true, 200, ""))
	b.Answered(answer(true, 429, ""))
	if got := wait(b, w, Urgent); got != time.Minute {
		t.Errorf("after a push that was taken, held for %s", got)
	}
	b.Answered(answer(true, 429, "", "Retry-After", "5"))
	if got := wait(b, w, Urgent); got != time.Minute {
		t.Errorf("a shorter time shortens a limit to %s", got)
	}
	lines.Wants(t, "FB1169")
}

// TestLimitOfReads holds reads and pushes, and none of it is sent.
func TestLimitOfReads(t *testing.T) {
	w := &watch{noon}
	b := New(Options{Now: w.now, Sleep: w.sleep})
	f := &fake{}
	r := b.Remote(f, "ledger")
	b.Answered(answer(false, 429, "", "Retry-After", "120"))
	var held *gitrepo.ErrHeld
	if _, err := r.Refs(t.Context()); !errors.As(err, &held) || !held.Until.Equal(noon.Add(2*time.Minute)) {
		t.Errorf("refs are read: %v", err)
	}
	if err := r.Fetch(t.Context(), nil, nil); !errors.As(err, &held) {
		t.Errorf("objects are read: %v", err)
	}
	if err := r.Push(t.Context(), nil, nil); !errors.As(err, &held) || f.sent != 0 {
		t.Errorf("pushed: %v", err)
	}
	w.at = w.at.Add(2 * time.Minute)
	if _, err := r.Refs(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.Push(t.Context(), nil, nil); err != nil || f.sent != 1 {
		t.Error(err)
	}
}

// TestShortLimitIsWaitedFor: seconds are no reason to fail a push.
func TestShortLimitIsWaitedFor(t *testing.T) {
	w := &watch{noon}
	b := New(Options{Now: w.now, Sleep: w.sleep})
	b.Answered(answer(true, 429, "", "Retry-After", "5"))
	f := &fake{}
	if err := b.Remote(f, "ledger").Push(t.Context(), nil, nil); err != nil || f.sent != 1 || !w.at.Equal(noon.Add(5*time.Second)) {
		t.Errorf("pushed %d times at %s: %v", f.sent, w.at, err)
	}
}

// A limit that one replica is told holds the others as long, and ends there at the same
// time, however often they hear of it. What they only heard they do not hand on.
func TestLimitsHoldAllReplicas(t *testing.T) {
	w, lines := &watch{noon}, &logtest.Lines{}
	told, other, third := New(Options{Now: w.now, Sleep: w.sleep}), New(Options{Now: w.now, Sleep: w.sleep, Log: lines.Logger()}), New(Options{Now: w.now, Sleep: w.sleep})
	f := &fake{}
	r := other.Remote(f, "ledger")
	beat := func() {
		other.HeldElsewhere(told.Holds())
		third.HeldElsewhere(other.Holds())
	}
	beat()
	if other.Reads() != nil || other.Err() != nil {
		t.Fatal("held without a limit")
	}
	told.Answered(answer(true, 429, "", "Retry-After", "60"))
	beat()
	if other.Reads() != nil || other.Err() == nil {
		t.Errorf("a limit of pushes: reads %v, pushes %v", other.Reads(), other.Err())
	}
	told.Answered(answer(false, 429, "", "Retry-After", "90"))
	for range 7 {
		beat()
		var held *gitrepo.ErrHeld
		if _, err := r.Refs(t.Context()); !errors.As(err, &held) || !held.Until.Equal(noon.Add(90*time.Second)) {
			t.Errorf("after %s another replica reads: %v", w.at.Sub(noon), err)
		}
		if err := r.Push(t.Context(), nil, nil); !errors.As(err, &held) || f.sent != 0 {
			t.Errorf("after %s another replica pushes: %v", w.at.Sub(noon), err)
		}
		if third.Reads() != nil || third.Err() != nil {
			t.Fatal("what was only heard is handed on")
		}
		w.at = w.at.Add(10 * time.Second)
	}
	w.at = noon.Add(90 * time.Second)
	beat()
	if _, err := r.Refs(t.Context()); err != nil || told.Reads() != nil {
		t.Errorf("when the time is over: %v", err)
	}
	other.HeldElsewhere(100*time.Hour, -time.Hour)
	if got := other.Reads(); got == nil || wait(other, w, Urgent) != 0 {
		t.Errorf("what no forge says: reads %v, pushes wait %s", got, wait(other, w, Urgent))
	}
	w.at = w.at.Add(time.Hour)
	if err := other.Reads(); err != nil {
		t.Errorf("held for longer than an hour: %v", err)
	}
	var none *Budget
	none.HeldElsewhere(time.Minute, time.Minute)
	if reads, pushes := none.Holds(); reads != 0 || pushes != 0 || none.Reads() != nil {
		t.Error("a budget that is none holds something")
	}
	lines.Wants(t, "FB1170")
}

// A proxy that answers one replica 503 holds that one, for minutes, and no other; a limit
// that came before goes on holding all.
func TestUnavailableHoldsOneReplica(t *testing.T) {
	w := &watch{noon}
	told := New(Options{Now: w.now, Sleep: w.sleep})
	for _, push := range []bool{false, true} {
		told.Answered(answer(push, 503, "", "Retry-After", "3600"))
	}
	if reads, pushes := told.Holds(); reads != 0 || pushes != 0 {
		t.Errorf("others are to hold reads for %s, pushes for %s", reads, pushes)
	}
	if told.Reads() == nil || told.Err() == nil {
		t.Errorf("it is not held itself: reads %v, pushes %v", told.Reads(), told.Err())
	}
	told.Answered(answer(false, 429, "", "Retry-After", "60"))
	told.Answered(answer(false, 503, "", "Retry-After", "3600"))
	if reads, pushes := told.Holds(); reads != time.Minute || pushes != time.Minute {
		t.Errorf("after a limit of a minute others are to hold reads for %s, pushes for %s", reads, pushes)
	}
	w.at = w.at.Add(5 * time.Minute)
	if err := told.Reads(); err != nil {
		t.Errorf("held for longer than five minutes: %v", err)
	}
}
