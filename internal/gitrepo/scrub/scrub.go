// Package scrub takes credentials out of what is said of a remote: user names and
// passwords within URLs. It keeps the beginning of what is long: a server's own words may be in
// it, up to 64 KiB of them, and it goes into logs, onto pages and to people.
//
// Caller: gitrepo. All is safe for concurrent use.
package scrub

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

var userinfo = regexp.MustCompile(`//[^/\s@"']*@`)

// most is how many bytes of a text are kept.
const most = 2 << 10

// Text takes user names and passwords out of URLs within a text.
func Text(s string) string { return userinfo.ReplaceAllString(s, "//") }

func short(s string) string {
	if s = Text(s); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "… (cut)"
	}
	return s
}

// Error wraps an error so that its text carries no credentials, and is no longer than people
// read; its causes stay visible to errors.Is and errors.As.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); len(text) <= most && !userinfo.MatchString(text) {
		return err
	}
	return &scrubbed{err}
}

// Cause is Error without the request that failed (`Get "https://…/info/refs?…": `), for who
// has named the remote already, and without a colon after which a server said nothing.
func Cause(err error) error {
	var request *url.Error
	switch {
	case errors.As(err, &request):
		return &caused{err, trimmed(strings.Replace(err.Error(), request.Error(), request.Err.Error(), 1))}
	case err != nil && strings.HasSuffix(err.Error(), ": "):
		return &caused{err, trimmed(err.Error())}
	}
	return Error(err)
}

func trimmed(text string) string { return short(strings.TrimSuffix(text, ": ")) }

type caused struct {
	err  error
	text string
}

func (e *caused) Error() string { return e.text }

func (e *caused) Unwrap() error { return e.err }

type scrubbed struct{ err error }

func (e *scrubbed) Error() string { return short(e.err.Error()) }

func (e *scrubbed) Unwrap() error { return e.err }
