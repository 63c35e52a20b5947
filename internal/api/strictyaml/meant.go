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
	"location": "regions", "locations": "regions", "country": "regions", "countries": "regions",
	"region": "regions", "zone": "zones", "arch": "architectures", "clusters": "providers",
	"count": "replicas", "notAfter": "deadline", "ttl": "duration", "hours": "duration",
	"nodeSelector": "labels", "filter": "where", "expression": "where",
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
