package jsonbound

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

var errOver = errors.New("over")

// What is within bounds is handed on as it is, what is not ends with the error, however the
// text is cut; what stands in strings does not count.
func TestReader(t *testing.T) {
	for text, fits := range map[string]bool{
		``:                        true,
		`[{},{},{}]`:              true,
		`[{},{},{},{}]`:           false,
		`{"a":{"b":{"c":{}}}}`:    false,
		`[1,2,3,4]`:               true,
		`[1,2,3,4,5,6,7,8]`:       false,
		`[[[[[[[[`:                false,
		`["{{{{{,,,,,[[[[["]`:     true,
		`["\"{{{{{,,,,,[[[[["]`:   true,
		`["\\",{},{},{},{}]`:      false,
		`"\\\"{{{{{,,,,,"`:        true,
		`<html>,,,,,,,,,,</html>`: false,
	} {
		for name, from := range map[string]io.Reader{"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text))} {
			got, err := io.ReadAll(New(from, 3, 6, errOver))
			if fits != (err == nil) || fits && string(got) != text || !fits && !errors.Is(err, errOver) {
				t.Errorf("%s, %s: %q, %v", text, name, got, err)
			}
		}
	}
}

// Once over, it stays so.
func TestReader_StaysOver(t *testing.T) {
	r := New(strings.NewReader(`{}{}xyz`), 1, 1, errOver)
	for range 3 {
		if n, err := r.Read(make([]byte, 4)); n != 0 || !errors.Is(err, errOver) {
			t.Fatalf("%d, %v", n, err)
		}
	}
}

// Objects of a stream count each by itself.
func TestCounter_Frames(t *testing.T) {
	c := Counter{Frames: true}
	c.Count([]byte(strings.Repeat(`{"a":[{},{}]}`+"\n", 1000)))
	if c.Objects != 0 || c.Values != 0 || c.Bytes != 1 {
		t.Errorf("%d objects, %d values, %d bytes", c.Objects, c.Values, c.Bytes)
	}
	c.Count([]byte(`]}]{"a":[{},{"}]}":{}`))
	if c.Objects != 4 || c.Values != 2 || c.Bytes != 18 {
		t.Errorf("%d objects, %d values, %d bytes", c.Objects, c.Values, c.Bytes)
	}
}
