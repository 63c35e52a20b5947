package clonedir

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"strconv"

	"github.com/go-git/go-billy/v5"
)

// smallObject is up to how many bytes a loose object is not looked into before it is read: it
// makes a thousand times as many at the most.
const smallObject = 64 << 10

// maxObject bounds what one loose object makes, in bytes.
const maxObject = 1 << 30

// holds refuses a loose object that makes more bytes than its header states: go-git makes them
// all.
func holds(name string, f billy.File) error {
	z, err := zlib.NewReader(f)
	if err != nil {
		return fmt.Errorf("read %s: %w: clone again", name, err)
	}
	head := make([]byte, 32)
	n, err := io.ReadFull(z, head)
	if err != nil && n == 0 {
		return fmt.Errorf("read %s: %w: clone again", name, err)
	}
	text, _, _ := bytes.Cut(head[:n], []byte{0})
	_, digits, _ := bytes.Cut(text, []byte{' '})
	size, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || size < 0 || size > maxObject {
		return fmt.Errorf("read %s: its header states no size up to %d: %q: clone again", name, maxObject, text)
	}
	all := int64(len(text)) + 1 + size
	made, err := io.Copy(io.Discard, io.LimitReader(z, all-int64(n)+1))
	if err == nil && made+int64(n) != all {
		err = fmt.Errorf("it makes another number of bytes than its header states (%d)", size)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w: this clone is damaged, or was changed by hand; clone again", name, err)
	}
	return nil
}
