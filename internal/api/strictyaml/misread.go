package strictyaml

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// misread is a mistake that the parser reports in its own terms, often at another line: the
// place of the mistake, and what to write. Lines count from 1; ok is false where the parser's
// words are the best there are.
func misread(text []byte, said string, line int) (p Problem, ok bool) {
	switch {
	case strings.HasPrefix(said, "did not find expected key"), strings.HasPrefix(said, "did not find expected '-' indicator"):
		return misindented(text)
	case strings.HasPrefix(said, "mapping values are not allowed"):
		return secondColon(text, line)
	case strings.HasPrefix(said, "found character that cannot start any token"):
		return noValue(row(text, line), line)
	case strings.HasPrefix(said, "unknown anchor "):
		return noAnchor(text, said)
	case strings.HasPrefix(said, "found unknown escape character"):
		return Problem{line, 1, `a \ in double quotes begins an escape that YAML does not know: write \\, or put the value in single quotes`}, true
	}
	return Problem{}, false
}

// lookAt is what to do about what the parser says, where no more is known.
func lookAt(said string) string {
	switch {
	case strings.HasPrefix(said, "control characters"):
		return `remove them, or write them in double quotes as \xNN`
	case strings.HasPrefix(said, "exceeded max depth"):
		return "no document needs that"
	case strings.HasPrefix(said, "found invalid Unicode"):
		return "write the character itself"
	}
	return "see its indentation, colons and quotes"
}

// row is a line of a text, from 1, "" where there is none.
func row(text []byte, line int) string {
	n := 0
	for l := range bytes.Lines(text) {
		if n++; n == line {
			return strings.TrimRight(string(l), "\r\n")
		}
	}
	return ""
}

func indent(row string) int { return len(row) - len(strings.TrimLeft(row, " ")) }

var (
	// entry is the key of a map's entry, and what follows its colon.
	entry = regexp.MustCompile(`^ *((?:- +)*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'#\[{][^#]*?)\s*:(?:\s+(.*))?$`)
	// items are the dashes before an item of a list.
	items = regexp.MustCompile(`^ *(?:- +)+`)
	// ended is a value that no further line can belong to: one in quotes.
	ended = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?:#.*)?$`)
	// remark is a comment behind a value.
	remark = regexp.MustCompile(`(?:^|\s+)#.*$`)
)

// misindented is the first line that is indented as no line of the block is that it may belong
// to. The parser names the line at which the block begins.
func misindented(text []byte) (Problem, bool) {
	var s brackets
	levels := []int{}
	deeper := -1   // indentation of what a block scalar belongs to
	whole := false // the line above has its value in quotes
	n := 0
	for l := range bytes.Lines(text) {
		n++
		l = bytes.TrimRight(l, "\r\n")
		r := string(l)
		in := indent(r)
		if in == len(r) || r[in] == '#' || deeper >= 0 && in > deeper {
			continue
		}
		deeper = -1
		inside := len(s.open) > 0 || s.quote != 0
		s.read(n, l)
		if inside {
			whole = false
			continue
		}
		shut := 0
		for len(levels) > 0 && levels[len(levels)-1] > in {
			shut = levels[len(levels)-1]
			levels = levels[:len(levels)-1]
		}
		top := -1
		if len(levels) > 0 {
			top = levels[len(levels)-1]
		}
		switch {
		case top == in:
		case shut > 0 && top >= 0:
			return Problem{n, in + 1, fmt.Sprintf("the line is indented by %s, as none above it that it can belong to: write %d or %d", spaces(in), top, shut)}, true
		case whole && top >= 0:
			return Problem{n, in + 1, fmt.Sprintf("the line is indented deeper than the one above it, which has its value already: indent it by %s", spaces(top))}, true
		default:
			levels = append(levels, in)
		}
		m := entry.FindStringSubmatch(r)
		whole = m != nil && ended.MatchString(m[3])
		if dashes := items.FindString(r); dashes != "" && m != nil {
			levels = append(levels, len(dashes))
		}
		if len(s.open) == 0 && s.quote == 0 && blockScalar.Match(l) {
			deeper = in
		}
	}
	return Problem{}, false
}

