// Package hints adds to an error what the reader can type next.
//
// An error with hints reads as the error that it wraps; the commands print the hints on
// lines of their own. Packages that commands call make such errors, internal/cli prints
// them. All functions are safe for concurrent use.
package hints

import "errors"

type hinted struct {
	err   error
	hints []string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

// On adds hints to an error; nil stays nil.
func On(err error, hints ...string) error {
	if err == nil {
		return nil
	}
	return &hinted{err, hints}
}

// Of are the outermost hints of an error, nil where it has none.
func Of(err error) []string {
	var h *hinted
	if errors.As(err, &h) {
		return h.hints
	}
	return nil
}
