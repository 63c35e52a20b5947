package env

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Until asks for a condition until it is no error any more, and says how long that took.
// It is asked at once, and again after a quarter of the time that it has been waited for,
// within pauseFirst and pauseLast; but not before twice the time has passed that it took to
// look, at most pauseBusy: most conditions start a program or read a history, which takes
// the processor from what is waited for. The error is the last look's, with the context's.
func Until(ctx context.Context, limit time.Duration, condition func() error) (time.Duration, error) {
	const pauseFirst, pauseLast, pauseBusy = 20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second
	began := time.Now()
	for {
		looked := time.Now()
		err := condition()
		waited := time.Since(began)
		switch {
		case err == nil:
			return waited, nil
		case ctx.Err() != nil:
			return waited, errors.Join(err, context.Cause(ctx))
		case waited > limit:
			return waited, fmt.Errorf("after %s: %w", waited.Round(time.Second), err)
		}
		pause := max(min(max(waited/4, pauseFirst), pauseLast), min(2*time.Since(looked), pauseBusy))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
