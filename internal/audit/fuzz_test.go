package audit

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"
)

// FuzzReadWitness: what a witness file holds is refused, or is what the commit in
// it says; written again it is read as the same.
func FuzzReadWitness(f *testing.F) {
	commit := "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <a@example.org> 1 +0000\ncommitter a <a@example.org> 1 +0000\n\nx\n\nLedger: ledger 7\nFleet: f3k9q2abx7\nInputs: 0123456789012345678901234567890123456789\n"
	for _, o := range []string{commit, "", "tree x\n", commit + "Ledger: ledger 8\n", "\xff"} {
		f.Add([]byte(fmt.Sprintf(`{"fleetID":"f3k9q2abx7","branch":"ledger","seq":7,"commit":"x","inputs":"x","object":%q}`, base64.StdEncoding.EncodeToString([]byte(o)))))
	}
	f.Add([]byte(`{"object":null}`))
	if w, err := witnessOf([]byte(commit)); err == nil {
		var b bytes.Buffer
		if err := w.Encode(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := ReadWitness(bytes.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := w.Encode(&b); err != nil {
			t.Fatal(err)
		}
		again, err := ReadWitness(&b)
		if err != nil || again.Commit != w.Commit || again.Seq != w.Seq {
			t.Fatalf("%+v, written and read: %+v, %v", w, again, err)
		}
	})
}
