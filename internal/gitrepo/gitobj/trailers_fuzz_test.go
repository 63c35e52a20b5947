package gitobj

import (
	"strings"
	"testing"
)

// FuzzTrailers: whatever a message is, a trailer's value is one line, its subject
// too, and neither takes more than the message holds.
func FuzzTrailers(f *testing.F) {
	for _, s := range []string{
		"place\n\nLedger: ledger 7\nFleet: x\n", "x\nLedger: ledger 99", "x\r\n\r\nLedger: a\r\n", "Ledger: a", "\n\n\nLedger:", "x\n\nLedger: a\n\nLedger: b\n",
		"x\n\nLedger: a\n continued\n", "x\n \t\nLedger: a\v\r\n\r\n", "\xff\x00\n\nLedger: \x1b[2J\n", strings.Repeat("Ledger: x\n", 1000),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, message string) {
		size := 0
		for _, v := range Trailers(message, "Ledger") {
			size += len(v)
			if strings.Contains(v, "\n") {
				t.Fatalf("trailer %q of %q", v, message)
			}
		}
		if s := Subject(message); size > len(message) || strings.Contains(s, "\n") || len(s) > len(message) {
			t.Fatalf("subject %q, %d bytes of trailers of %q", s, size, message)
		}
	})
}

// FuzzSignedPayload: what a signature is over holds no signature, and never more
// than the commit.
func FuzzSignedPayload(f *testing.F) {
	const head = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n"
	for _, s := range []string{head + "\nx", head + "gpgsig -----BEGIN SSH SIGNATURE-----\n x\n -----END SSH SIGNATURE-----\n\nx", head + "gpgsig a\ngpgsig b\n\nx", head + "gpgsig-sha256 a\n\nx", "gpgsig", head + "\ngpgsig a\n", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		payload := SignedPayload(raw)
		header, _, _ := strings.Cut("\n"+string(payload), "\n\n") // a commit that begins with an empty line has none
		if len(payload) > len(raw) || strings.Contains(header, "\ngpgsig ") {
			t.Fatalf("%q of %q", payload, raw)
		}
	})
}
