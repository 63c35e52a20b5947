package ahead_test

import (
	"os"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// TestMain pins the worlds that the properties draw (plantest.Pin).
func TestMain(m *testing.M) {
	plantest.Pin("100")
	os.Exit(m.Run())
}
