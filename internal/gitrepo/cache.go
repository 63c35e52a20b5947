package gitrepo

import (
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/accepted"
)

const acceptedFile = accepted.File

// Accepted are the heads last accepted.
type Accepted = accepted.Heads

// ReadAccepted reads the heads that a daemon with this state directory has
// accepted.
func ReadAccepted(state string) (Accepted, error) { return accepted.Read(state) }
