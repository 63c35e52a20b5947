package logs

import (
	_ "embed" // the codes
	"strings"
	"sync"
)

//go:embed events.txt
var eventsText string

// Event is a message that the daemon or an agent writes.
type Event struct {
	// Code is its own for good, such as FB0107.
	Code string
	// Message is fixed; what differs is in the keys.
	Message string
}

// Events are all of them, by code.
var Events = sync.OnceValue(func() []Event {
	var out []Event
	for line := range strings.Lines(eventsText) {
		if code, message, ok := strings.Cut(strings.TrimRight(line, "\n"), " "); ok {
			out = append(out, Event{code, message})
		}
	}
	return out
})

var codes = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for _, e := range Events() {
		out[e.Message] = e.Code
	}
	return out
})

//go:embed runbook.txt
var runbookText string

// Runbook are the entries of the runbook, as anchors, that say what to do about an event, by
// its code; most events ask for nothing.
var Runbook = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(runbookText) {
		if words := strings.Fields(line); len(words) > 1 {
			out[words[0]] = words[1:]
		}
	}
	return out
})

// CodeOf is a message's code, "" for those of libraries.
func CodeOf(message string) string { return codes()[message] }
