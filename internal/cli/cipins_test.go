package cli

import (
	"github.com/fleetbroker/fleetbroker/internal/newfleet"

	"regexp"
	"strings"
	"testing"
)

var (
	uses   = regexp.MustCompile(`(?m)^\s*- uses: (.*)$|^\s*uses: (.*)$`)
	pinned = regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40} # v[0-9.]+$`)
)

// CI runs with the repository's secrets: what it runs is named by a commit, or by
// a version and its checksum, and what a branch can read has narrow rights.
func TestInit_CIIsPinned(t *testing.T) {
	for forge, file := range map[string]string{"github": ".github/workflows/fleet.yml", "gitea": ".gitea/workflows/fleet.yml", "gitlab": ".gitlab-ci.yml"} {
		files, err := newfleet.Files(forge)
		if err != nil {
			t.Fatal(err)
		}
		text := string(files[file])
		for _, m := range uses.FindAllStringSubmatch(text, -1) {
			if action := m[1] + m[2]; !pinned.MatchString(action) {
				t.Errorf("%s uses %s, want a commit and its version: owner/name@<40 hex digits> # v1.2.3", file, action)
			}
		}
		for _, never := range []string{"@latest", "@main", "@master", "go-version: stable", "pull_request_target", ":latest", "| sh", "| bash", "role operator\n"} {
			if strings.Contains(text, never) {
				t.Errorf("%s has %q", file, never)
			}
		}
		for _, want := range []string{`FLEETBROKER_VERSION: "v`, "FLEETBROKER_RELEASES: ", "FLEETBROKER_SUM: ", `"$sum" != "$FLEETBROKER_SUM"`, "role reader"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q", file, want)
			}
		}
		switch forge {
		case "github":
			for _, want := range []string{"persist-credentials: false", "environment: fleetbroker-plan", "permissions:\n  contents: read\n  pull-requests: write\n"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s lacks %q", file, want)
				}
			}
		case "gitlab":
			before, comment, _ := strings.Cut(text, "\ncomment:\n")
			if strings.Contains(before, "$FLEETBROKER_COMMENT_TOKEN") || strings.Contains(comment, "fleetbroker plan") || !strings.Contains(comment, "GIT_STRATEGY: none") {
				t.Errorf("%s: the token is not the comment job's alone, which runs nothing of the merge request", file)
			}
			if strings.Count(text, "action: access}") != 2 {
				t.Errorf("%s: plan and comment need an environment each", file)
			}
		}
	}
}
