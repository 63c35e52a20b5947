// Package bounded runs a test's work in a child process and holds it to bounds
// of processor time and memory, which do not depend on what else the machine
// does.
//
// Tests of inputs that are made to hurt call it. It is safe for concurrent use;
// each call starts one process of its own.
package bounded
