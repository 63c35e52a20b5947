// Package focus writes what contracts cost as rows of the FinOps Open Cost and Usage
// Specification, 1.0 or 1.3, for finance's own tools, and converts between currencies.
//
// Invariants:
//   - Every row keeps to the constraints of the published columns (testdata), and
//     quantity times unit price is the cost to a millionth.
//   - Only what has accrued is a row; a forecast is none.
//   - Cells are escaped for spreadsheets. Tags of our own domain are ours to say, never an
//     intent's.
//
// The command `cost` calls it. All are functions of their arguments, safe for concurrent use.
package focus
