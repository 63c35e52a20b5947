package main

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/version"
)

// krew is the manifest by which `kubectl krew install --manifest-url` makes the program
// kubectl's plugin.
func (r *release) krew() []byte {
	var out strings.Builder
	fmt.Fprintf(&out, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: fleetbroker
spec:
  version: %s
  homepage: https://%s
  shortDescription: Reserve GPU capacity across clusters from git
  description: |
    Plans, explains and lists what a fleet repo reserves on other clusters, and writes
    what clusters need.
  platforms:
`, r.version, module)
	at := version.URL(r.releases)
	for _, a := range r.archives {
		fmt.Fprintf(&out, `  - selector: {matchLabels: {os: %s, arch: %s}}
    uri: %s/%s/%s
    sha256: %s
    bin: %s
`, a.os, a.arch, at, r.version, a.file, a.sum, a.bin)
	}
	return []byte(out.String())
}
