// Package fleetrepo holds the fleet repo that `fleetbroker init` lays down:
// layout, sample inputs, CI for three forges, install base and documents. The
// files are used as they stand; which of them depend on the forge is said here.
package fleetrepo

import "embed"

// Files is the template. CI files of all forges are in it; Forges says which
// belong to which.
//
//go:embed README.md CODEOWNERS fleet.yaml clusters flavors intents tenants docs install
//go:embed .editorconfig .gitattributes .gitignore .pre-commit-config.yaml .gitlab-ci.yml all:.github all:.gitea all:.vscode
var Files embed.FS

// Forges are the top-level names that exist for one forge only.
var Forges = map[string]string{
	".github":        "github",
	".gitlab-ci.yml": "gitlab",
	".gitea":         "gitea",
}
