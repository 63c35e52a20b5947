package kustomize

// maxName is how long the name of an object may be, in bytes, as in Kubernetes: the names
// of objects are looked for in the name of each patch, and the count takes a constant
// time for each.
const maxName = 253

// tooLong refuses a name that is longer, nil where it is not. A file of "" is the
// kustomization's own.
func tooLong(file, what, name string) *Refusal {
	if len(name) <= maxName {
		return nil
	}
	return refusal(file, "%s: %.60q... has %d bytes, and no object has a name of more than %d: shorten it", what, name, len(name), maxName)
}
