package strictyaml

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
)

// otherWords are fields' names that other systems use, by the ones used here: no
// edit distance leads from one to the other.
var otherWords = map[string]string{
	"start": "from", "begin": "from", "end": "to", "until": "to", "tz": "timezone",
	"location": "regions", "locations": "regions", "type": "models", "product": "models",
	"region": "regions", "zone": "zones", "arch": "architectures", "clusters": "providers",
	"topologyKey": "by", "spot": "purchase", "nodes": "replicas", "instances": "replicas", "workers": "replicas",
	"count": "replicas", "notAfter": "deadline", "ttl": "duration", "hours": "duration",
	"nodeSelector": "labels", "filter": "where", "expression": "where",
	"country": "where", "countries": "where",
	"gpu": "resources", "gpus": "resources", "cpu": "resources", "memory": "resources",
}

// howTo is what to write in place of an unknown field for which a name alone does not do; ""
// for others. near is the field that it stands for.
func howTo(name, near string) string {
	switch {
	case near == "where" && (name == "country" || name == "countries"):
		return `write where: 'flavor.location.country in ["IT", "FR"]', or regions`
	case near == "resources" && otherWords[name] == near:
		return "it belongs under resources: write resources: {" + strings.TrimSuffix(name, "s") + ": ...}"
	case near == "by" && name == "topologyKey":
		return "write by: zone (or region, provider, network), or by: label and the key under label"
	case near == "purchase" && name == "spot":
		return "write purchase: [spot], or [spot, on-demand] where either will do"
	}
	return ""
}

// under is the field of an object below which an unknown one belongs, and its name there; ""
// where that is none, or several.
func under(name string, s *shape) (parent, field string) {
	for _, field = range [...]string{otherWords[name], name} {
		found := ""
		for _, p := range s.names {
			if inner := s.fields[p]; field != "" && inner != nil && slices.Contains(inner.names, field) {
				if found != "" {
					found = ""
					break
				}
				found = p
			}
		}
		if found != "" {
			return found, field
		}
	}
	return "", ""
}

// meant is the field of an object that an unknown one probably stands for, or "".
func meant(name string, s *shape) string {
	name = strings.Trim(name, noBreakSpace)
	if slices.Contains(s.names, name) {
		return name
	}
	if word := otherWords[name]; word != "" && slices.Contains(s.names, word) {
		return word
	}
	return nearest.Of(name, s.names)
}

// spaced reports whether a no-break space is next to a key's name, as it comes from
// web pages.
func spaced(name string) bool { return strings.Trim(name, noBreakSpace) != name }

const noBreakSpace = "\u00a0"
