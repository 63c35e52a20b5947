// Package report draws a plan and an explanation for people and programs. It
// is the only renderer of both: the CLI, a pull request's comment, golden
// files and scenario files all print what comes from here.
//
// # Layout
//
// Column 0 shows what happens: + place, ! resize and move, - release and
// preempt, ? queue, x refuse; a diff fence colours it. Groups are in that
// order, so that problems are next to the sum at a terminal's end; in
// markdown, which is read from the top, they are reversed. Inside a group
// intents are ordered by name, reasons by count and then name. What is kept,
// suspended or done is counted and not shown, unless it gives something back
// just now (then under -); what is frozen, and files that
// could not be read, are under x. Lines are at most 100 columns of what the
// renderer itself writes in ASCII; colour is used only when asked for. Money
// has two decimals in text and is exact in JSON.
//
// # Invariants
//
// Equal plans give equal bytes. Control characters that came in with inputs
// (names of authors, messages) never reach a terminal. Counts in the sum are
// the counts of the decisions, with one addition: an unreadable file that
// froze nothing is one refusal in the text's sum, while `plan -o json` keeps
// it apart under errors.
//
// The package does no I/O but writing to the given writer, keeps no state and
// is safe for concurrent use. Callers are internal/cli and the tests.
package report
