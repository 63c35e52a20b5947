package logs

import (
	"context"
	"hash/maphash"
	"log/slog"
	"slices"
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

// line is one that was written.
type line struct {
	at      time.Time
	leftOut int
	// newest of those that were left out, if any, and where it goes.
	newest slog.Record
	to     slog.Handler
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.to.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	attrs = ours(attrs)
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
	r = renamed(r)
	if r.Level > slog.LevelDebug {
		var write bool
		if repeated, write = h.said.news(h, &r); !write {
			return nil
		}
	}
	return emit(ctx, h.to, r, repeated)
}

// Keys of errors: ours, and the one under which libraries (klog, logr) write theirs.
const (
	errorKey   = "error"
	libraryKey = "err"
)

// ours is a list with errors under the key that all lines have.
func ours(attrs []slog.Attr) []slog.Attr {
	at := slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == libraryKey })
	if at < 0 {
		return attrs
	}
	out := slices.Clone(attrs)
	for i := at; i < len(out); i++ {
		if out[i].Key == libraryKey {
			out[i].Key = errorKey
		}
	}
	return out
}

// renamed is a line with errors under the key that all lines have.
func renamed(r slog.Record) slog.Record {
	library := false
	r.Attrs(func(a slog.Attr) bool { library = a.Key == libraryKey; return !library })
	if !library {
		return r
	}
	var attrs []slog.Attr
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	out.AddAttrs(ours(attrs)...)
	return out
}

// emit writes a line with its code and how many like it were left out.
func emit(ctx context.Context, to slog.Handler, r slog.Record, repeated int) error {
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
	return to.Handle(ctx, r) //nolint:wrapcheck // of the writer
}

// news reports whether a line is to be written, and how many like it were not.
func (s *said) news(h *handler, r *slog.Record) (leftOut int, write bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	var hash maphash.Hash
	hash.SetSeed(s.seed)
	for _, text := range []string{r.Level.String(), r.Message, h.under} {
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
		if l.leftOut++; l.leftOut == 1 {
			first := l.at
			time.AfterFunc(within-age, func() { s.tell(l, first) })
			l.newest, l.to = frozen(r), h.to
		}
		l.newest.Time = r.Time // the rest of it is equal
		return 0, false
	}
	leftOut = l.leftOut
	*l = line{at: r.Time}
	return leftOut, true
}

// tell writes the newest of the lines that were left out since one was written first, with
// how many there were before it, unless another was written meanwhile: without it a burst
// would leave one line, and no word of how large it was.
func (s *said) tell(l *line, first time.Time) {
	s.mu.Lock()
	if l.leftOut == 0 || !l.at.Equal(first) {
		s.mu.Unlock()
		return
	}
	newest, to, before := l.newest, l.to, l.leftOut-1
	*l = line{at: first.Add(within)} // it is written now
	s.mu.Unlock()
	_ = emit(context.Background(), to, newest, before) // nobody waits for it
}

// Flush writes at once what Handler would at the minute's end: before a process ends, so
// that lines and what they say was repeated are as many as there were. Other handlers have
// nothing to write.
func Flush(of slog.Handler) {
	h, ok := of.(*handler)
	if !ok {
		return
	}
	h.said.mu.Lock()
	var waiting []*line
	for _, l := range h.said.last {
		if l.leftOut > 0 {
			waiting = append(waiting, l)
		}
	}
	slices.SortFunc(waiting, func(a, b *line) int { return a.newest.Time.Compare(b.newest.Time) })
	first := make([]time.Time, len(waiting))
	for i, l := range waiting {
		first[i] = l.at
	}
	h.said.mu.Unlock()
	for i, l := range waiting {
		h.said.tell(l, first[i])
	}
}

// frozen is a line that can be written later: what its values point to may change.
func frozen(r *slog.Record) slog.Record {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Value = a.Value.Resolve(); a.Value.Kind() == slog.KindAny || a.Value.Kind() == slog.KindGroup {
			a.Value = slog.StringValue(a.Value.String())
		}
		out.AddAttrs(a)
		return true
	})
	return out
}

// remember keeps a line, if there is room among those of the last minute.
func (s *said) remember(key uint64, at time.Time) {
	if since := at.Sub(s.swept); len(s.last) >= most && (since >= time.Second || since < 0) { // a look at all costs
		s.swept = at
		for k, l := range s.last {
			if age := at.Sub(l.at); l.leftOut == 0 && (age >= within || age < 0) { // the others are told of first
				delete(s.last, k)
			}
		}
	}
	if len(s.last) < most {
		s.last[key] = &line{at: at}
	}
}
