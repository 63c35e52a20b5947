package version

import (
	"net/url"
	"regexp"
	"strings"
)

// githubOwner is the form of an account's name.
var githubOwner = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,37}[a-z0-9])?$`)

// Registry is where the images of releases are, without a slash at its end, by the URL of
// releases: workflow `release` puts those of github.com/OWNER into ghcr.io/OWNER. It is ""
// where the URL does not show it: other forges have registries under names of their own.
func Registry(releases string) string {
	u, err := url.Parse(releases)
	if err != nil || u.Scheme != "https" || !strings.EqualFold(u.Host, "github.com") {
		return ""
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	owner := strings.ToLower(parts[0]) // names of images have no capitals
	if len(parts) < 2 || !githubOwner.MatchString(owner) {
		return ""
	}
	return "ghcr.io/" + owner
}
