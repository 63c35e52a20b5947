package forge_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

// TestCommitPage: a commit's page is at the forge of the remote, and nowhere for a server
// that is none.
func TestCommitPage(t *testing.T) {
	for _, c := range []struct {
		kind         forge.Kind
		remote, want string
	}{
		{"", "https://github.com/acme/fleet.git", "https://github.com/acme/fleet/commit/abc"},
		{"", "git@github.com:acme/fleet.git", "https://github.com/acme/fleet/commit/abc"},
		{"", "ssh://git@ssh.github.com:443/acme/fleet.git", "https://github.com/acme/fleet/commit/abc"},
		{"", "https://ada:secret@gitlab.com/acme/sub/fleet", "https://gitlab.com/acme/sub/fleet/-/commit/abc"},
		{forge.Gitea, "http://127.0.0.1:3000/acme/fleet.git", "http://127.0.0.1:3000/acme/fleet/commit/abc"},
		{forge.Gitea, "ssh://git@git.example.org:2222/acme/fleet.git", "https://git.example.org/acme/fleet/commit/abc"},
		{forge.GitHub, "https://git.example.org/acme/fleet.git", "https://git.example.org/acme/fleet/commit/abc"},
		{"", "https://git.example.org/acme/fleet.git", ""},
		{"", "file:///srv/fleet.git", ""},
		{forge.Gitea, "/srv/fleet.git", ""},
		{forge.Gitea, "https://git.example.org/fleet.git", ""},
		{"", "", ""},
	} {
		if got := forge.CommitPage(c.kind, c.remote, "abc"); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.kind, c.remote, got, c.want)
		}
	}
}

// TestPullPage: a pull request's page, as each kind of forge has it.
func TestPullPage(t *testing.T) {
	for _, c := range []struct {
		kind         forge.Kind
		remote, want string
	}{
		{"", "git@github.com:acme/fleet.git", "https://github.com/acme/fleet/pull/12"},
		{"", "https://gitlab.com/acme/sub/fleet", "https://gitlab.com/acme/sub/fleet/-/merge_requests/12"},
		{forge.Gitea, "http://127.0.0.1:3000/acme/fleet.git", "http://127.0.0.1:3000/acme/fleet/pulls/12"},
		{"", "https://git.example.org/acme/fleet.git", ""},
		{"", "file:///srv/fleet.git", ""},
	} {
		if got := forge.PullPage(c.kind, c.remote, 12); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.kind, c.remote, got, c.want)
		}
	}
}
