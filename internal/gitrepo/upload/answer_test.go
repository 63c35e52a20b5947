package upload

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// again reads one text without end.
type again struct {
	text string
	at   int
}

func (a *again) Read(p []byte) (int, error) {
	n := copy(p, a.text[a.at:])
	a.at = (a.at + n) % len(a.text)
	return n, nil
}

func bands(t *testing.T) *capability.List {
	t.Helper()
	caps := capability.NewList()
	if err := caps.Set(capability.Sideband64k); err != nil {
		t.Fatal(err)
	}
	return caps
}

// Words, empty bands and keepalives without end are refused after some MiB, and not read
// for as long as an answer may take.
func TestDemux_WordsWithoutEnd(t *testing.T) {
	for name, text := range map[string]string{
		"words": "0009\x02abcd", "long words": "ffe5\x02" + strings.Repeat("a", 0xffe0), "empty words": "0005\x02", "empty packs": "0005\x01", "one byte at a time": "0006\x01a",
	} {
		t.Run(name, func(t *testing.T) {
			n, err := io.Copy(io.Discard, io.LimitReader(Demux(bands(t), &again{text: text}), 64<<20))
			var endless *EndlessWordsError
			if !errors.As(err, &endless) || n > someWords {
				t.Errorf("%d bytes, then %v", n, err)
			}
		})
	}
}

// A pack in pieces of 1,000 bytes, as older servers send it, with words between them, is read.
func TestDemux_Pack(t *testing.T) {
	var in bytes.Buffer
	piece := "03e8\x01" + strings.Repeat("p", 995)
	for range 20_000 {
		in.WriteString(piece + "0019\x02Compressing objects\r")
	}
	in.WriteString("0000")
	n, err := io.Copy(io.Discard, Demux(bands(t), &in))
	if n != 20_000*995 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
