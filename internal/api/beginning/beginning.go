// Package beginning keeps the first bytes of what others write: a child on its way out, a
// server's hooks, git. Their words may have no end, and the first ones say most.
//
// Invariant: what is beyond the bound is taken and forgotten, so that who writes never waits.
//
// Callers: packages child, receive and watching. Safe for concurrent use.
package beginning

import (
	"bytes"
	"sync"
)

// Writer keeps the beginning of what is written to it. Make it with Of.
type Writer struct {
	most int
	mu   sync.Mutex
	kept bytes.Buffer
}

// Of keeps so many bytes.
func Of(most int) *Writer { return &Writer{most: most} }

// Write implements io.Writer. It never fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept.Write(p[:min(len(p), w.most-w.kept.Len())])
	return len(p), nil
}

// String is what was kept.
func (w *Writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kept.String()
}
