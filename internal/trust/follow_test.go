package trust_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

const (
	one = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	two = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func TestAccept_RefusesByPlace(t *testing.T) {
	for text, want := range map[string]string{
		"  accept:\n  - {drops: " + one + "}\n":                          "root.yaml:8:5: spec.accept[0].commit is missing",
		"  accept:\n  - {commit: main, drops: " + one + "}\n":            `root.yaml:8:14: "main" is no commit`,
		"  accept:\n  - {commit: " + one + ", drops: " + one + "}\n":     "commit and drops are the same",
		"  accept:\n  - {commit: " + one + ", drops: 0123}\n":            "root.yaml:8:63: ",
		"  accept:\n  - {commit: " + one + ", reason: lost, drops: x}\n": "root.yaml:8:56: ",
	} {
		if _, err := trust.Parse("root.yaml", []byte(head+"  unsigned: true\n"+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// What a file accepts is read again while a daemon runs, a file that cannot be read
// leaves what it last had, and its keys' digest is another for no entry.
func TestFollow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "root.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(head+"  unsigned: true\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	root, err := trust.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f := trust.Follow(file, root, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	got := func() (s string) {
		now = now.Add(15 * time.Second)
		for _, e := range f.Entries() {
			s += e.Branch + " " + e.Commit.String() + " " + e.Drops.String() + "\n"
		}
		return s
	}
	if g := got(); g != "" {
		t.Errorf("at the start: %q", g)
	}
	write("  accept:\n  - {branch: ledger, commit: " + one + ", drops: " + two + "}\n")
	want := "refs/heads/ledger " + one + " " + two + "\n"
	if g := got(); g != want {
		t.Errorf("after a change: %q, want %q", g, want)
	}
	write("  accept: all\n")
	for range 3 {
		if g := got(); g != want {
			t.Errorf("of a file that cannot be read: %q, want %q", g, want)
		}
	}
	logtest.Wants(t, log.String(), "FB1180")
	if n := strings.Count(log.String(), "cannot be read again"); n != 1 {
		t.Errorf("reported %d times:\n%s", n, log.String())
	}
	now = now.Add(-time.Hour)
	write("")
	if g := got(); g != "" {
		t.Errorf("after the clock was set back: %q", g)
	}
	with, err := trust.Parse("root.yaml", []byte(head+"  unsigned: true\n  accept:\n  - {commit: "+one+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if with.Digest() != root.Digest() {
		t.Error("an entry changes the digest of the keys, so that what was accepted counts no more")
	}
	entry := letgo.Entry{Branch: "refs/heads/ledger"}
	f.Accepted("refs/heads/ledger", entry.Commit)
	f.Unreached(entry)
	logtest.Wants(t, log.String(), "FB1181", "FB1182")
	if trust.Follow("", nil, time.Now, nil) != nil {
		t.Error("no file is followed")
	}
}
