// Package logtest keeps what a test's code logs, and holds it against the codes of lines.
//
// Invariant: a line that is asked for by its code is found however its message is worded, as
// long as internal/api/logs gives the message that code. Each code that the runbook explains
// is asked for by a test (internal/api/logs).
//
// Only tests call it. Lines are safe for concurrent use.
package logtest
