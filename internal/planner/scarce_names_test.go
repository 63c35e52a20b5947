package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// Who usually comes does not depend on how their names alternate, among more intents than are
// asked, whether or not others wait between them.
func TestScarcity_WhateverTheNames(t *testing.T) {
	for _, c := range []struct {
		names   [2]string // of those with four H100s, and of those with an L40S
		waiting string
	}{
		{[2]string{"x%03d-a", "x%03d-b"}, ""},
		{[2]string{"x%03d-b", "x%03d-a"}, ""},
		{[2]string{"a%03d", "b%03d"}, ""},
		{[2]string{"b%03d", "a%03d"}, ""},
		{[2]string{"x%03d-a", "x%03d-b"}, "x%03d-c"},
		{[2]string{"x%03d-b", "x%03d-c"}, "x%03d-a"},
	} {
		b := New().Consumer("rome").Provider("paris", "lyon", "nice").Tenant("vision", "rome").Tenant("other", "rome").
			Offer("paris/h100", Cards("nvidia-h100", 604, "80Gi"), Capacity("cpu=100000 memory=1000Ti"), Costs("2")).
			Offer("lyon/a100", Cards("nvidia-a100", 400, "80Gi"), Capacity("cpu=100000 memory=1000Ti"), Costs("2.5")).
			Offer("nice/l40s", Cards("nvidia-l40s", 800, "48Gi"), Capacity("cpu=100000 memory=1000Ti"), Costs("3"))
		for i := range 150 {
			b.Intent("vision/"+fmt.Sprintf(c.names[0], i), Wants(4, "H100"), cheapest).Intent("vision/"+fmt.Sprintf(c.names[1], i), Wants(1, "L40S"), cheapest)
			if c.waiting != "" {
				b.Intent("vision/"+fmt.Sprintf(c.waiting, i), Wants(4, "B200"), cheapest)
			}
		}
		b.Round()
		p := b.Tick(time.Minute).Intent("other/flex", Wants(4, "H100", "A100"), cheapest).Round()
		if got := placedAt(t, p, "other/flex"); got != "lyon/a100" {
			t.Errorf("next to %s it is placed on %s: %s", strings.Join(append(c.names[:], c.waiting), " "), got, Of(p, "other/flex").Reason)
		}
	}
}
