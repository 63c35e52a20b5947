package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
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
