package version

import (
	"net/url"
	"regexp"
	"strings"
)

// githubOwner is the form of an account's name.
var githubOwner = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,37}[a-z0-9])?$`)

// URL is the first part of the one value that says where releases are, URL or URL#REGISTRY:
//
//	https://github.com/acme/fleetbroker/releases/download
//	https://dl.example.org/fleetbroker#registry.example.org/tools
//
// Below it, each version has a directory with its archives and its chart. It has no slash
// at its end, and is "" for "".
func URL(releases string) string {
	u, _, _ := strings.Cut(releases, "#")
	return strings.TrimRight(u, "/")
}

// Registry is where the images of releases are, without a slash at its end: what the value
// names after #, else ghcr.io/OWNER for releases of github.com/OWNER, where workflow `release`
// puts them. It is "" where the value does not say it: other forges have registries under
// names of their own.
func Registry(releases string) string {
	if _, registry, named := strings.Cut(releases, "#"); named {
		return strings.TrimRight(registry, "/")
	}
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
