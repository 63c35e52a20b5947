package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/cli"
)

// step is a block of the README's tour: a file, named in the line before, or a
// command with its output.
var step = regexp.MustCompile("(?ms)`([a-z0-9/.-]+)`:\n\n```yaml\n(.*?)^```$|^```\n\\$ fleetbroker ([^\n]*)\n(.*?)^```$")

// The README's tour is what a new user sees who does the same.
func TestReadmeTour(t *testing.T) {
	path, err := filepath.Abs("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var commands []string
	now := step.ReplaceAllFunc(page, func(block []byte) []byte {
		m := step.FindSubmatch(block)
		if file := string(m[1]); file != "" {
			if err := os.WriteFile(file, m[2], 0o600); err != nil {
				t.Fatal(err)
			}
			return block
		}
		commands = append(commands, string(m[3]))
		var b bytes.Buffer
		s := cli.Streams{In: strings.NewReader(""), Out: &b, Err: &b, Terminal: true, Now: func() time.Time { return noon }}
		args := strings.Fields(string(m[3]))
		cli.Run(context.Background(), s, args)
		if args[0] == "init" {
			t.Chdir(args[1])
		}
		return []byte("```\n$ fleetbroker " + string(m[3]) + "\n" + b.String() + "```")
	})
	// The steps of a newcomer: signing by default has added none.
	want := []string{"init fleet", "plan", "validate", "plan", "explain train"}
	if got := strings.Join(commands, ", "); got != strings.Join(want, ", ") {
		t.Errorf("the tour's steps are %s, want %s", got, strings.Join(want, ", "))
	}
	if !bytes.Contains(page, []byte("git init")) {
		t.Error("the tour does not say how its directory becomes a repository")
	}
	if bytes.Equal(now, page) {
		return
	}
	if !*update {
		t.Fatalf("the README shows something else (run with -update to accept)\n--- now\n%s", now)
	}
	if err := os.WriteFile(path, now, 0o644); err != nil { //nolint:gosec // a README is for everybody
		t.Fatal(err)
	}
}
