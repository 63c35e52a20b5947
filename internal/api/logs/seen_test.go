package logs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunbookLinesAreSeen: each line that the runbook explains is asked for by a test, by its
// code or by its words.
func TestRunbookLinesAreSeen(t *testing.T) {
	var tests strings.Builder
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join(root, "internal/api/logs"):
			return nil
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	text := tests.String()
	for _, e := range Events() {
		if Runbook()[e.Code] == nil {
			continue
		}
		seen := strings.Contains(text, `"`+e.Code+`"`) || len(e.Message) > 15 && strings.Contains(text, e.Message)
		if !seen {
			t.Errorf("no test asks for %s %q", e.Code, e.Message)
		}
	}
}
