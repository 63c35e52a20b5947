// Package plantest builds worlds for tests of the planner and of what is
// around it, so that a test reads like a sentence:
//
//	w := plantest.New().
//		Consumer("rome").
//		Provider("paris").
//		Tenant("vision", "rome").
//		Offer("paris/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Costs("2.85")).
//		Intent("vision/train", plantest.Wants(4, "H100"))
//
// A builder is for one test and one goroutine. Nothing here reads the clock:
// time stands still until Tick.
package plantest
