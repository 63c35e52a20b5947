// Package fair shares a port that anybody may reach between the addresses that come:
// connections (Listener) and places of requests (Places). Package admission/hook uses it,
// whose callers show no certificate unless an authority is given.
//
// Invariants:
//   - No address keeps another out: one that comes to a full port takes the place of the
//     oldest connection of the address that has most, and of places an address has at most
//     its own part at once.
//   - Who is slow keeps nobody from a place: one that is not settled in time is asked back for
//     an address that has fewer, however many addresses there are.
//   - What waits is bounded for each address.
//   - Addresses are those of networks that one host has to itself (package server/hosts).
//     Who has as many addresses as there are connections closes those of others.
//
// All of it is safe for concurrent use.
package fair
