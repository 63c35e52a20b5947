// Package usage estimates how much of what contracts hold their pods take, for
// the risk that a provider accepts when it sells more than there is
// (overcommit.maxRisk; the planner says what it does with the figure).
//
// A pod takes what it requests, because that is what the scheduler gives nobody
// else, and more where the cluster's metrics API measures more. Without that API
// (metrics-server or another) requests are all that is known. Devices are taken
// by requests alone.
//
// What a contract takes is averaged with a weight that falls by half in about 42
// minutes (e-fold in an hour). A contract that has just come, or has grown, is
// taken to use all that is new of it, and so is every contract after a start of
// the agent: too little is sold for an hour or two then, never too much.
//
// An Average is a value; a Meter may be used from one goroutine.
package usage
