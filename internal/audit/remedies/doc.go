// Package remedies says what an auditor can do about what audit verify found.
//
// Invariants: each kind of violation has a remedy, said once; each entry of the runbook that is
// named exists (TestOf).
//
// Caller: audit verify (internal/cli). It is pure, and safe for concurrent use.
package remedies
