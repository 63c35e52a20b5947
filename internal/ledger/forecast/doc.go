// Package forecast tells from a ledger's history what tenants will hold: so
// many GPUs an hour of each shape, with how wrong that would have been so far.
//
// # History
//
// Every contract of the ledger, held or ended, is a span of time. Histories
// cuts the spans into full hours: GPUs held on average. The hour that runs is
// not part of it, so all that ask within an hour see the same past. The window
// is the fleet's retention (Fleet.retention.ended), at most four weeks, and begins no
// earlier than the first contract that reaches into it: a young fleet has not
// held nothing for a week. Two things are not in it: what waited and never got
// a contract, and the fleet's own warm slices, which are supply.
//
// # Method
//
// Classical additive decomposition with exponential smoothing, per series:
//
//   - season: per hour of the day (UTC), the mean distance from the centred mean
//     of 24 hours (Hyndman and Athanasopoulos, Forecasting: Principles and
//     Practice, 3rd edition, section 3.4), shrunk by k/(k+1) where k days are
//     known; none before two days are;
//   - level and damped trend of what is left (Gardner and McKenzie 1985; the
//     book's section 8.2), with fixed constants: nothing is fitted, so nothing
//     can be fitted too well.
//
// A forecast is level, trend and season together, never below zero.
//
// # Error
//
// From the end of the second day on (of the first, where there are fewer than
// three) each hour of the window is forecast from what came before it alone,
// all hours ahead, and compared with what came: MAE is the mean absolute error
// in the unit of the series, MASE the same divided by that of repeating the same hour of the day before (the last hour, where
// there are fewer than two days; Hyndman and Koehler 2006). Below 1 the
// forecast is worth more than that.
//
// Everything is pure: the same contracts in any order give the same answer.
// The cost is one pass over the contracts and one over each series' hours.
// internal/cli shows it, and the planner sizes warm pools by it once an hour;
// nothing is cached here.
package forecast
