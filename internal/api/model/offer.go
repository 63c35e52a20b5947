package model

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Offer is a flavor as the market knows it.
type Offer struct {
	// Flavor as reported, usage included.
	Flavor *v1alpha1.Flavor
	// Price that holds for it: as reviewed files state it, else its agent's, else its cluster's default; nil is unpriced.
	Price *v1alpha1.Price
	// Location that holds for it: as reviewed files state it, else its agent's.
	Location v1alpha1.Location
	// Sources of both, and what the agent says otherwise, for people: nothing is decided by them.
	Sources v1alpha1.Sources
	// State of the offer, and since when (not Fresh).
	State Freshness
	Since v1alpha1.Time
	// GraceEnds is when a silent provider becomes lost.
	GraceEnds v1alpha1.Time
	// Static: known from a file and not from an agent, so that no report will ever tell what is granted under a contract.
	Static bool
}

// Freshness is what is known of the agent behind an offer.
type Freshness uint8

// The states of an offer's provider.
const (
	// Fresh: reported within its interval, or static (a file).
	Fresh Freshness = iota
	// Silent: no report for a while, within its grace. Sells nothing new, keeps what it holds.
	Silent
	// Lost: silent past its grace. Its contracts fail over.
	Lost
	// Withdrawn: no longer offered by a provider that reports; live contracts are kept.
	Withdrawn
	// Elsewhere: what it offers is known by another's word alone: of a store of which it was not heard since, of another
	// replica that has a newer list, or, in records of the past, of another daemon. Sells nothing new, and is not silent.
	Elsewhere
)

// String is the state's name.
func (f Freshness) String() string {
	names := [...]string{"Fresh", "Silent", "Lost", "Withdrawn", "Elsewhere"}
	if int(f) >= len(names) {
		return fmt.Sprintf("Freshness(%d)", uint8(f)) // read from a record
	}
	return names[f]
}
