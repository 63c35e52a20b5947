package audit

import (
	"bytes"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// spendFiles reads spend files version after version. A month's file grows by a
// few entries with each retirement, and reading it whole each time would cost
// the square of what has ended: entries whose text was read before are taken
// from there. The answer is ledger.Decode's.
type spendFiles map[string]map[string]v1alpha1.SpendEntry // by path and text

// entriesLine begins the entries of a spend file as the ledger writes it.
const entriesLine = "\nentries:\n"

func (s spendFiles) decode(path string, content []byte) (*v1alpha1.Spend, error) {
	out := &v1alpha1.Spend{}
	from := bytes.Index(content, []byte(entriesLine))
	if from < 0 || bytes.ContainsAny(content, "&*") { // entries might refer to each other
		return out, ledger.Decode(content, out)
	}
	from += len(entriesLine)
	head, texts, tail := string(content[:from]), entriesIn(string(content[from:])), ""
	if n := len(texts); n > 0 && !strings.HasPrefix(texts[n-1], "- ") {
		texts, tail = texts[:n-1], texts[n-1]
	}
	known := s[path]
	var fresh strings.Builder
	fresh.WriteString(head)
	var missing []int
	for i, text := range texts {
		if _, ok := known[text]; !ok {
			missing = append(missing, i)
			fresh.WriteString(text)
		}
	}
	fresh.WriteString(tail)
	if err := ledger.Decode([]byte(fresh.String()), out); err != nil || len(out.Entries) != len(missing) {
		*out = v1alpha1.Spend{}
		return out, ledger.Decode(content, out)
	}
	if known == nil {
		known = map[string]v1alpha1.SpendEntry{}
		s[path] = known
	}
	for i, at := range missing {
		known[texts[at]] = out.Entries[i]
	}
	out.Entries = make([]v1alpha1.SpendEntry, len(texts))
	for i, text := range texts {
		out.Entries[i] = known[text]
	}
	return out, nil
}

// entriesIn splits what follows entriesLine into the entries, and, last, what
// follows them.
func entriesIn(text string) []string {
	var out []string
	start := 0
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			break
		}
		at += end + 1
		rest := text[at:]
		switch {
		case strings.HasPrefix(rest, " "):
		case strings.HasPrefix(rest, "- "):
			out = append(out, text[start:at])
			start = at
		default:
			return append(out, text[start:at], rest)
		}
	}
	return append(out, text[start:])
}
