package memremote

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's object names are SHA-1
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// DeltaBomb is a pack of a file of 1 MiB of zeros and a delta that makes so many
// times as much, with the names of both.
func DeltaBomb(times int) (pack []byte, small, large string) {
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, []uint32{2, 2})
	size := func(kind byte, n int) {
		c := kind<<4 | byte(n&15)
		for n >>= 4; n > 0; n >>= 7 {
			b.WriteByte(c | 0x80)
			c = byte(n & 0x7f)
		}
		b.WriteByte(c)
	}
	deflate := func(body []byte) {
		z := zlib.NewWriter(&b)
		_, _ = z.Write(body)
		_ = z.Close()
	}
	name := func(n int) string {
		h := sha1.New() //nolint:gosec // git's object names are SHA-1
		_, _ = fmt.Fprintf(h, "blob %d\x00", n)
		for range n >> 20 {
			_, _ = h.Write(make([]byte, 1<<20))
		}
		return fmt.Sprintf("%x", h.Sum(nil))
	}
	size(3, 1<<20)
	deflate(make([]byte, 1<<20))
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, 1<<20), uint64(times)<<20)
	for range times {
		delta = append(delta, 0xf0, 0, 0, 0x10) // copy 1 MiB from the start
	}
	small, large = name(1<<20), name(times<<20)
	size(7, len(delta))
	base, _ := hex.DecodeString(small)
	b.Write(base)
	deflate(delta)
	sum := sha1.Sum(b.Bytes()) //nolint:gosec // git's checksum of a pack
	return append(b.Bytes(), sum[:]...), small, large
}
