package tracing

import (
	"context"
	"net/http"
	"time"
)

// header is W3C Trace Context's.
const header = "traceparent"

// Inject adds the trace of a request's context to its header, for another replica.
func Inject(r *http.Request) {
	if o := Of(r.Context()); !o.IsZero() {
		r.Header.Set(header, o.Traceparent())
	}
}

// Route is what is traced of a request.
type Route struct {
	// Name of the span; "" makes none.
	Name string
	// Trigger: it brings news that lead to a round. Told: only once its handler says so
	// (News), because anybody may send it.
	Trigger, Told bool
	// Market: the news are a report's, of which there are many.
	Market bool
	// Trusted: the caller is another replica of this daemon, whose trace goes on.
	Trusted bool
}

// Handler traces the requests to a port. route says what is traced of each; it is asked
// before anybody looked who calls, so that what a caller says is linked to and no more,
// unless the route says that its certificate is a replica's.
func (t *Tracer) Handler(next http.Handler, route func(*http.Request) Route) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is := route(r)
		if is.Name == "" {
			next.ServeHTTP(w, r)
			return
		}
		said := ParseTraceparent(r.Header.Get(header))
		var parent Origin
		var links []Origin
		switch {
		case is.Trusted:
			parent = said
		case !said.IsZero():
			links = []Origin{said}
		}
		ctx, span := t.Begin(r.Context(), is.Name, time.Time{}, parent, links)
		var trigger *Trigger
		if is.Trigger {
			o := span.Origin()
			trigger = &Trigger{origin: o, kept: !o.IsZero(), market: is.Market, at: time.Now()}
			if is.Told {
				ctx = context.WithValue(ctx, newsKey{}, func() { t.triggers.add(trigger) })
			} else {
				t.triggers.add(trigger)
			}
		}
		answer := &status{ResponseWriter: w, code: http.StatusOK}
		defer func() {
			if trigger != nil && answer.code >= http.StatusBadRequest {
				t.triggers.remove(trigger)
			}
			switch answer.code {
			case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests:
				return // whoever that is fills no collector: a span that does not end is nowhere
			}
			span.SetInt("http.response.status_code", answer.code)
			span.End(nil)
		}()
		next.ServeHTTP(answer, r.WithContext(ctx))
	})
}

// newsKey is of the function by which News tells.
type newsKey struct{}

// News says that a request which anybody may send was proven to bring news: before they
// are passed on. Without traces it does nothing.
func News(ctx context.Context) {
	if tell, ok := ctx.Value(newsKey{}).(func()); ok {
		tell()
	}
}

// status notes an answer's.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }
