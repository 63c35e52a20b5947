package notify

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzOutbox: whatever the file of notifications holds, it is set aside, or says
// the same when it is written again, and takes events.
func FuzzOutbox(f *testing.F) {
	for _, text := range []string{
		`{"head":"0123456789012345678901234567890123456789","due":{"a":true},"pending":[{"target":{"tenant":"vision","secret":"s","key":"url"},"events":[{"id":"a"}]}]}`,
		`{"head":"zz"}`, `{"due":null,"pending":null}`, `{"pending":[{}]}`, `null`, `[]`, "", "\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o := Options{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
		name := filepath.Join(o.Dir, stateFile)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		box := load(o)
		if box == nil {
			if _, err := os.Stat(name); err == nil {
				t.Fatal("it is neither read nor set aside")
			}
			return
		}
		if err := box.save(o.Dir); err != nil {
			t.Fatal(err)
		}
		once, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		again := load(o)
		if again == nil {
			t.Fatalf("what was written cannot be read: %s", once)
		}
		if err := again.save(o.Dir); err != nil {
			t.Fatal(err)
		}
		if twice, err := os.ReadFile(name); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v\n%s\nwritten again\n%s", err, once, twice)
		}
		to := target{Tenant: "vision", Secret: "s", Key: "url"}
		box.fresh([]Event{{ID: "new"}})
		box.put(to, []Event{{ID: "new"}})
		box.of(to).expire(o.Now(), maxAge)
		box.taken(to, map[string]bool{"new": true})
		if n := len(box.of(to).Events); n > maxPending {
			t.Fatalf("%d events are kept", n)
		}
	})
}
