package statefile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
