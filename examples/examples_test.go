// Package examples holds complete fleets to learn from, and the test that what
// their READMEs show is what the commands print. It has no code of its own.
package examples

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the output in the READMEs")

// noon is the clock of every example: a Friday in Rome.
var noon = time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)

// shown is a fenced block that begins with a command.
var shown = regexp.MustCompile("(?ms)^```\n\\$ fleetbroker ([^\n]*)\n(.*?)^```$")

func TestExamples(t *testing.T) {
	fleets, err := filepath.Glob("*/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(fleets) != 13 {
		t.Fatalf("there are %d fleets, want 13", len(fleets))
	}
	for _, f := range fleets {
		dir := filepath.Dir(f)
		t.Run(dir, func(t *testing.T) {
			t.Chdir(dir)
			if code, out := fleetbroker(t, "validate"); code != 0 || out != "" {
				t.Errorf("validate ends with %d: %s", code, out)
			}
			compare(t)
		})
	}
}

// compare runs every command that the README shows.
func compare(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	now := shown.ReplaceAllFunc(page, func(block []byte) []byte {
		commands++
		m := shown.FindSubmatch(block)
		code, out := fleetbroker(t, strings.Fields(string(m[1]))...)
		if code == 1 {
			t.Errorf("fleetbroker %s fails: %s", m[1], out)
		}
		if strings.Contains(out, "not supported") {
			t.Errorf("an example uses what is not supported yet:\n%s", out)
		}
		return []byte("```\n$ fleetbroker " + string(m[1]) + "\n" + out + "```")
	})
	if commands == 0 {
		t.Error("the README shows no command")
	}
	if bytes.Equal(now, page) {
		return
	}
	if !*update {
		t.Fatalf("the README shows something else (run with -update to accept)\n--- now\n%s", now)
	}
	if err := os.WriteFile("README.md", now, 0o644); err != nil { //nolint:gosec // a README is for everybody
		t.Fatal(err)
	}
}

// fleetbroker runs a command as at a terminal without colours.
func fleetbroker(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var b bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &b, Err: &b, Now: func() time.Time { return noon }}
	code = cli.Run(context.Background(), s, args)
	return code, b.String()
}
