package wire

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// maxObserved is how many bytes all texts of a report may have together: a broker takes 8 MiB
// of one, whose other parts are as many as the contracts.
const maxObserved = 3 << 20

// fits are how long texts and lists may be, one after the other, until all texts fit. A text
// that was there is there.
var fits = []struct{ text, list int }{{maxWords, maxTexts}, {512, 20}, {128, 4}, {16, 1}}

// Fit cuts a report's own words to what Check lets pass and a broker takes: pods that a
// tenant left on a Node have names, and so has what an administrator made.
func (o *Observed) Fit() {
	given := *o
	for i, most := range fits {
		if o.cut(&given, most.text, most.list, i == len(fits)-1) {
			return
		}
	}
}

// cut is given with texts and lists of at most so many bytes and entries, unless the texts do
// not fit as they are written. The last cut is made in any case.
func (o *Observed) cut(given *Observed, text, list int, last bool) bool {
	size := 0
	one := func(s string) string {
		if s = fitting(s); len(s) > text {
			s = strings.ToValidUTF8(s[:text], "")
		}
		written, _ := json.Marshal(s) // a string always encodes
		size += len(written)
		return s
	}
	all := func(texts []string) (out []string) {
		for _, s := range texts[:min(len(texts), list)] {
			out = append(out, one(s))
		}
		return out
	}
	o.Problem = one(given.Problem)
	o.Troubles = all(given.Troubles)
	o.Contracts = make(map[string]v1alpha1.ConsumerObservation, len(given.Contracts))
	for name, c := range given.Contracts {
		for _, s := range []*string{&c.Message, &c.PeeringMessage, &c.ProviderMessage, &c.SliceDenied, &c.NodeMessage, &c.OffloadingMessage} {
			*s = one(*s)
		}
		c.OffloadingReason = fitting(c.OffloadingReason) // a code of ours
		c.Blockers = all(c.Blockers)
		o.Contracts[name] = c
		if size > maxObserved && !last {
			return false
		}
	}
	return true
}

func fitting(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "")
	}
	return text
}
