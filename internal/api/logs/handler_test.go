package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
)

// written is what a handler wrote.
type written struct {
	slog.Handler

	b *bytes.Buffer
}

func newWritten(level slog.Level) (*written, slog.Handler) {
	w := &written{b: &bytes.Buffer{}}
	return w, Handler(slog.NewTextHandler(w.b, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func (w *written) lines() string {
	defer w.b.Reset()
	return w.b.String()
}

func say(t *testing.T, h slog.Handler, at time.Time, level slog.Level, message string, args ...any) {
	t.Helper()
	r := slog.NewRecord(at, level, message, 0)
	r.Add(args...)
	if err := h.Handle(context.Background(), r); err != nil {
		t.Fatal(err)
	}
}

// Nothing is written twice a minute; what differs in any key, level or group is another
// line; how many were left out is said.
func TestHandler_NothingTwiceAMinute(t *testing.T) {
	w, h := newWritten(slog.LevelInfo)
	at := time.Unix(1000, 0)
	for i := range 5 {
		say(t, h, at.Add(time.Duration(i)*10*time.Second), slog.LevelWarn, "lost", "error", errors.New("x"))
	}
	if got := w.lines(); got != "level=WARN msg=lost error=x\n" {
		t.Errorf("within a minute: %q", got)
	}
	say(t, h, at.Add(time.Minute), slog.LevelWarn, "lost", "error", errors.New("x"))
	if got := w.lines(); got != "level=WARN msg=lost error=x repeated=4\n" {
		t.Errorf("after a minute: %q", got)
	}
	say(t, h, at.Add(time.Minute), slog.LevelWarn, "lost", "error", errors.New("y"))
	say(t, h, at.Add(time.Minute), slog.LevelError, "lost", "error", errors.New("x"))
	say(t, h.WithAttrs([]slog.Attr{slog.String("cluster", "a")}), at.Add(time.Minute), slog.LevelWarn, "lost", "error", errors.New("x"))
	say(t, h.WithGroup("g"), at.Add(time.Minute), slog.LevelWarn, "lost", "error", errors.New("x"))
	if got := w.lines(); strings.Count(got, "\n") != 4 || strings.Contains(got, "repeated") {
		t.Errorf("others: %q", got)
	}
	say(t, h, at, slog.LevelWarn, "lost", "error", errors.New("x")) // a clock that was set back
	if got := w.lines(); strings.Count(got, "\n") != 1 {
		t.Errorf("a minute ago: %q", got)
	}
}

// A burst that ends within the minute is told of at the minute's end, also when others fill
// what is remembered meanwhile; what goes on is written once a minute.
func TestHandler_BurstIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWritten(slog.LevelInfo)
		g := h.WithAttrs([]slog.Attr{slog.String("provider", "paris")})
		why := &changing{"bad signature"}
		for range 4 {
			say(t, g, time.Now(), slog.LevelWarn, "report refused", "error", why)
			say(t, h, time.Now(), slog.LevelInfo, "once")
			<-time.After(time.Second)
		}
		why.text = "another" // whoever said it goes on
		if got := w.lines(); strings.Count(got, "\n") != 2 {
			t.Errorf("at first: %q", got)
		}
		for i := range 2 * most { // the map is swept
			say(t, h, time.Now(), slog.LevelInfo, "flood", "n", i)
		}
		<-time.After(30 * time.Second)
		w.lines()
		<-time.After(27 * time.Second)
		synctest.Wait()
		want := "level=WARN msg=\"report refused\" provider=paris error=\"bad signature\" code=FB1149 repeated=2\n"
		if got := w.lines(); !strings.Contains(got, want) || !strings.Contains(got, "msg=once repeated=2\n") || strings.Count(got, "\n") != 2 {
			t.Errorf("at the minute's end: %q, want %q", got, want)
		}
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if got := w.lines(); got != "" {
			t.Errorf("afterwards: %q", got)
		}
		const n = 100
		for range n { // ten minutes
			say(t, h, time.Now(), slog.LevelWarn, "on and on")
			<-time.After(6 * time.Second)
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		sum, lines := 0, 0
		for l := range strings.Lines(w.lines()) {
			lines++
			sum++
			if _, more, ok := strings.Cut(strings.TrimSpace(l), " repeated="); ok {
				k, err := strconv.Atoi(more)
				if err != nil {
					t.Fatal(err)
				}
				sum += k
			}
		}
		if sum != n || lines > 12 {
			t.Errorf("%d lines tell of %d, there were %d", lines, sum, n)
		}
	})
}

// changing is a value that is another one later.
type changing struct{ text string }

func (c *changing) Error() string { return c.text }

// Who is refused, or signs in, is another line for each: nobody hides behind another.
func TestHandler_NobodyHides(t *testing.T) {
	w, h := newWritten(slog.LevelInfo)
	at := time.Unix(1000, 0)
	for _, e := range Events() {
		if e.Code < "FB1149" || e.Code > "FB1155" {
			continue
		}
		for _, peer := range []string{"10.0.0.1:2000", "10.0.0.1:2001", "10.0.0.2:2000"} {
			say(t, h, at, slog.LevelWarn, e.Message, "error", errors.New("no"), "peer", peer)
		}
		if got := w.lines(); strings.Count(got, "code="+e.Code+"\n") != 3 {
			t.Errorf("%s: %q", e.Message, got)
		}
	}
}

// Debug lines are all written, and codes are those of the list.
func TestHandler_Codes(t *testing.T) {
	w, h := newWritten(slog.LevelDebug)
	at := time.Unix(1000, 0)
	for range 2 {
		say(t, h, at, slog.LevelDebug, "round")
	}
	if got := w.lines(); strings.Count(got, "msg=round") != 2 {
		t.Errorf("debug: %q", got)
	}
	e := Events()[0]
	say(t, h, at, slog.LevelInfo, e.Message, "n", 1)
	say(t, h, at, slog.LevelInfo, "of a library")
	if got := w.lines(); !strings.Contains(got, "n=1 code="+e.Code+"\n") || strings.Count(got, "code=") != 1 {
		t.Errorf("%q", got)
	}
}

// What is remembered is bounded: beyond it lines are written, and old ones make room.
func TestHandler_Bounded(t *testing.T) {
	w, h := newWritten(slog.LevelInfo)
	at := time.Unix(1000, 0)
	for i := range 3 * most {
		say(t, h, at, slog.LevelInfo, "flood", "n", i)
	}
	if n := strings.Count(w.lines(), "\n"); n != 3*most {
		t.Errorf("%d of %d lines are written", n, 3*most)
	}
	if n := len(h.(*handler).said.last); n > most {
		t.Errorf("%d lines are remembered", n)
	}
	for range 2 {
		say(t, h, at.Add(2*time.Minute), slog.LevelInfo, "later")
	}
	if got := w.lines(); strings.Count(got, "\n") != 1 {
		t.Errorf("after the flood: %q", got)
	}
}

func BenchmarkHandler(b *testing.B) {
	for name, h := range map[string]slog.Handler{"bare": slog.DiscardHandler, "codes": Handler(slog.DiscardHandler)} {
		b.Run(name, func(b *testing.B) {
			log := slog.New(enabled{h})
			for i := 0; b.Loop(); i++ {
				log.Info("commit pushed", "n", fmt.Sprint(i))
			}
		})
	}
}

// enabled writes though nobody reads.
type enabled struct{ slog.Handler }

func (enabled) Enabled(context.Context, slog.Level) bool { return true }

// What was left out in the minute before the end is told at the end, in order and once.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		h := Handler(slog.NewTextHandler(&out, nil))
		log := slog.New(h).With("cluster", "rome")
		for i := range 5 {
			log.Info("hello")
			if i < 3 {
				log.Info("other")
			}
			<-time.After(time.Second)
		}
		log.Info("alone")
		out.Reset()
		Flush(log.Handler())
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(got) != 2 || !strings.Contains(got[0], "msg=other cluster=rome repeated=1") || !strings.Contains(got[1], "msg=hello cluster=rome repeated=3") {
			t.Errorf("got %q", got)
		}
		Flush(h)
		<-time.After(2 * time.Minute)
		if n := strings.Count(out.String(), "\n"); n != 2 {
			t.Errorf("%d lines in the end, want 2:\n%s", n, out.String())
		}
		Flush(slog.NewTextHandler(&out, nil)) // another handler has nothing
	})
}

// Libraries write errors under a key of their own: here all are under one.
func TestHandler_OneKeyForErrors(t *testing.T) {
	w, h := newWritten(slog.LevelInfo)
	logr.FromSlogHandler(h).WithValues("err", "before").Error(errors.New("x"), "lost", "pod", "a")
	if got := w.lines(); strings.Contains(got, "err=") || !strings.Contains(got, " error=before") || !strings.Contains(got, " error=x") || !strings.Contains(got, " pod=a") {
		t.Errorf("got %q", got)
	}
	say(t, h, time.Unix(1000, 0), slog.LevelWarn, "lost", "error", "x")
	say(t, h, time.Unix(1001, 0), slog.LevelWarn, "lost", "err", "x")
	if got := w.lines(); got != "level=WARN msg=lost error=x\n" {
		t.Errorf("one line under two keys is two: %q", got)
	}
}
