package gitobj

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Person is an author or committer at a time.
type Person struct {
	Name  string
	Email string
	When  time.Time
}

// String is the form git writes, without the time: `Name <email>`.
func (p Person) String() string { return p.Name + " <" + p.Email + ">" }

// CommitData is what a commit object says.
type CommitData struct {
	Tree      tree.Hash
	Parents   []tree.Hash
	Author    Person
	Committer Person
	Message   string
	// Signature is the armored SSH or OpenPGP signature; empty for none.
	Signature string
	// Ambiguous tells that the header repeats a field that must stand once, has
	// one that cannot be read, or carries several signatures, or that there is a NUL, at
	// which git ends a text. Programs disagree on what such a commit says
	// (CVE-2026-45022 is one case), so its signature proves nothing.
	Ambiguous bool
}

const signatureHeader = "gpgsig"

// Payload is what a signature covers: the commit without its signature.
func (c CommitData) Payload() []byte {
	c.Signature = ""
	return c.Encode()
}

// Encode is the object's body.
func (c CommitData) Encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	writePerson(&b, "author", c.Author)
	writePerson(&b, "committer", c.Committer)
	if c.Signature != "" {
		lines := strings.Split(strings.TrimRight(c.Signature, "\n"), "\n")
		fmt.Fprintf(&b, "%s %s\n", signatureHeader, strings.Join(lines, "\n "))
	}
	b.WriteByte('\n')
	b.WriteString(c.Message)
	return b.Bytes()
}

func writePerson(b *bytes.Buffer, field string, p Person) {
	fmt.Fprintf(b, "%s %s <%s> %d %s\n", field, clean(p.Name), clean(p.Email), p.When.Unix(), p.When.Format("-0700"))
}

// clean takes out what would end the field early.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '<' || r == '>' || r == '\n' || r == 0 {
			return -1
		}
		return r
	}, s)
}

// ParseCommit reads a commit's body as git does: the tree, the parents right
// behind it, and then what can be read of the rest. A parent line further down
// is none, or a commit would have a history that no server has checked. An
// author or committer that cannot be read is nobody, at the beginning of Unix
// time; as with git, a walk over the history goes on.
func ParseCommit(raw []byte) (CommitData, error) {
	var c CommitData
	head, message, ok := bytes.Cut(raw, []byte("\n\n"))
	if !ok {
		head = bytes.TrimSuffix(raw, []byte("\n"))
	}
	c.Message = string(message)
	lines := strings.Split(string(head), "\n")
	hash, ok := strings.CutPrefix(lines[0], "tree ")
	if !ok || len(raw) <= len(lines[0]) {
		return CommitData{}, errors.New("parse commit: it does not begin with a line that names a tree")
	}
	var err error
	if c.Tree, err = tree.ParseHash(hash); err != nil {
		return CommitData{}, fmt.Errorf("parse commit: tree: %w", err)
	}
	for lines = lines[1:]; len(lines) > 0 && strings.HasPrefix(lines[0], "parent "); lines = lines[1:] {
		p, err := tree.ParseHash(lines[0][len("parent "):])
		if err != nil {
			return CommitData{}, fmt.Errorf("parse commit: parent: %w", err)
		}
		c.Parents = append(c.Parents, p)
	}
	c.fields(lines)
	c.Ambiguous = c.Ambiguous || bytes.IndexByte(raw, 0) >= 0
	return c, nil
}

// fields reads what follows the parents. Of a field that stands twice the first
// counts, as for git.
func (c *CommitData) fields(lines []string) {
	var authors, committers, signatures int
	for i := 0; i < len(lines); i++ {
		field, value, _ := strings.Cut(lines[i], " ")
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ") {
			var whole strings.Builder
			whole.WriteString(value)
			for ; i+1 < len(lines) && strings.HasPrefix(lines[i+1], " "); i++ {
				whole.WriteByte('\n')
				whole.WriteString(lines[i+1][1:])
			}
			value = whole.String()
		}
		switch field {
		case "tree", "parent":
			c.Ambiguous = true
		case "author":
			authors++
			c.person(&c.Author, value, authors)
		case "committer":
			committers++
			c.person(&c.Committer, value, committers)
		case signatureHeader, "gpgsig-sha256":
			signatures++
			c.Ambiguous = c.Ambiguous || c.Signature != "" || field != signatureHeader
			c.Signature = value + "\n"
		default: // git leaves each that begins so out of what is signed
			c.Ambiguous = c.Ambiguous || strings.HasPrefix(field, signatureHeader)
		}
	}
	for _, p := range []*Person{&c.Author, &c.Committer} {
		if p.When.IsZero() {
			p.When = time.Unix(0, 0).UTC()
		}
	}
	c.Ambiguous = c.Ambiguous || authors != 1 || committers != 1 || signatures > 1
}

