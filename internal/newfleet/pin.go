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
	// Releases is where releases and their images are, as PinOf makes it: URL or
	// URL#REGISTRY; "" has Go build the version.
	Releases string
	// Sum is the checksum of the version's Go module (h1:…), "" where it is not known.
	Sum string
}

// released is a version that others can install.
var released = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// PinOf is the program that calls it: the release that it is, or the commit that it was
// built from. Where releases are is a URL, or URL#REGISTRY with the images' registry; "" is
// where the build says that they are.
func PinOf(releases string) (Pin, error) {
	if releases == "" {
		releases = version.Releases()
	}
	p := Pin{Version: version.Released()}
	if releases != "" {
		if err := CheckReleases(releases); err != nil {
			return Pin{}, err
		}
		p.Releases = version.URL(releases)
		if strings.Contains(releases, "#") {
			p.Releases += "#" + version.Registry(releases)
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

// CheckReleases is an error for a value that does not say where releases are, by URL or by
// URL#REGISTRY: it is written into files that CI runs and clusters apply.
func CheckReleases(text string) error {
	at, registry, named := strings.Cut(text, "#")
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || !plainURL.MatchString(at) {
		return hints.On(fmt.Errorf("releases %q: want an https URL of letters, digits and . _ ~ : / -", text), "for example --releases https://github.com/acme/fleetbroker/releases/download")
	}
	if named && !plainRegistry.MatchString(strings.TrimRight(registry, "/")) {
		return hints.On(fmt.Errorf("releases %q: want after # the registry of the images, its host with a dot or a port, and a path in small letters", text), "for example --releases 'https://dl.example.org/fleetbroker#registry.example.org/tools'")
	}
	return nil
}

var (
	plainURL = regexp.MustCompile(`^[A-Za-z0-9._~:/-]+$`)
	// plainRegistry is HOST[:PORT][/PATH]. A first part with neither dot nor port is no host:
	// container runtimes take it for a path on docker.io.
	plainRegistry = regexp.MustCompile(`^([a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]{1,5})?|[a-z0-9-]+:[0-9]{1,5})(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
)

// source is where CI has the version that it builds, and why.
const source = " with Go from github.com/fleetbroker/fleetbroker, if it is published there: "

// Text says what CI installs, in one line.
func (p Pin) Text() string {
	switch {
	case p.Releases != "" && p.Version != "":
		return "installs " + p.Version + " from " + version.URL(p.Releases)
	case p.Releases != "":
		return "takes releases from " + version.URL(p.Releases) + "; this program is no release: set FLEETBROKER_VERSION"
	case p.Version != "":
		return "builds " + p.Version + source + "this program knows no place of releases (--releases URL)"
	}
	return "builds its version" + source + "this program is no release, and knows no place of releases (--releases URL)"
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
		for _, set := range [][2]string{{`FLEETBROKER_VERSION: "v0.1.0"`, p.Version}, {`FLEETBROKER_RELEASES: ""`, version.URL(p.Releases)}, {`FLEETBROKER_SUM: ""`, p.Sum}} {
			if name, _, _ := strings.Cut(set[0], ":"); set[1] != "" {
				text = strings.ReplaceAll(text, set[0]+"\n", name+": "+strconv.Quote(set[1])+"\n")
			}
		}
		files[file] = []byte(text)
	}
}
