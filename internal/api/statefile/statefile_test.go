package statefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
)

func TestSetAside_KeepsTheContentAndTheNewest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state [1]*")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "x.json")
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	var last string
	for i := range Kept + 3 {
		if err := os.WriteFile(name, []byte{byte('0' + i)}, 0o600); err != nil {
			t.Fatal(err)
		}
		aside, err := SetAside(name, now)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 { // two within one second have different names
			now = now.Add(time.Minute)
		}
		last = aside
	}
	if got, err := os.ReadFile(last); err != nil || string(got) != string(rune('0'+Kept+2)) {
		t.Errorf("the newest file set aside holds %q, %v", got, err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != Kept {
		t.Errorf("kept %d files (%v), want %d", len(list), err, Kept)
	}
	if _, err := SetAside(name, now); err == nil {
		t.Error("a file that does not exist was set aside")
	}
}

// TestRead_LeavesAloneWhatIsNoStateFile: what would hold a start up, or not fit into
// memory, is an error at once.
func TestRead_LeavesAloneWhatIsNoStateFile(t *testing.T) {
	dir := t.TempDir()
	pipe, large, link, good := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"), filepath.Join(dir, "link"), filepath.Join(dir, "good")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{large: 1 << 40, good: 3} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("link", link); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{pipe: "is a pipe, not a file", large: "has 1099511627776 bytes", dir: "is a directory, not a file", link: "too many levels of symbolic links"} {
		if _, err := Read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	if text, err := Read(good); err != nil || len(text) != 3 {
		t.Errorf("a good file: %q, %v", text, err)
	}
}

// TestReplace: a file is as it was until the new one is whole, and nothing is left
// beside it.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "state.json")
	if err := ReplaceBy(name, 0o640, []byte("old")); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("on purpose")
	err := Replace(name, 0o600, func(w io.Writer) error {
		if _, err := io.WriteString(w, "new, in p"); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
	text, err := os.ReadFile(name)
	if err != nil || string(text) != "old" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if is, err := os.Stat(name); err != nil || is.Mode().Perm() != 0o640 {
		t.Errorf("its permissions: %v, %v", is.Mode(), err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("left in the directory: %v, %v", list, err)
	}
	for _, left := range []string{Unfinished(name), Unfinished("/elsewhere/state.json")} {
		if ok, err := filepath.Match(left, ".state.json-123"); !ok || err != nil {
			t.Errorf("%s does not match what is being written: %v", left, err)
		}
	}
}

// Trouble with the state directory is logged once, and again once it is over.
func TestHealth_LogsOnceEachWay(t *testing.T) {
	lines := &logtest.Lines{}
	h := NewHealth(lines.Logger())
	for range 3 {
		h.Note("outbox.json", errors.New("no space left on device"))
	}
	if err := h.Err(); err == nil || !strings.Contains(err.Error(), "outbox.json: no space left") {
		t.Errorf("while it cannot be written: %v", err)
	}
	h.Note("outbox.json", nil)
	h.Note("outbox.json", nil)
	lines.Wants(t, "FB1040", "FB1041")
	if n := strings.Count(lines.String(), "\n"); n != 2 || h.Err() != nil {
		t.Errorf("logged %d lines, %v:\n%s", n, h.Err(), lines)
	}
}
