package server

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// answerJSON writes a value. A client that has gone is nobody to tell.
func answerJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
}

// refuse answers with an error, as one line, and its machine-readable reason.
func refuse(w http.ResponseWriter, status int, reason, format string, args ...any) {
	answerJSON(w, status, wire.Error{Error: escape.Reason(fmt.Sprintf(format, args...)), Reason: reason})
}

// jsonErrors makes the mux's own refusals (no such route, wrong method) JSON
// like all others.
func jsonErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		probe := &statusProbe{header: http.Header{}}
		handler.ServeHTTP(probe, r)
		if allow := probe.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "%s %s: allowed is %s", r.Method, r.URL.Path, allow)
			return
		}
		refuse(w, http.StatusNotFound, "NotFound", "%s: no such route", r.URL.Path)
	})
}

// statusProbe hears what a handler would answer.
type statusProbe struct{ header http.Header }

func (p *statusProbe) Header() http.Header         { return p.header }
func (p *statusProbe) Write(b []byte) (int, error) { return len(b), nil }
func (p *statusProbe) WriteHeader(int)             {}

var (
	errTooLarge = errors.New("body is too large")
	errEncoding = errors.New("only gzip and no encoding are understood")
)

// readBody reads at most limit bytes, as sent and as unpacked.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	var data bytes.Buffer
	if err := copyBody(&data, w, r, limit); err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// copyBody is readBody for who needs the bytes in turn only.
func copyBody(to io.Writer, w http.ResponseWriter, r *http.Request, limit int64) error {
	var body io.Reader = http.MaxBytesReader(w, r.Body, limit)
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(body)
		if errors.Is(err, io.EOF) {
			return nil // an empty body packs nothing
		}
		if err != nil {
			return tooLarge(err)
		}
		body = unpacked
	default:
		return errEncoding
	}
	n, err := io.Copy(to, io.LimitReader(meter(r, body), limit+1))
	if err != nil {
		return tooLarge(err)
	}
	if n > limit {
		return errTooLarge
	}
	return nil
}

func tooLarge(err error) error {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return errTooLarge
	}
	return err
}

// refuseBody answers for a body that readBody did not read.
func refuseBody(w http.ResponseWriter, err error, limit int64) {
	switch {
	case errors.Is(err, errTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "TooLarge", "the body is larger than %d bytes", limit)
	case errors.Is(err, errEncoding):
		refuse(w, http.StatusUnsupportedMediaType, "UnsupportedEncoding", "Content-Encoding: %v", err)
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, wire.ReasonUnavailable, "%v; try again", err)
	case errors.Is(err, errTooFast):
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusTooManyRequests, "RateLimited", "%v; send less, or less often", err)
	default:
		refuse(w, http.StatusBadRequest, "BadBody", "read the body: %v", err)
	}
}
