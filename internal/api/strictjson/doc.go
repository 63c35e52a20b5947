// Package strictjson decodes the JSON that other machines send: reports,
// advertisements, reservations, instructions.
//
// encoding/json is generous in ways that a hostile sender uses: of two equal
// keys the last wins, so that what was checked or logged may not be what is
// used; `clusterID` and `clusterid` fill the same field; bytes that are
// no UTF-8 become U+FFFD; a control or bidirectional character passes into
// logs, files and terminals. And it makes a struct of a kilobyte of each `{}` of a list.
// Decode refuses all of that, and nesting, strings, numbers and lists beyond every
// honest size, before a value is made. What it lets
// through means the same to encoding/json as to any other parser.
//
// Invariants: unknown fields are let through, because a newer peer may send
// more than we know; the error is at most some hundred bytes, names the place
// by offset and shows nothing that could harm a terminal; cost is linear in the
// input, and what is made of it takes at most some hundred bytes for each byte. The size of the input is the caller's to bound.
//
// server and agent call it on whatever comes over the network. It holds no
// state and is safe for concurrent use.
package strictjson
