package gpuforms

import (
	"regexp"
	"strings"
)

// How people write a count at a model: 8xH100, 8 x H100, H100 x8, H100x8. A digit
// stands before the x of the last (an RTX5090 is a model).
var (
	timesModel  = regexp.MustCompile(`(?i)^(\d{1,9})\s*[x×]\s*([a-z][a-z0-9._,-]*)$`)
	modelTimes  = regexp.MustCompile(`(?i)^([a-z][a-z0-9._,-]*)\s+[x×]\s*(\d{1,9})$`)
	modelTimes2 = regexp.MustCompile(`(?i)^([a-z][a-z0-9._,-]*[0-9][a-z]{0,3})[x×](\d{1,9})$`)
)

var (
	countRange = regexp.MustCompile(`^\d{1,9}\.\.\d{0,9}$`)
	profile    = regexp.MustCompile(`^\d+c\.\d+g\.\d+gb([+.]me)?$|^\d+g\.\d+gb([+.](me|gfx|me\.all))?$`)
	// size is memory with its unit, or a count of cards that a node may have.
	size  = regexp.MustCompile(`(?i)^(\d+g(i|b|ib)?|[1-9]|1[0-6])$`)
	word  = regexp.MustCompile(`(?i)^[a-z0-9._-]+$`)
	share = regexp.MustCompile(`^0\.\d*[1-9]\d*$`)
)

// Counted takes a model with a count apart: "8xH100" is "H100" and "8". Anything else is
// returned as it is.
func Counted(tok string) []string {
	if m := timesModel.FindStringSubmatch(tok); m != nil {
		return []string{m[2], m[1]}
	}
	for _, form := range [...]*regexp.Regexp{modelTimes, modelTimes2} {
		if m := form.FindStringSubmatch(tok); m != nil {
			return m[1:]
		}
	}
	return []string{tok}
}

// Joined is what to write for a model with spaces in it: H100-SXM for "H100 SXM",
// a100:80gb for "a100 80gb", H100:8 for "H100 8"; "" for what is none.
func Joined(tok string) string {
	words := strings.Fields(tok)
	if len(words) < 2 || !word.MatchString(words[0]) {
		return ""
	}
	out := words[0]
	for _, w := range words[1:] {
		switch {
		case size.MatchString(w):
			out += ":" + w
		case word.MatchString(w):
			out += "-" + w
		default:
			return ""
		}
	}
	return out
}

// IsRange reports whether a token is a count that may vary, such as 4..8, which nothing means.
func IsRange(tok string) bool { return countRange.MatchString(tok) }

// IsProfile reports whether a token in lower case is a MIG profile, such as 1g.10gb,
// 1g.10gb+me, or 1g.10gb.me as it stands in the name of a resource.
func IsProfile(tok string) bool { return profile.MatchString(tok) }

// Profile is the name of a MIG profile in one form, that of resources: 1g.10gb.me for
// 1g.10gb+me, in lower case.
func Profile(name string) string { return strings.ReplaceAll(strings.ToLower(name), "+", ".") }

// IsShare reports whether a token is a part of one card, such as 0.25.
func IsShare(tok string) bool { return share.MatchString(tok) }
