package forge

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// What a forge may answer besides success.
var (
	// ErrNotFound: there is no such thing, or the token may not see it.
	ErrNotFound = errors.New("not found")
	// ErrNotReady: a merge waits for required checks or approvals, or cannot be
	// made without conflicts.
	ErrNotReady = errors.New("not ready to be merged")
	// ErrMoved: the head is another one than was said.
	ErrMoved = errors.New("the head has moved")
	// ErrUnavailable: no answer, or one that tells of trouble at the forge.
	ErrUnavailable = errors.New("the forge cannot be reached")
)

// Refused is a no of the forge.
type Refused struct {
	// Status of the answer.
	Status int
	// Words are the forge's own, cut to a line.
	Words string
	// Remedy is what usually helps; "" when nothing general can be said.
	Remedy string
}

// Error implements error.
func (r *Refused) Error() string {
	s := fmt.Sprintf("the forge refuses (%d %s): %s", r.Status, http.StatusText(r.Status), r.Words)
	if r.Remedy != "" {
		s += "; " + r.Remedy
	}
	return s
}

// Limited says that the forge wants to be left alone.
type Limited struct {
	// Until when.
	Until time.Time
}

// Error implements error.
func (l *Limited) Error() string {
	return "the forge limits requests until " + l.Until.UTC().Format(time.RFC3339)
}

// Wrap puts what an SDK returned into this package's words: doing says what
// was tried, status is the answer's, 0 where none came. A nil error stays nil.
// Errors of the transport pass through every SDK and are kept.
func Wrap(doing string, status int, err error) error {
	if err == nil {
		return nil
	}
	var limited *Limited
	switch {
	case errors.As(err, &limited):
		return fmt.Errorf("%s: %w", doing, limited)
	case errors.Is(err, ErrUnavailable):
		return fmt.Errorf("%s: %w", doing, err)
	case status < http.StatusMultipleChoices: // none, or one that could not be read
		return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, err)
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("%s: %w: it answered %d: %s", doing, ErrUnavailable, status, words(err))
	case status == http.StatusNotFound || status == http.StatusGone:
		return fmt.Errorf("%s: %w (or the token may not see it)", doing, ErrNotFound)
	}
	return fmt.Errorf("%s: %w", doing, &Refused{Status: status, Words: words(err), Remedy: remedies[status]})
}

// remedies by status.
var remedies = map[int]string{
	http.StatusUnauthorized: "renew the token in --forge-token-file",
	http.StatusForbidden:    "give the token's user the right to comment, set statuses and write pull requests, or let it past the branch's protection",
}

// words are an error's text on one line of bounded length.
func words(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	const most = 300
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Cut shortens a text to a number of characters.
func Cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// WrapMerge is Wrap for a merge: the statuses in which the three forges say
// that it may not be made now, or that the head is another one.
func WrapMerge(doing string, status int, err error) error {
	switch status {
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnprocessableEntity:
		return fmt.Errorf("%s: %w: %w", doing, ErrNotReady, &Refused{Status: status, Words: words(err), Remedy: "required checks and approvals must be there, and the token's user must be allowed to merge into the protected branch"})
	case http.StatusConflict:
		return fmt.Errorf("%s: %w: %w", doing, ErrMoved, &Refused{Status: status, Words: words(err)})
	}
	return Wrap(doing, status, err)
}
