// Package wires are what a peer can do to a port behind TLS below HTTP: frames,
// header blocks and bytes that no client library sends, and connections that say
// nothing or take no answer. A test sets them on its server, asks honestly meanwhile
// and afterwards, and measures what the server holds.
//
// Callers: tests of internal/server and internal/admission/hook, each with ports of
// its own. A Port is safe for concurrent use; its connections are open until Close.
package wires
