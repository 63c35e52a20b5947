package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// changelog is where the notes come from.
const changelog = ".github/CHANGELOG.md"

// unsigned is what the notes say of a release without a key.
const unsigned = "**This release is not signed**: its checksums, images and provenance have no signature, and nothing shows who made it.\n"

// notes are the changelog's part of this version. A version with a suffix, such as
// v0.1.0-rc.1, may be of what is unreleased.
func (r *release) notes() (string, error) {
	content, err := os.ReadFile(filepath.Join(r.checkout, filepath.FromSlash(changelog)))
	if err != nil {
		return "", fmt.Errorf("read the changelog: %w", err)
	}
	text, ok := section(string(content), strings.TrimPrefix(r.version, "v"))
	if !ok && strings.Contains(r.version, "-") {
		text, ok = section(string(content), "Unreleased")
	}
	if !ok || strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("%s has no section for %s: rename \"## Unreleased\" to \"## %s\" and commit that first", changelog, r.version, r.version)
	}
	// Links of the changelog are from .github.
	text = strings.ReplaceAll(text, "](../", "](https://"+module+"/blob/"+r.version+"/")
	text = "# fleetbroker " + r.version + "\n\n" + strings.TrimSpace(text) + "\n"
	if r.key == "" {
		text += "\n" + unsigned
	}
	return text, nil
}

// section is what stands under "## <name>" or "## v<name>", with or without a date behind.
func section(text, name string) (string, bool) {
	var out strings.Builder
	in, found := false, false
	for line := range strings.Lines(text) {
		if heading, is := strings.CutPrefix(line, "## "); is {
			first, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
			in = strings.TrimPrefix(strings.Trim(first, "[]"), "v") == name
			found = found || in
			continue
		}
		if in {
			out.WriteString(line)
		}
	}
	return out.String(), found
}
