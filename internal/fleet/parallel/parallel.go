// Package parallel does many like things on all cores: reading the files of a fleet.
//
// Few are done one after the other, because starting goroutines takes longer than they do.
// Package fleet calls it, with functions that are safe for concurrent use.
package parallel

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls fn for 0 … n−1 on all cores and returns the first error.
func Each(ctx context.Context, n int, fn func(int) error) error {
	workers := min(runtime.GOMAXPROCS(0), (n+31)/32)
	if workers <= 1 {
		for i := range n {
			if err := errors.Join(ctx.Err(), fn(i)); err != nil {
				return err
			}
		}
		return nil
	}
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	for range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := errors.Join(ctx.Err(), fn(i)); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}
