package packs_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

// The size of what a delta makes is found however its compression begins: the tables of one
// that inserts all kinds of bytes are longer than most entries are.
func TestStat_DeltasWithLongTables(t *testing.T) {
	const size = 1000
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's
	var symbols []byte               // of very different frequency, without order
	for i := range 256 {
		symbols = append(symbols, bytes.Repeat([]byte{byte(i)}, int(math.Exp(8*r.Float64())))...)
	}
	base := bytes.Repeat([]byte{'a'}, size)
	entries := []written{{kind: byte(gitobj.Blob), body: base}}
	var want []int
	var made [][]byte
	for n := 1; n <= 1<<16; n *= 2 {
		insert := make([]byte, n)
		for i := range insert {
			insert[i] = symbols[r.IntN(len(symbols))]
		}
		d := binary.AppendUvarint(binary.AppendUvarint(nil, size), uint64(n))
		for rest := insert; len(rest) > 0; {
			k := min(len(rest), 127)
			d = append(append(d, byte(k)), rest[:k]...)
			rest = rest[k:]
		}
		want = append(want, n)
		made = append(made, insert)
		entries = append(entries, written{kind: 6, body: d})
	}
	d, err := packs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.Take(bytes.NewReader(packOf(entries))); err != nil {
		t.Fatal(err)
	}
	for i, body := range made {
		kind, size, err := d.Stat(gitobj.Object{Type: gitobj.Blob, Data: body}.Hash())
		if err != nil || kind != gitobj.Blob || size != int64(want[i]) {
			t.Errorf("of %d bytes: %v of %d, %v", want[i], kind, size, err)
		}
	}
}
