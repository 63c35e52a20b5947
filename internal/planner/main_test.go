package planner_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets the properties draw the same worlds in every run, so that a
// change is judged by itself and not by luck. Others come with
// -rapid.seed=N, more with -rapid.checks=N.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.seed": "20261120", "rapid.checks": "250"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}