func spaces(n int) string {
	if n == 1 {
		return "1 space"
	}
	return fmt.Sprintf("%d spaces", n)
}

// secondColon is why a line, from 1, has a colon where none may be: another in its value, or the
// line above has none, or has its value already.
func secondColon(text []byte, line int) (Problem, bool) {
	here := row(text, line)
	m := entry.FindStringSubmatch(here)
	if m == nil {
		return Problem{}, false
	}
	if v := remark.ReplaceAllString(m[3], ""); strings.Contains(v, ": ") || strings.HasSuffix(v, ":") {
		return Problem{line, indent(here) + 1, fmt.Sprintf("the value of %s has a colon: write it in quotes, %s: %q", clip(m[2]), clip(m[2]), clip(v))}, true
	}
	above, n := lastBefore(text, line)
	if n == 0 {
		return Problem{}, false
	}
	bare := strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(above, " "), "- "), " ")
	if m := entry.FindStringSubmatch(above); m != nil {
		if m[3] == "" || indent(here) <= indent(above) {
			return Problem{}, false
		}
		return Problem{line, indent(here) + 1, fmt.Sprintf("the line is indented deeper than the one above it, which has its value already: indent it by %s", spaces(indent(above)+len(m[1])))}, true
	}
	if k, v, ok := strings.Cut(bare, ":"); ok && k != "" && !strings.ContainsAny(bare, " \"'[{") {
		return Problem{n, len(above) - len(v), fmt.Sprintf("a space is missing after the colon: write %s: %s", clip(k), clip(v))}, true
	}
	if k, v, ok := strings.Cut(bare, " "); ok && !strings.ContainsAny(bare, "\"'[{:") {
		return Problem{n, indent(above) + 1, fmt.Sprintf("a colon is missing: write %s: %s", clip(k), clip(strings.TrimLeft(v, " ")))}, true
	}
	if !strings.ContainsAny(bare, " \"'[{:") {
		return Problem{n, indent(above) + 1, fmt.Sprintf("a colon is missing: write %s:", clip(bare))}, true
	}
	return Problem{}, false
}

// lastBefore is the last line before one, from 1, that is more than a comment, without its own.
func lastBefore(text []byte, line int) (above string, n int) {
	at := 0
	for l := range bytes.Lines(text) {
		if at++; at == line {
			break
		}
		if t := bytes.TrimLeft(l, " \t\r\n"); len(t) > 0 && t[0] != '#' {
			above, n = string(l), at
		}
	}
	return strings.TrimRight(remark.ReplaceAllString(strings.TrimRight(above, "\r\n"), ""), " "), n
}

// noValue is a line with a character that no value may begin with.
func noValue(here string, line int) (Problem, bool) {
	if strings.HasPrefix(strings.TrimLeft(here, " "), "```") {
		return Problem{line, 1, "the line ``` belongs to a text around the YAML: remove it"}, true
	}
	m := entry.FindStringSubmatch(here)
	if m == nil || m[3] == "" || !strings.ContainsRune("@`%", rune(m[3][0])) {
		return Problem{}, false
	}
	v := strings.Trim(remark.ReplaceAllString(m[3], ""), "`")
	return Problem{line, strings.LastIndex(here, m[3]) + 1, fmt.Sprintf("a value cannot begin with %c in YAML: write it in quotes, %s: %q", m[3][0], clip(m[2]), clip(v))}, true
}

var anchored = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)

// noAnchor is the first alias of an anchor that the document has not.
func noAnchor(text []byte, said string) (Problem, bool) {
	m := anchored.FindStringSubmatch(said)
	if m == nil {
		return Problem{}, false
	}
	n := 0
	for l := range bytes.Lines(text) {
		n++
		if at := bytes.Index(l, []byte("*"+m[1])); at >= 0 {
			return Problem{n, at + 1, fmt.Sprintf("*%s refers to an anchor that is not above it: write the value itself, or in quotes, %q, if it begins with *", clip(m[1]), clip("*"+m[1]))}, true
		}
	}
	return Problem{}, false
}
