// Package bounded runs a test's work in a child process and holds it to bounds
// of processor time and memory, which do not depend on what else the machine
// does. A Stopwatch is for what has to be quick by the clock.
//
// Tests of inputs that are made to hurt call it. It is safe for concurrent use;
// each Run starts one process of its own.
package bounded
