package planner

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/beyond"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
	"github.com/fleetbroker/fleetbroker/internal/planner/scarcity"
)

// What goes in and comes out is what a draft is made of (package draft).
type (
	// World is everything a round knows.
	World = draft.World
	// Observations are what clusters report of contracts.
	Observations = draft.Observations
	// Plan is what a round decides.
	Plan = draft.Plan
	// Decision is what a plan does with one intent, and why.
	Decision = draft.Decision
	// ContractLine is a contract as a plan shows it.
	ContractLine = draft.ContractLine
	// Action is what a plan does with an intent.
	Action = draft.Action
	// Condition is something about a provider that people should look at.
	Condition = draft.Condition
	// SilentProvider is a provider without recent reports.
	SilentProvider = draft.SilentProvider
	// BudgetLine is a tenant's budget as of a plan.
	BudgetLine = draft.BudgetLine
	// Calendar is what is booked ahead.
	Calendar = draft.Calendar
	// Explanation is everything about one intent.
	Explanation = draft.Explanation
	// OfferLine is one offer as an explanation shows it.
	OfferLine = draft.OfferLine
)

// The actions, as they are in `plan -o json`.
const (
	Place   = draft.Place
	Keep    = draft.Keep
	Resize  = draft.Resize
	Move    = draft.Move
	Release = draft.Release
	Preempt = draft.Preempt
	Queued  = draft.Queued
	Refuse  = draft.Refuse
	Suspend = draft.Suspend
	Done    = draft.Done
	Frozen  = draft.Frozen
	Find    = draft.Find
)

// The rules' numbers (package draft).
const (
	Rules       = draft.Rules
	SolvedRules = draft.SolvedRules
	ReasonRules = draft.ReasonRules
	OrderRules  = draft.OrderRules
)

// CalendarOf is that of bookings in a timezone, nil where there are none.
var CalendarOf = draft.CalendarOf

// SameObservation reports whether two observations report the same.
var SameObservation = draft.SameObservation

// NothingFits is, in a sentence, why none of so many offers fits.
var NothingFits = said.NothingFits

// ScoreTerms are the names of the terms of a score, in the order of the formula.
func ScoreTerms() []string { return append(match.ScoreTerms(), scarcity.Term) }

// Shortfall is what a requirement's failure means, in a few words.
var Shortfall = said.Shortfall

// BeyondLimits names what exists beyond what the fleet allows now.
var BeyondLimits = beyond.Limits
