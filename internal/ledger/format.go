package ledger

import (
	"fmt"
	"strconv"
)

// Format numbers the layout of the ledger's files: which there are, where, and what their
// fields mean. A reader of a lower number would take what it does not know for damage, or
// write over it. 1 is the first that is written down; a ledger without a number has its
// layout too.
const Format = 1

// FormatTrailer is the trailer of the daemon's commits that has it.
const FormatTrailer = "Format"

// KnownFormat is an error for the format that a commit's trailer states, where this program
// may neither read nor write that ledger; "" is a commit without one.
func KnownFormat(said string) error {
	if said == "" {
		return nil
	}
	n, err := strconv.Atoi(said)
	if err != nil || n < 1 {
		return fmt.Errorf("the ledger's format %q is no number from 1 on", said)
	}
	if n > Format {
		return fmt.Errorf("the ledger has format %d, and this program knows up to %d: nothing is read, planned or delivered; start the version of fleetbroker that wrote it (trailer Version), or a newer one", n, Format)
	}
	return nil
}
