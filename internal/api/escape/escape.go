package escape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// joiner is U+200D, which has no width. Between a character that a forge acts
// on and what follows, it takes the meaning away and leaves the look.
const joiner = "\u200d"

// Line is text on one line as a terminal or a log can show it. Line breaks and
// tabs become spaces; every other rune that is not printable (control
// characters, bidirectional and zero-width formatting, line separators) is
// shown as its escape, for example \u202e, and a byte that is not UTF-8 as \xff.
func Line(s string) string { return visible(s, false) }

// maxReason bounds what Reason gives, in bytes.
const maxReason = 1000

// Reason is a message of a mistake as Line gives it, and no longer than a screen
// of text: what was found wrong may stand in it, and is as long as its author
// wanted. Idempotent.
func Reason(s string) string {
	const more = "… (cut)"
	if s = Line(s); len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(strings.TrimSuffix(s[:maxReason-len(more)], more), "") + more
}

// Words is what a cluster, or another program, says of itself, as it may be carried on: valid
// UTF-8, and cut as by Reason where it is longer than that. Idempotent.
func Words(s string) string {
	if len(s) > maxReason {
		return Reason(s)
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// Lines is Line for text of several lines: its line breaks stay.
func Lines(s string) string { return visible(s, true) }

func visible(s string, breaks bool) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' && breaks:
			b.WriteByte('\n')
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// WriteJSON writes a value as indented JSON that a terminal can show. Its errors
// are those of encoding and of w.
func WriteJSON(w io.Writer, v any) error {
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(JSON(doc.Bytes()))
	return err
}

// JSON is a JSON document with every rune that is not printable as its escape:
// it decodes to the same values, and a terminal shows it without obeying it.
func JSON(doc []byte) []byte {
	hidden := func(r rune) bool { return r > 0x7e && r != utf8.RuneError && !unicode.IsPrint(r) }
	if bytes.IndexFunc(doc, hidden) < 0 {
		return doc
	}
	out := make([]byte, 0, len(doc))
	for len(doc) > 0 {
		r, n := utf8.DecodeRune(doc)
		switch {
		case !hidden(r):
			out = append(out, doc[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		doc = doc[n:]
	}
	return out
}

// punctuation is what begins markup in CommonMark and in the dialects of GitHub,
// GitLab and Gitea. The backslash is first, so that no escape is escaped.
var punctuation = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "^", `\^`, "$", `\$`,
	"<", "&lt;", "&", "&amp;",
)

// Markdown is text on one line that a forge shows as it is, in a paragraph or a
// table's cell, also at the beginning of a line: no markup or HTML, no link,
// and nobody is mentioned, nothing referred to and no quick action run.
//
// Entities and backslashes do not stop what a forge looks for in the rendered
// text (mentions, references, addresses), so a joiner is put there.
func Markdown(s string) string {
	s = strings.TrimSpace(Line(s))
	var b strings.Builder
	var before rune // zero at the beginning
	for i, r := range s {
		next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
		begins := before == 0 || before == ' '
		switch {
		case begins && (r == '/' || r == '!' || r == '%'), // a quick action, GitLab's references
			r == '/' && before == '/',                   // an address
			r == '.' && isWWW(s[:i]),                    // an address without scheme
			r == ':' && strings.HasPrefix(s[i:], "://"): // an address
			b.WriteString(joiner + punctuation.Replace(string(r)))
		case (r == '.' || r == ')') && i > 0 && strings.Trim(s[:i], "0123456789") == "" && ends(next): // a list
			b.WriteString(`\` + string(r))
		case r == '[' && next == '[', // a page of a wiki
			(r == '@' || r == '#' || r == '!' || r == '%' || r == '~' || r == '$' || r == '&') && isWord(next),
			r == ':' && (unicode.IsLetter(next) || next == '+' || next == '-'): // an emoji
			b.WriteString(punctuation.Replace(string(r)) + joiner)
		case before == 0 && (r == '#' || r == '>' || strings.ContainsRune("+-=", r) && (ends(next) || next == r)): // a block
			b.WriteString(`\` + string(r))
		default:
			b.WriteString(punctuation.Replace(string(r)))
		}
		before = r
	}
	return b.String()
}

// ends reports whether what follows a character is a space or the end.
func ends(next rune) bool { return next == utf8.RuneError || next == ' ' }

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '"')
}

func isWWW(before string) bool {
	return len(before) >= 3 && strings.EqualFold(before[len(before)-3:], "www")
}

// Code is text for the inside of a markdown code span of one backtick, in a
// table's cell too. A backtick becomes an apostrophe.
func Code(s string) string {
	return strings.NewReplacer("`", "'", "|", `\|`).Replace(Line(s))
}

// chat is what chats act on: Slack's markup, and the links and mentions of those
// that read Markdown.
var chat = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'",
	"@", "@"+joiner, "://", ":"+joiner+"//", "](", "]"+joiner+"(", "][", "]"+joiner+"[", "]:", "]"+joiner+":")

var address = regexp.MustCompile(`(?i)\b(www)\.|\b(mailto):`)

// Chat is text on one line that Slack, Mattermost and Rocket.Chat show: nobody is
// mentioned, nothing is a link.
func Chat(s string) string {
	return address.ReplaceAllStringFunc(chat.Replace(Line(s)), func(m string) string { return m[:len(m)-1] + joiner + m[len(m)-1:] })
}

// Cell is text as a CSV cell that no spreadsheet takes for a formula: one that
// begins like a formula gets an apostrophe before it, as OWASP advises ("CSV
// Injection"); so does what begins like one behind a separator of other places, where a
// spreadsheet would split the cell. Spaces before it are skipped by some, and wide
// signs are signs where people write them. Numbers stay numbers. Quoting is encoding/csv's.
func Cell(s string) string {
	s = Line(s)
	if isNumber(s) {
		return s
	}
	return formula.ReplaceAllString(s, "$1'$2")
}

// formula begins a cell, also behind the separators of spreadsheets whose comma is decimal.
var formula = regexp.MustCompile(`(^ *|[;|] *)([=+\-@＝＋－＠])`)

func isNumber(s string) bool {
	digits := strings.TrimLeft(s, "+-")
	return digits != "" && len(s)-len(digits) <= 1 && strings.Trim(digits, "0123456789.") == "" && strings.Count(digits, ".") <= 1
}
