// Package reach says which network addresses may be read from on the word of others, such as
// a tenant's source of intents.
//
// # Invariant
//
// No address that is allowed leads to a cloud's metadata service, which hands out the
// credentials of the machine, in any form in which such an address can be written.
//
// Package v1alpha1 asks when it reads a URL, package sources when it has resolved the host.
// It is safe for concurrent use: it keeps nothing.
package reach
