package logs

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"
)

const (
	// within is how long a line is not written again.
	within = time.Minute
	// most is how many lines are remembered.
	most = 4096
)

// Handler writes what another one writes, with codes, and nothing twice a minute.
func Handler(to slog.Handler) slog.Handler {
	return &handler{to: to, said: &said{last: map[uint64]*line{}}}
}

type handler struct {
	to   slog.Handler
	said *said
	// under is what WithAttrs and WithGroup added: a line is another with it.
	under string
}

// said is what was written within the minute, of a handler and all that come from it.
type said struct {
	mu   sync.Mutex
	seed maphash.Seed
	last map[uint64]*line
	// swept is when old lines were last looked for.
	swept time.Time
}

type line struct {
	at      time.Time
	leftOut int
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.to.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	under := h.under
	for _, a := range attrs {
		under += "\x00" + a.String()
	}
	return &handler{h.to.WithAttrs(attrs), h.said, under}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.to.WithGroup(name), h.said, h.under + "\x00group " + name}
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	repeated := 0
	if r.Level > slog.LevelDebug {
		var write bool
		if repeated, write = h.said.news(h.under, &r); !write {
			return nil
		}
	}
	code := CodeOf(r.Message)
	if code != "" || repeated > 0 {
		r = r.Clone()
	}
	if code != "" {
		r.AddAttrs(slog.String("code", code))
	}
	if repeated > 0 {
		r.AddAttrs(slog.Int("repeated", repeated))
	}
	return h.to.Handle(ctx, r) //nolint:wrapcheck // of the writer
}

// news reports whether a line is to be written, and how many like it were not.
func (s *said) news(under string, r *slog.Record) (leftOut int, write bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	var hash maphash.Hash
	hash.SetSeed(s.seed)
	for _, text := range []string{r.Level.String(), r.Message, under} {
		_, _ = hash.WriteString(text)
		_ = hash.WriteByte(0)
	}
	r.Attrs(func(a slog.Attr) bool {
		_, _ = hash.WriteString(a.String())
		_ = hash.WriteByte(0)
		return true
	})
	key := hash.Sum64()
	l := s.last[key]
	if l == nil {
		s.remember(key, r.Time)
		return 0, true
	}
	if age := r.Time.Sub(l.at); age >= 0 && age < within {
		l.leftOut++
		return 0, false
	}
	leftOut, l.leftOut, l.at = l.leftOut, 0, r.Time
	return leftOut, true
}

// remember keeps a line, if there is room among those of the last minute.
func (s *said) remember(key uint64, at time.Time) {
	if since := at.Sub(s.swept); len(s.last) >= most && (since >= time.Second || since < 0) { // a look at all costs
		s.swept = at
		for k, l := range s.last {
			if age := at.Sub(l.at); age >= within || age < 0 {
				delete(s.last, k)
			}
		}
	}
	if len(s.last) < most {
		s.last[key] = &line{at: at}
	}
}
