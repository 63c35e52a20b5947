package poison

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
)

// Notes that cannot be written are logged once, and what was read counts all the same.
func TestWatch_NotesCannotBeWritten(t *testing.T) {
	dir, lines := t.TempDir(), &logtest.Lines{}
	if err := os.Mkdir(filepath.Join(dir, File+".new"), 0o700); err != nil { // where they are written first
		t.Fatal(err)
	}
	w := Open(dir, "v1", time.Unix(1_800_000_000, 0), lines.Logger())
	for range 3 {
		w.Begin(Read, Pieces{"intents/vision/a.yaml": "z"})
		w.Done(Read, Pieces{"intents/vision/a.yaml": "z"})
	}
	lines.Wants(t, "FB1120")
	if n := strings.Count(lines.String(), "\n"); n != 1 || w.notes.Good[Read]["intents/vision/a.yaml"] != "z" {
		t.Errorf("logged %d lines, notes %+v:\n%s", n, w.notes, lines)
	}
}
