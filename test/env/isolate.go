package env

import (
	"context"
	"fmt"
	"io"
)

// Isolated names the environment variable by which a process knows that it runs
// in a network of its own, given by Isolate.
const Isolated = "FLEETBROKER_ISOLATED"

// Isolate is a preparation for envtest.Main: the tests run in a network of
// their own, which has a loopback interface and nothing else, because some of
// the real programs listen on every address there is. It starts the calling
// program again in that network, and ends the process with what that one ends
// with; in there it does nothing.
//
// Linux alone can do this; root is not needed where users may make namespaces.
func Isolate(_ context.Context, _ io.Writer) error {
	if err := isolate(); err != nil {
		return fmt.Errorf("run in a network of its own: %w", err)
	}
	return nil
}
