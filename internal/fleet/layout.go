package fleet

import (
	"path"
	"strings"

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

// kustomizations are the names that kustomize knows for its file.
var kustomizations = map[string]bool{"kustomization.yaml": true, "kustomization.yml": true, "Kustomization": true}

func isYAML(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}
