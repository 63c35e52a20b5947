package newfleet

import (
	"fmt"
	"net/url"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	fleetrepo "github.com/fleetbroker/fleetbroker/fleet-repo-template"
	"github.com/fleetbroker/fleetbroker/internal/api/hints"
	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/install"
)

// Pin is which program the fleet repo's CI installs.
type Pin struct {
	// Version is a release's or a commit; "" leaves the template's.
	Version string
	// Releases is the URL below which releases are; "" has Go build the version.
	Releases string
	// Sum is the checksum of the version's Go module (h1:…), "" where it is not known.
	Sum string
}

// released is a version that others can install.
var released = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// PinOf is the program that calls it: the release that it is, or the commit that it was
// built from. An empty URL is where the build says that releases are.
func PinOf(releases string) (Pin, error) {
	if releases == "" {
		releases = version.Releases()
	}
	p := Pin{Version: version.Released(), Releases: strings.TrimRight(releases, "/")}
	if p.Releases != "" {
		if err := CheckReleases(p.Releases); err != nil {
			return Pin{}, err
		}
	}
	if p.Version != "" {
		return p, nil
	}
	info, ok := debug.ReadBuildInfo()
	switch {
	case ok && released.MatchString(info.Main.Version) && info.Main.Sum != "": // go install module@version
		p.Version = info.Main.Version
		if p.Releases == "" {
			p.Sum = info.Main.Sum
		}
	case p.Releases == "": // a release has archives of its own version alone
		p.Version = version.Revision()
	}
	return p, nil
}

// CheckReleases is an error for a URL that is none of releases: it is written into files
// that CI runs.
func CheckReleases(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !plainURL.MatchString(text) {
		return hints.On(fmt.Errorf("releases %q: want an https URL of letters, digits and . _ ~ : / -", text), "for example --releases https://github.com/acme/fleetbroker/releases/download")
	}
	return nil
}

var plainURL = regexp.MustCompile(`^[A-Za-z0-9._~:/-]+$`)

// Text says what CI installs, in one line.
func (p Pin) Text() string {
	switch {
	case p.Releases != "" && p.Version != "":
		return "installs " + p.Version + " from " + p.Releases
	case p.Releases != "":
		return "takes releases from " + p.Releases + "; this program is no release: set FLEETBROKER_VERSION"
	case p.Version != "":
		return "builds " + p.Version + " with Go: this program knows no place of releases (--releases URL)"
	}
	return "builds the version in its file with Go: this program is no release, and knows no place of releases (--releases URL)"
}

// sampleRegistry is where the template's images are.
const sampleRegistry = "newName: registry." + install.SampleHost + "/"

// into writes the pin into the CI files and, where it is known, the images' registry into the
// install bases, with the version of a release.
func (p Pin) into(files map[string][]byte) {
	if registry := version.Registry(p.Releases); registry != "" {
		for _, file := range []string{"install/broker/kustomization.yaml", "install/agent/kustomization.yaml"} {
			text := strings.ReplaceAll(string(files[file]), sampleRegistry, "newName: "+registry+"/")
			if released.MatchString(p.Version) {
				text = strings.ReplaceAll(text, "  newTag: v0.1.0\n", "  newTag: "+p.Version+"\n")
			}
			files[file] = []byte(text)
		}
	}
	for file, content := range files {
		top, _, _ := strings.Cut(file, "/")
		if _, is := fleetrepo.Forges[top]; !is {
			continue
		}
		text := string(content)
		for _, set := range [][2]string{{`FLEETBROKER_VERSION: "v0.1.0"`, p.Version}, {`FLEETBROKER_RELEASES: ""`, p.Releases}, {`FLEETBROKER_SUM: ""`, p.Sum}} {
			if name, _, _ := strings.Cut(set[0], ":"); set[1] != "" {
				text = strings.ReplaceAll(text, set[0]+"\n", name+": "+strconv.Quote(set[1])+"\n")
			}
		}
		files[file] = []byte(text)
	}
}
