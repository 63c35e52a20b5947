// Package jsonbound bounds what a JSON text of others decodes to, before anybody decodes it:
// a decoder makes half a kilobyte, or a struct of one, of each {}, so that 32 MiB of them take
// gigabytes.
//
// Invariant: what a Reader hands on never has more objects and values than is allowed, whatever
// the text is; where it would, reading ends with the error that the caller chose. A text that
// is no JSON is counted likewise, and otherwise left as it is.
//
// Callers: clients of servers that an operator or a tenant names (packages forge,
// delivery/bulk and prices). A Reader, or a Counter, is used by one goroutine at a time.
package jsonbound

import "io"

// Counter counts what a text has, in as many pieces as it comes in. The zero value is ready.
type Counter struct {
	// Objects and Values of lists and objects so far, and Bytes; of the one that has begun
	// where Frames.
	Objects, Values, Bytes int
	// Frames: the text is a stream of objects, each counted by itself.
	Frames bool

	depth           int
	quoted, escaped bool
}

// Count counts the next piece.
func (c *Counter) Count(p []byte) {
	for _, b := range p {
		c.Bytes++
		switch {
		case c.escaped:
			c.escaped = false
		case c.quoted:
			c.escaped, c.quoted = b == '\\', b != '"'
		default:
			c.mark(b)
		}
	}
}

// mark counts a byte that is in no string.
func (c *Counter) mark(b byte) {
	switch b {
	case '"':
		c.quoted = true
	case '{':
		c.depth, c.Objects = c.depth+1, c.Objects+1
	case '[':
		c.depth, c.Values = c.depth+1, c.Values+1
	case ',':
		c.Values++
	case '}', ']':
		if c.depth--; c.depth <= 0 && c.Frames {
			c.depth, c.Objects, c.Values, c.Bytes = 0, 0, 0, 0
		}
	}
}

// Reader hands on a text and counts.
type Reader struct {
	from            io.Reader
	count           Counter
	objects, values int
	over            error
}

// New reads from a text that may have so many objects, and so many values in lists and objects
// together; over is the error where it has more.
func New(from io.Reader, objects, values int, over error) *Reader {
	return &Reader{from: from, objects: objects, values: values, over: over}
}

// Read implements io.Reader. Nothing of what is read where there is too much is handed on.
func (r *Reader) Read(p []byte) (int, error) {
	n := 0
	var err error
	if r.fits() {
		n, err = r.from.Read(p)
		r.count.Count(p[:n])
	}
	if !r.fits() {
		return 0, r.over
	}
	return n, err
}

func (r *Reader) fits() bool { return r.count.Objects <= r.objects && r.count.Values <= r.values }
