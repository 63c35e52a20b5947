package guard

import "regexp"

var userinfo = regexp.MustCompile(`//[^/\s@"']*@`)

// Scrub takes user names and passwords out of URLs within a text.
func Scrub(s string) string { return userinfo.ReplaceAllString(s, "//") }

// Scrubbed wraps an error so that its text carries no credentials; its causes
// stay visible to errors.Is and errors.As.
func Scrubbed(err error) error {
	if err == nil || !userinfo.MatchString(err.Error()) {
		return err
	}
	return &scrubbedError{err}
}

type scrubbedError struct{ err error }

func (e *scrubbedError) Error() string { return Scrub(e.err.Error()) }

func (e *scrubbedError) Unwrap() error { return e.err }
