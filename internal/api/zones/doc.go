// Package zones loads time zones once. Reports and intents name one for each
// window, and reading the zone database for each costs a report of a few
// megabytes seconds of processor time.
//
// Only zones that exist are kept, so that what is kept is bounded by the zone
// database. Callers are the rooms that check or evaluate windows. Safe for any
// goroutine; imports nothing of the project.
package zones
