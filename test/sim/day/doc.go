// Package day plays a day of a busy fleet against its budget of pushes, in virtual time:
// clusters ask for capacity as Poisson's clients do, more by day than by night and in
// storms now and then, use it for hours and let go of it.
//
// Real are the write-back over its in-memory remote, the budget of pushes, market,
// planner and reconciler, whose loop runs as the daemon's does. A push takes two seconds.
// Consumers are a twin that lets nodes join after 10 to 40 s and drains them in 5 to 60.
// Time is that of a bubble of testing/synctest; a seed draws who asks when.
//
//	go test ./test/sim/day -v -contracts=2000 -hours=24
package day
