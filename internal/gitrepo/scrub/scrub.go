// Package scrub takes credentials out of what is said of a remote: user names and
// passwords within URLs.
//
// Caller: gitrepo. All is safe for concurrent use.
package scrub

import "regexp"

var userinfo = regexp.MustCompile(`//[^/\s@"']*@`)

// Text takes user names and passwords out of URLs within a text.
func Text(s string) string { return userinfo.ReplaceAllString(s, "//") }

// Error wraps an error so that its text carries no credentials; its causes stay
// visible to errors.Is and errors.As.
func Error(err error) error {
	if err == nil || !userinfo.MatchString(err.Error()) {
		return err
	}
	return &scrubbed{err}
}

type scrubbed struct{ err error }

func (e *scrubbed) Error() string { return Text(e.err.Error()) }

func (e *scrubbed) Unwrap() error { return e.err }
