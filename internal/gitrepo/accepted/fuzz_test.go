package accepted

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzAccepted: a damaged note of the accepted heads is an error and says no
// head; what is read is the same when it is written again.
func FuzzAccepted(f *testing.F) {
	const h = "0123456789012345678901234567890123456789"
	for _, text := range []string{
		`{"inputs":"` + h + `","ledger":"` + h + `","root":"x","dropped":"ledger ` + h + `"}`, `{}`, `{"inputs":"zz"}`, `{"ledger":"0000000000000000000000000000000000000000"}`,
		`{"inputs":1}`, `[]`, `null`, "", "\x00", `{"inputs":"` + h + `"}{}`,
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	name := filepath.Join(dir, File)
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		first, err := Read(dir)
		if err != nil {
			if first != (Heads{}) {
				t.Fatalf("%+v beside %v", first, err)
			}
			return
		}
		if err := Write(dir, first); err != nil {
			t.Fatal(err)
		}
		if second, err := Read(dir); err != nil || second != first {
			t.Fatalf("read %+v, written and read again %+v, %v", first, second, err)
		}
	})
}
