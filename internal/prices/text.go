package prices

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fleetbroker/fleetbroker/internal/forge/jsonbound"
)

// limits are how much of an answer is read: it is another's, and a decoder makes some 400 bytes
// of each {}. Objects and values of lists and objects are those of one entry, which is the
// whole answer where it is decoded as one.
type limits struct {
	bytes, entry    int64
	objects, values int
}

var (
	// pageLimits: Azure answers 1,000 items of one object at a time, Google up to 5,000 SKUs of some ten.
	pageLimits = limits{bytes: 64 << 20, entry: 64 << 20, objects: 200_000, values: 1_000_000}
	// offerLimits: AWS's offer file of one region has some 400 MiB, and is read SKU by SKU.
	offerLimits = limits{bytes: 1 << 30, entry: 64 << 20, objects: 200_000, values: 1_000_000}
	// tableLimits: a CSV has at most 200,000 rows (package market).
	tableLimits = limits{bytes: 32 << 20, entry: 32 << 20, objects: 6_000_000, values: 6_000_000}
	// configLimits: an API server takes a mebibyte of a ConfigMap.
	configLimits = limits{bytes: 1 << 20, entry: 1 << 20, objects: 1 << 20, values: 1 << 20}
)

var errTooMuch = errors.New("it has more objects and values than prices have: ask for fewer of them at a time, by a filter or page by page")

// text is an answer as it comes in, up to its limits. What is beyond is not handed on.
type text struct {
	limits
	from  io.Reader
	read  int64
	since int64 // bytes of the entry
	count jsonbound.Counter
	err   error // why it was not read to its end
}

func textOf(in io.Reader, l limits) *text { return &text{limits: l, from: in} }

// Read implements io.Reader. It hands on little at a time: what is read ahead counts for the
// entry before.
func (t *text) Read(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.from.Read(p[:min(len(p), 64<<10)])
	t.read, t.since = t.read+int64(n), t.since+int64(n)
	t.count.Count(p[:n])
	switch {
	case t.read > t.bytes:
		err = fmt.Errorf("it has more than %d MiB: ask for fewer prices at a time, by a filter or page by page", t.bytes>>20)
	case t.since > t.entry || t.count.Objects > t.objects || t.count.Values > t.values:
		err = errTooMuch
	}
	if err != nil && !errors.Is(err, io.EOF) {
		t.err = err
		return 0, err
	}
	return n, err
}

// next begins another entry.
func (t *text) next() { t.since, t.count.Objects, t.count.Values = 0, 0, 0 }

// decode reads an answer of JSON as one, with its numbers as they are written.
func (t *text) decode(into any) error {
	d := json.NewDecoder(t)
	d.UseNumber()
	return t.why(d.Decode(into))
}

// why is why an answer cannot be read: it did not come, it is too much, or it is not JSON.
func (t *text) why(err error) error {
	switch {
	case err == nil:
		return nil
	case t.err != nil:
		return t.err
	case errors.Is(err, errTooMuch):
		return errTooMuch
	}
	return fmt.Errorf("it is not the JSON that was expected: %w", err)
}

// entries reads an answer of JSON entry by entry, so that it takes the memory of one.
type entries struct {
	text *text
	json *json.Decoder
}

func entriesOf(in io.Reader, l limits) *entries {
	t := textOf(in, l)
	return &entries{t, json.NewDecoder(t)}
}

// object reads the entries of an object; null has none.
func (e *entries) object(entry func(key string) error) error {
	return e.each(json.Delim('{'), func(int) error {
		key, err := e.json.Token()
		if err != nil {
			return e.text.why(err)
		}
		return entry(fmt.Sprint(key))
	})
}

// list reads the entries of a list; null has none.
func (e *entries) list(entry func(i int) error) error { return e.each(json.Delim('['), entry) }

func (e *entries) each(begins json.Delim, entry func(i int) error) error {
	switch first, err := e.json.Token(); {
	case err != nil:
		return e.text.why(err)
	case first == nil:
		return nil
	case first != begins:
		return e.text.why(fmt.Errorf("a value that begins with %s is needed at byte %d", begins, e.json.InputOffset()))
	}
	for i := 0; e.json.More(); i++ {
		e.text.next()
		if err := entry(i); err != nil {
			return err
		}
	}
	_, err := e.json.Token()
	return e.text.why(err)
}

// decode reads the next value.
func (e *entries) decode(into any) error { return e.text.why(e.json.Decode(into)) }

// skip passes over the next value.
func (e *entries) skip() error { return e.decode(&ignored{}) }

// ignored takes any value, and keeps nothing of it.
type ignored struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*ignored) UnmarshalJSON([]byte) error { return nil }
