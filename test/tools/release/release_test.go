package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"io"
	"strings"
	"testing"
	"time"
)

func TestSection(t *testing.T) {
	const log = "# Changelog\n\n## Unreleased\n\n- new\n\n## v0.2.0 (2026-01-02)\n\n### Added\n\n- two\n\n## [0.1.0]\n\n- one\n"
	for name, want := range map[string]string{"Unreleased": "\n- new\n\n", "0.2.0": "\n### Added\n\n- two\n\n", "0.1.0": "\n- one\n"} {
		if got, ok := section(log, name); !ok || got != want {
			t.Errorf("%s: got %q, %v; want %q", name, got, ok, want)
		}
	}
	for _, name := range []string{"0.3.0", "0.1", ""} {
		if got, ok := section(log, name); ok {
			t.Errorf("%s: got %q, want none", name, got)
		}
	}
}

// A release that nothing signs says so to who would install it, and no other does.
func TestNotes_Unsigned(t *testing.T) {
	for key, want := range map[string]bool{"": true, "cosign.key": false} {
		r := &release{checkout: "../../..", version: "v0.0.0-rc.1", key: key}
		if got, err := r.notes(); err != nil || strings.Contains(got, "is not signed") != want || !strings.HasPrefix(got, "# fleetbroker v0.0.0-rc.1\n") {
			t.Errorf("key %q: got %.300q, %v", key, got, err)
		}
	}
}

// Archives of the same files are the same bytes, and hold them with their modes.
func TestArchives(t *testing.T) {
	members := []member{{"a", []byte("text"), 0o644}, {"program", []byte("binary"), 0o755}}
	at := time.Unix(1_700_000_000, 0).UTC()
	for name, pack := range map[string]func([]member, time.Time) ([]byte, error){"tar": tarball, "zip": zipped} {
		one, err := pack(members, at)
		if err != nil {
			t.Fatal(err)
		}
		two, err := pack(members, at)
		if err != nil || sha256.Sum256(one) != sha256.Sum256(two) {
			t.Errorf("%s: two packs differ, %v", name, err)
		}
		if later, err := pack(members, at.Add(time.Hour)); err != nil || bytes.Equal(one, later) {
			t.Errorf("%s: the time is not in it, %v", name, err)
		}
		if name == "tar" {
			continue
		}
		z, err := zip.NewReader(bytes.NewReader(one), int64(len(one)))
		if err != nil || len(z.File) != 2 || z.File[1].Mode() != 0o755 {
			t.Fatalf("zip: %v, %v", z, err)
		}
		f, err := z.File[1].Open()
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(f); err != nil || string(content) != "binary" {
			t.Errorf("zip: %q, %v", content, err)
		}
	}
}

func TestKrew(t *testing.T) {
	r := &release{version: "v0.1.0", releases: "https://example.org/dl#registry.example.org/tools", archives: []archive{{os: "windows", arch: "amd64", file: "f.zip", sum: "ab", bin: "fleetbroker.exe"}}}
	want := "  - selector: {matchLabels: {os: windows, arch: amd64}}\n    uri: https://example.org/dl/v0.1.0/f.zip\n    sha256: ab\n    bin: fleetbroker.exe\n"
	if got := string(r.krew()); !bytes.HasSuffix([]byte(got), []byte(want)) {
		t.Errorf("got\n%s", got)
	}
}
