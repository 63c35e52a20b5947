// Package tables prints lists: for people on a terminal, for programs in a pipe, as
// Markdown for a comment, and as data.
//
// Rules. A table has one header, declared once, and every row has a cell for each of its
// columns, those of the wide form too; so what the wide form shows is what JSON has
// (Table.Columns). On a terminal columns are aligned, ages are "6m", money has two
// decimals, and a column of words (REASON, MESSAGE, WHY, WHAT) is cut so that lines fit
// the terminal's width, except in the wide form. In a pipe there are tabs, RFC 3339
// times, all decimals, and nothing is cut. Both have a header unless View.NoHeaders.
// Cells are untrusted: each is printed as one line without control characters.
//
// Changed tells two pictures of a list apart for a watch that writes into a pipe.
//
// The commands of internal/cli call it. A Table is filled and printed by one goroutine.
package tables
