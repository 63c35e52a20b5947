package gpuforms

import (
	"regexp"
	"slices"
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
	memory     = regexp.MustCompile(`(?i)^(\d+(\.\d+)?(GB|GiB|Gi|G|MB|MiB|Mi)?)?(\.\.)?(\d+(\.\d+)?(GB|GiB|Gi|G|MB|MiB|Mi)?)?$`)
	withUnit   = regexp.MustCompile(`(?i)\d(GB|GiB|Gi|G|MB|MiB|Mi)(\.\.|$)`)
	models     = regexp.MustCompile(`(?i)^[a-z][a-z0-9._-]*(,[a-z][a-z0-9._-]*)*$`)

	// Words of a form with spaces in it: memory with its unit, the unit alone, a count with
	// and without its x, the x alone, and how many cards a node may have.
	size    = regexp.MustCompile(`(?i)^\d+g(i|b|ib)?$`)
	unit    = regexp.MustCompile(`(?i)^g(i|b|ib)?$`)
	counted = regexp.MustCompile(`(?i)^([x×]\d{1,9}|\d{1,9}[x×])$`)
	number  = regexp.MustCompile(`^\d{1,9}$`)
	times   = regexp.MustCompile(`(?i)^[x×]$`)
	few     = regexp.MustCompile(`^([1-9]|1[0-6])$`)
	word    = regexp.MustCompile(`(?i)^[a-z0-9._-]+$`)
	share   = regexp.MustCompile(`^0\.\d*[1-9]\d*$`)
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

// Joined is what to write for a short form with spaces in it: H100-SXM for "H100 SXM",
// a100:80gb for "a100 80gb", H100:80GB:8 for "H100 80GB x8", and a product's whole name
// joined, with its count; "" for what is none.
func Joined(form string) string {
	var parts []string
	counts := 0
	for part := range strings.SplitSeq(form, ":") {
		words := strings.Fields(part)
		switch {
		case len(words) == 0:
			return ""
		case len(words) == 1:
			words = Counted(words[0])
		default:
			if words = joined(words); words == nil {
				return ""
			}
		}
		for _, w := range words {
			if number.MatchString(w) {
				counts++
			}
		}
		parts = append(parts, words...)
	}
	if counts > 1 {
		return ""
	}
	return strings.Join(parts, ":")
}

// joined are the words of one part of a short form as a model, its memory and its count;
// nil for what is none.
func joined(words []string) []string {
	model, memory, count := "", "", ""
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch next := append(words, "")[i+1]; {
		case times.MatchString(w) && (i == 0 || next == ""):
			return nil
		case times.MatchString(w):
		case counted.MatchString(w) || number.MatchString(w) && (model == "" || few.MatchString(w) || times.MatchString(words[i-1])) && !unit.MatchString(next):
			if count != "" {
				return nil
			}
			count = strings.Trim(strings.ToLower(w), "x×")
		case number.MatchString(w) && unit.MatchString(next):
			words[i+1] = w + next
		case !word.MatchString(w):
			return nil
		case size.MatchString(w) && model != "":
			if memory != "" {
				model += "-" + memory
			}
			memory = w
		default: // what follows the memory is of the product's name, as that is
			if memory != "" {
				model, memory = model+"-"+memory, ""
			}
			model = strings.TrimPrefix(model+"-"+w, "-")
		}
	}
	if model == "" {
		return nil
	}
	return slices.DeleteFunc([]string{model, memory, count}, func(s string) bool { return s == "" })
}

// IsVendor reports whether a token in lower case is a vendor.
func IsVendor(tok string) bool { return tok == "nvidia" || tok == "amd" || tok == "intel" }

// IsMemory reports whether a token is memory a GPU with its unit, or a range of it: 80GB,
// 40GB.., 24Gi..80Gi.
func IsMemory(tok string) bool { return memory.MatchString(tok) && withUnit.MatchString(tok) }

// IsModels reports whether a token is a model, or several with commas between.
func IsModels(tok string) bool { return models.MatchString(tok) }

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
