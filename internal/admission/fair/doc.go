// Package fair shares a port that anybody may reach between the addresses that come:
// connections (Listener) and places of requests (Places). Package admission/hook uses it,
// whose callers show no certificate unless an authority is given.
//
// Invariants:
//   - No address keeps another out: one that comes to a full port takes the place of the
//     oldest connection of the address that has most, and of places an address has at most
//     its own part at once.
//   - What waits is bounded for each address.
//   - Addresses are those of networks that one host has to itself (package server/hosts).
//     Two that fill their parts of places take all of them where the parts are more than half.
//     Who has more addresses than there are places keeps others out.
//
// All of it is safe for concurrent use.
package fair
