package gitobj

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
)

// EarlyCommits are the commits among the first objects of a pack, as they are
// stored: servers send commits first. It reads no further than most bytes of what
// the headers announce, keeps no other object and makes no delta, so it is good for
// a pack that is too large to be taken in. What it misses is not there.
func EarlyCommits(pack io.Reader, most int64) (Set, error) {
	r := bufio.NewReader(pack)
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:4]) != "PACK" {
		return nil, errors.Join(errors.New("read pack: it has no header"), err)
	}
	set := Set{}
	var z io.ReadCloser
	for i := range binary.BigEndian.Uint32(head[8:]) {
		first, err := r.Peek(1)
		if err != nil {
			return set, fmt.Errorf("read pack: object %d: %w", i+1, err)
		}
		kind := Type(first[0] >> 4 & 7)
		_, size, err := entryHeader(r)
		if most -= size + perObject; most < 0 {
			return set, nil
		}
		if err == nil {
			if z == nil {
				z, err = zlib.NewReader(r)
			} else {
				err = z.(zlib.Resetter).Reset(r, nil) //nolint:forcetypeassert // zlib says so
			}
		}
		var body bytes.Buffer
		if err == nil {
			_, err = io.Copy(&body, io.LimitReader(z, size+1))
		}
		if err == nil && int64(body.Len()) != size {
			err = errors.New("its length is not what its header says")
		}
		if err != nil {
			return set, fmt.Errorf("read pack: object %d: %w", i+1, err)
		}
		if kind == Commit {
			set.Add(Commit, body.Bytes())
		}
	}
	return set, nil
}
