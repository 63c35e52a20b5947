package within

import (
	"strings"
	"unicode"
)

// maxReason is what a market takes of a refusal's reason, in bytes.
const maxReason = 512

// Reason is a text as a report may carry it: one line of printable
// characters, not too long.
func Reason(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }), " ")
	for len(s) > maxReason {
		at := strings.LastIndexByte(s[:maxReason-3], ' ')
		if at < 0 {
			at = maxReason - 3
		}
		s = strings.ToValidUTF8(s[:at], "") + "..."
	}
	return s
}

// maxNote is how long the words of an Event may be (events/v1: 1 kB). An API server refuses
// longer ones, and the Event is lost.
const maxNote = 1024

// Note is a text that fits an Event.
func Note(text string) string {
	if len(text) < maxNote {
		return text
	}
	return strings.ToValidUTF8(text[:maxNote-5], "") + "..."
}
