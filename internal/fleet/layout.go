package fleet

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// section is a part of the fleet repo's layout.
type section uint8

const (
	secFleet section = iota
	secClusters
	secTenants
	secFlavors
	secPrices
	secIntents
	secRequests // the same kind as intents, written by the daemon: no kustomizations
	secSources  // the same kind as intents, copied by the daemon from other repositories: no kustomizations
)

// Names of the layout.
const (
	fleetFile   = "fleet.yaml"
	clustersDir = "clusters"
	tenantsDir  = "tenants"
	flavorsDir  = "flavors"
	pricesDir   = "prices"
	intentsDir  = "intents"
	basesDir    = "bases"
	requestsDir = "requests"
	sourcesDir  = v1alpha1.SourcesRoot
)

// intents reports whether a section's files hold intents.
func (s section) intents() bool { return s == secIntents || s == secRequests || s == secSources }

// GeneratedPrefixes are the directories that the daemon alone writes.
var GeneratedPrefixes = []string{"contracts/", "manifests/", "requests/", "sources/"}

// inputDirs are the directories that people write, for "did you mean".
var inputDirs = []string{clustersDir, tenantsDir, flavorsDir, pricesDir, intentsDir, basesDir, "pki", "overlays"}

// IsGenerated reports whether a path is the daemon's.
func IsGenerated(name string) bool {
	for _, p := range GeneratedPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

const (
	maxPath  = 1024 // bytes, as most file systems
	maxLevel = 32   // directories within directories
)

// kustomizations are the names that kustomize knows for its file.
var kustomizations = map[string]bool{"kustomization.yaml": true, "kustomization.yml": true, "Kustomization": true}

func isYAML(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// refuse says why an entry of an input directory is not read, "" when it is.
func refuse(p string, e tree.Entry) string {
	switch {
	case e.Kind == tree.Symlink:
		return "symbolic links are not followed; put the file itself here"
	case e.Kind == tree.Submodule:
		return "submodules are not read; put the files themselves here"
	case len(p) > maxPath:
		return "the path is longer than 1024 bytes; shorten it"
	case strings.Count(p, "/") > maxLevel:
		return "the path is deeper than 32 directories; move it up"
	case !plainName(e.Name):
		return "the name has control characters, quotes or backslashes; rename it"
	}
	return ""
}

func plainName(name string) bool {
	if !utf8.ValidString(name) {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune("\\\"'`", r) }) < 0
}
