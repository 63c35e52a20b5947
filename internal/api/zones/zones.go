package zones

import (
	"errors"
	"sync"
	"time"
)

// maxName bounds the name of a zone, in bytes.
const maxName = 64

var errUnknown = errors.New("unknown time zone")

var known sync.Map // of *time.Location by name

// Load is the zone of an IANA name; "" and "UTC" are UTC. The zone of this
// machine ("Local") is none: every machine must read a file alike.
func Load(name string) (*time.Location, error) {
	if z, ok := known.Load(name); ok {
		return z.(*time.Location), nil
	}
	if name == "Local" || len(name) > maxName {
		return nil, errUnknown
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	known.Store(name, z)
	return z, nil
}
