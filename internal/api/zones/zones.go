package zones

import (
	"errors"
	"regexp"
	"sync"
	"time"
)

// maxName bounds the name of a zone, in bytes.
const maxName = 64

var errUnknown = errors.New("unknown time zone")

// form is that of IANA names. Some machines know others, such as posixrules and right/UTC, and
// one zone by many paths (Europe/./Rome), each of which would be kept.
var form = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`)

var known sync.Map // of *time.Location by name

// Load is the zone of an IANA name; "" and "UTC" are UTC. The zone of this
// machine ("Local") is none, and neither is a name of another form: every machine must read a
// file alike.
func Load(name string) (*time.Location, error) {
	if z, ok := known.Load(name); ok {
		return z.(*time.Location), nil
	}
	if name == "Local" || len(name) > maxName || name != "" && !form.MatchString(name) {
		return nil, errUnknown
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	known.Store(name, z)
	return z, nil
}
