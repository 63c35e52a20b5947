package routes

import (
	"net/http"
	"slices"
)

// Mux is a mux that knows its patterns, so that a test can hold them against the list.
// Like http.ServeMux it is filled before it serves.
type Mux struct {
	*http.ServeMux

	patterns []string
}

// NewMux has no pattern yet.
func NewMux() *Mux { return &Mux{ServeMux: http.NewServeMux()} }

// Handle registers a handler.
func (m *Mux) Handle(pattern string, h http.Handler) {
	m.patterns = append(m.patterns, pattern)
	m.ServeMux.Handle(pattern, h)
}

// HandleFunc registers a function.
func (m *Mux) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	m.Handle(pattern, http.HandlerFunc(h))
}

// Patterns that were registered, in order of the alphabet.
func (m *Mux) Patterns() []string { return slices.Sorted(slices.Values(m.patterns)) }
