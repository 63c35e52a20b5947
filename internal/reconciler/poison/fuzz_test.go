package poison

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzNotes: whatever the notes hold, the start goes on. They are set aside, or
// give what to suspect; nothing is suspected and known to be good.
func FuzzNotes(f *testing.F) {
	for _, text := range []string{
		`{"version":1,"program":"v1","open":{"read":{"intents/vision/a.yaml":"x"}},"good":{"read":{"intents/vision/a.yaml":"x","b":"y"}}}`,
		`{"version":2}`, `{"version":1,"evil":1}`, `{"version":1,"program":"v1","good":null}`, `{"version":1,"open":{"read":null}}`, `[]`, "null", "", "\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, File), text, 0o600); err != nil {
			t.Fatal(err)
		}
		w := Open(dir, "v1", time.Unix(1_800_000_000, 0), slog.New(slog.DiscardHandler))
		for path, hash := range w.Suspects() {
			for stage, good := range w.notes.Good {
				if is, known := good[path]; known && is == hash {
					t.Fatalf("%s is suspected, and known to be good at %s", path, stage)
				}
			}
		}
		w.Begin(Read, Pieces{"intents/vision/a.yaml": "z"})
		w.Done(Read, Pieces{"intents/vision/a.yaml": "z"})
		again := Open(dir, "v1", time.Unix(1_800_000_001, 0), slog.New(slog.DiscardHandler))
		if again.notes.Good[Read]["intents/vision/a.yaml"] != "z" {
			t.Fatalf("what was found good is lost: %+v", again.notes)
		}
	})
}
