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
// git's own tools the last. To those it is one without a space behind the colon too, or with
// some before it, and a line that begins with a space goes on with the value before.
func Repeated(message string) string {
	seen := make([]bool, len(once))
	goesOn := false
	for line := range trailerLines(message) {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			goesOn = true
			continue
		}
		key, _, named := strings.Cut(line, ":")
		key = strings.TrimRight(key, " \t")
		i := slices.IndexFunc(once, func(o string) bool { return named && strings.EqualFold(o, key) })
		if i >= 0 && (seen[i] || goesOn) {
			return once[i]
		}
		if goesOn = false; i >= 0 {
			seen[i] = true
		}
	}
	return ""
}
