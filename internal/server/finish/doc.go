// Package finish lets a request that was answered hold little while its answer is not taken.
//
// A peer of HTTP/2 may leave an answer untaken (a window of no bytes) until the server's
// deadline, on each stream that it may have, and the server keeps the request until then:
// tens of kilobytes of headers, which cost the peer a few bytes where they repeat.
//
// # Invariants
//
//   - Once its handler has returned, a request of HTTP/2 holds neither headers nor address.
//   - The handler sees the request as it came.
//
// # Who calls it
//
// Package server, around the handlers of its ports.
//
// # Concurrency
//
// Handlers are safe for concurrent use if those that they wrap are.
package finish
