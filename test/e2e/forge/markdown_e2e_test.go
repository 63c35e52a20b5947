//go:build e2e

package forge

import (
	"regexp"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/test/hostile"
)

// Gitea renders encoded hostile text as text: no link, no mention, no markup.
func TestTexts_GiteaShowsThemAsText(t *testing.T) {
	s := newSite(t)
	s.begin(ground)
	render := func(text string) string {
		out, _, err := s.as("acme").RenderMarkdown(sdk.MarkdownOption{Text: text, Mode: "comment", Context: s.URL + "/acme/fleet"})
		s.must(err)
		return out
	}
	if raw := render("@acme https://evil.example/ #1 **b**"); !strings.Contains(raw, "<a ") || !strings.Contains(raw, "<strong>") {
		t.Fatalf("plain markdown renders as %q: this test would see nothing", raw)
	}
	names := []string{"@acme", "x @mallory y", "hello @acme/platform", "acme/fleet#1", "#1", "!1"}
	paragraph := regexp.MustCompile(`^\s*(<p[^>]*>[^<]*</p>)?\s*$`)
	for _, text := range append(hostile.Texts(), names...) {
		if got := render(escape.Markdown(text)); !paragraph.MatchString(got) {
			t.Errorf("%q is rendered as %q, want one paragraph of text", text, got)
		}
	}
}
