package daemon

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"time"
)

const (
	// hastyPercent is GOGC while a daemon starts: the heap grows all the while, and to go
	// through it each time that it has doubled costs a tenth of the start.
	hastyPercent = 400
	// hastyFor bounds how long a start counts as one.
	hastyFor = 15 * time.Minute
	// hastyLook is how often it is looked whether the start is over.
	hastyLook = 50 * time.Millisecond
)

// Hasten lets the collector of garbage run less often until started gives true, the context
// ends, or a quarter of an hour has passed, where a limit of memory keeps the heap in bounds
// (GOMEMLIMIT): it is met either way. Where GOGC is given it stays as it is. The value of
// before is put back.
func Hasten(ctx context.Context, started func() bool) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 || os.Getenv("GOGC") != "" {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(hastyPercent))
	ctx, cancel := context.WithTimeout(ctx, hastyFor)
	defer cancel()
	for ctx.Err() == nil && !started() {
		sleep(ctx, hastyLook)
	}
}