// person reads an author or committer that stands for the n-th time.
func (c *CommitData) person(to *Person, value string, n int) {
	if n > 1 {
		return // Ambiguous already
	}
	p, err := parsePerson(value)
	c.Ambiguous = c.Ambiguous || err != nil
	*to = p
}

// maxTime is in the last days of the year 9999, in seconds: RFC 3339 cannot write
// later ones.
const maxTime = 253402128000

// maxPerson bounds a name and an address, in bytes: whoever commits chooses them, and
// they are written into each contract.
const maxPerson = 256

// short is a name or address that is no longer than that.
func short(s string) string {
	if len(s) <= maxPerson {
		return s
	}
	cut := maxPerson - len("…")
	for cut > maxPerson-len("…")-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// plainPerson is an author or committer as each program reads it: `git fsck` refuses others.
var plainPerson = regexp.MustCompile(`^[^<>\n]*<[^<>\n]*> [0-9]+ [+-][0-9]{4}$`)

// parsePerson reads what it can of `Name <email> seconds zone`. The error says why it may be
// read otherwise.
func parsePerson(s string) (Person, error) {
	name, rest, ok1 := strings.Cut(s, "<")
	end := strings.LastIndexByte(rest, '>')
	if !ok1 || end < 0 {
		return Person{Name: short(strings.TrimSpace(name))}, fmt.Errorf("%q names nobody", short(s))
	}
	p := Person{Name: short(strings.TrimSpace(name)), Email: short(rest[:end])}
	fields := strings.Fields(rest[end+1:])
	if len(fields) == 0 {
		return p, fmt.Errorf("%q has no time", short(s))
	}
	sec, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || sec < 0 || sec > maxTime {
		return p, fmt.Errorf("%q is no time", fields[0])
	}
	p.When = time.Unix(sec, 0).UTC()
	if len(fields) > 1 && fields[1] != "+0000" {
		if zone, err := time.Parse("-0700", fields[1]); err == nil {
			p.When = p.When.In(zone.Location())
		}
	}
	if !plainPerson.MatchString(s) {
		return p, fmt.Errorf("%q has two readings", short(s))
	}
	return p, nil
}

// SignedPayload splits a commit's raw body into what its signature covers, by
// taking the signature's own lines out of the bytes as they are. A commit
// re-encoded from its parsed fields is not what was signed.
func SignedPayload(raw []byte) []byte {
	var out bytes.Buffer
	rest := raw
	skipping := false
	for len(rest) > 0 {
		i := bytes.IndexByte(rest, '\n')
		line := rest
		if i >= 0 {
			line = rest[:i+1]
		}
		if len(line) == 1 && line[0] == '\n' {
			out.Write(rest)
			break
		}
		rest = rest[len(line):]
		if skipping && line[0] == ' ' {
			continue
		}
		skipping = bytes.HasPrefix(line, []byte(signatureHeader+" "))
		if !skipping {
			out.Write(line)
		}
	}
	return out.Bytes()
}

// Subject is the first line of a message.
func Subject(message string) string {
	s, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	return s
}

// WithTrailers is a message, which ends with a line break, with more trailers: lines
// `Key: value`. They follow those that it has.
func WithTrailers(message string, lines []string) string {
	text := strings.Join(lines, "\n") + "\n"
	if paragraphs := strings.Split(strings.TrimRight(message, "\n"), "\n\n"); len(paragraphs) < 2 || !strings.Contains(paragraphs[len(paragraphs)-1], ": ") {
		text = "\n" + text
	}
	return message + text
}

// Trailers are the values of a trailer (`Key: value` lines of the last
// paragraph), in order. As for git, lines may end in CR LF, and a line of white space ends a
// paragraph.
func Trailers(message, key string) []string {
	var out []string
	for k, v := range trailers(message) {
		if strings.EqualFold(k, key) {
			out = append(out, v)
		}
	}
	slices.Reverse(out)
	return out
}

// trailers are all of a message, the last first.
func trailers(message string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range trailerLines(message) {
			if k, v, ok := strings.Cut(line, ": "); ok && !yield(k, v) {
				return
			}
		}
	}
}

// trailerLines are the lines of a message's last paragraph, the last first.
func trailerLines(message string) iter.Seq[string] {
	const space = " \t\r\n\v\f"
	message = strings.TrimRight(message, space)
	first := 0 // byte of the last paragraph
	for end := len(message); ; {
		start := strings.LastIndexByte(message[:end], '\n') + 1
		if strings.TrimRight(message[start:end], space) == "" {
			first = end + 1
			break
		}
		if start == 0 {
			return func(func(string) bool) {} // one paragraph: a subject
		}
		end = start - 1
	}
	return func(yield func(string) bool) {
		for end := len(message); end > first; {
			start := strings.LastIndexByte(message[:end], '\n') + 1
			if !yield(strings.TrimRight(message[start:end], space)) {
				return
			}
			end = start - 1
		}
	}
}
