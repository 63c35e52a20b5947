package gitobj

import (
	"slices"
	"strings"
)

// once are the trailers that a commit of the ledger says once at the most. The others
// (Contract, Set-Aside, Dropped, Source, Requested-By and Released-By) may be many.
var once = []string{
	"Decisions", "Fleet", "Format", "Inputs", "Ledger", "Market", "Now", "Part", "Plan", "Renderer",
	"Replica", "Root", "Round", "Rules", "Trace", "Verified", "Version",
}

// Repeated is a trailer that a message says twice though the ledger's commits say it once,
// "" for none. Which of its values counts depends on who reads it: one takes the first,
// git's own tools the last.
func Repeated(message string) string {
	seen := make([]bool, len(once))
	for key := range trailers(message) {
		i := slices.IndexFunc(once, func(o string) bool { return strings.EqualFold(o, key) })
		if i < 0 {
			continue
		}
		if seen[i] {
			return once[i]
		}
		seen[i] = true
	}
	return ""
}
