package planner_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// TestMain pins the worlds that the properties draw (plantest.Pin).
func TestMain(m *testing.M) {
	plantest.Pin("250")
	log := planLog{of: map[string][]string{}}
	plantest.Watch = func(p *planner.Plan) { log.add(p) }
	code := m.Run()
	if code == 0 && whole() {
		for _, line := range log.differences() {
			fmt.Printf("FAIL: not in %s: %s\n", goldenTests, line)
			code = 1
		}
	}
	os.Exit(code)
}

// whole reports whether every test ran, once.
func whole() bool {
	for name, value := range map[string]string{"test.run": "", "test.skip": "", "test.count": "1", "test.short": "false", "test.list": ""} {
		if flag.Lookup(name).Value.String() != value {
			return false
		}
	}
	return true
}
