package scenario

import (
	"errors"
	"fmt"
	"regexp"
)

// idForm is a job's ID: 26 letters and figures by chance, and the replica that runs it.
var idForm = regexp.MustCompile(`^([A-Z2-7]{26})(?:\.([a-z0-9](?:[a-z0-9.-]{0,198}[a-z0-9])?))?$`)

// IDOf is the ID of a job that a replica runs, "" for one that is alone, from a random text
// of crypto/rand.
func IDOf(replica, random string) string {
	if replica == "" {
		return random
	}
	return random + "." + replica
}

// ReplicaOf is the replica that an ID names, "" for none; false for what is no ID.
func ReplicaOf(text string) (string, bool) {
	m := idForm.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[2], true
}

// ErrNone says that who asks has no simulation of that ID.
var ErrNone = errors.New("no such simulation")

// Away is a simulation whose replica cannot be asked.
type Away struct {
	Replica string
	// Lost: the replica lives no more, and its simulations with it.
	Lost bool
	// Cause is why one that lives was not heard; nil where it is Lost.
	Cause error
}

// Error says which replica it is.
func (a *Away) Error() string {
	if a.Lost {
		return fmt.Sprintf("replica %s of the daemon, which ran the simulation, lives no more: what it simulated is gone", a.Replica)
	}
	return fmt.Sprintf("replica %s of the daemon, which runs the simulation, does not answer: %v", a.Replica, a.Cause)
}

// Unwrap is the cause.
func (a *Away) Unwrap() error { return a.Cause }
