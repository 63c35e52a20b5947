package kustomize

import "github.com/fleetbroker/fleetbroker/internal/api/child"

// Death is a build whose process ended before it answered.
type Death = child.Death
