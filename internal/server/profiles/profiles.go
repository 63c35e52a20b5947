// Package profiles serves Go's profiles (net/http/pprof) of the process at /debug/pprof/.
//
// Profiles show what the process does, for whom and with which arguments, so that they are
// for operators: who is let through is the caller's to say. Package server mounts the
// handler on the operators' port, behind its guard, where --profiling asks for it. Importing
// net/http/pprof registers on http.DefaultServeMux, which nothing here serves.
//
// Safe for concurrent use: the runtime makes one CPU profile or trace at a time and refuses
// a second.
package profiles

import (
	"net/http"
	"net/http/pprof"
)

// Path below which profiles are.
const Path = "/debug/pprof/"

// Handler serves them. allowed reports whether who asks may have them, and answers the
// request itself where not.
func Handler(allowed func(w http.ResponseWriter, r *http.Request) bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(Path, pprof.Index) // heap, goroutine, mutex and the like too
	mux.HandleFunc(Path+"cmdline", pprof.Cmdline)
	mux.HandleFunc(Path+"profile", pprof.Profile)
	mux.HandleFunc(Path+"symbol", pprof.Symbol)
	mux.HandleFunc(Path+"trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if allowed(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}
