package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each command has its page, with its flags, and two runs write the same.
func TestManuals(t *testing.T) {
	at := time.Unix(1_700_000_000, 0).UTC()
	one, err := manuals("v0.1.0", at)
	if err != nil {
		t.Fatal(err)
	}
	two, err := manuals("v0.1.0", at)
	if err != nil || !slices.EqualFunc(one, two, func(a, b member) bool { return a.name == b.name && bytes.Equal(a.content, b.content) }) {
		t.Errorf("two runs differ, %v", err)
	}
	pages := map[string]string{}
	for _, m := range one {
		if !strings.HasPrefix(string(m.content), ".nh\n.TH \"FLEETBROKER") || !strings.Contains(string(m.content), "\"Nov 2023\" \"fleetbroker v0.1.0\"") {
			t.Errorf("%s begins %.100q", m.name, m.content)
		}
		pages[m.name] = string(m.content)
	}
	for name, want := range map[string]string{
		"man/man1/fleetbroker.1":           "fleetbroker-plan(1)",
		"man/man1/fleetbroker-run.1":       `\fB--trust-root\fP`,
		"man/man1/fleetbroker-pki-issue.1": "fleetbroker-pki(1)",
	} {
		if !strings.Contains(pages[name], want) {
			t.Errorf("%s has no %q", name, want)
		}
	}
	if len(pages) < 30 || pages["man/man1/fleetbroker-help.1"] != "" {
		t.Errorf("%d pages", len(pages))
	}
}
