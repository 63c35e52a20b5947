package daemon

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestNews_RestsAsPlansTake: reports that never end wake the loop for a part of its time
// only, the first at once; what else there is to know wakes it meanwhile.
func TestNews_RestsAsPlansTake(t *testing.T) {
	for _, c := range []struct {
		name      string
		took      time.Duration
		from, to  int // wakes in ten seconds
		clusterAt time.Duration
	}{
		{"a small fleet", time.Millisecond, 1900, 2001, 2 * time.Millisecond},
		{"a large one", 100 * time.Millisecond, 20, 21, 250 * time.Millisecond},
		{"a rest has an end", 2 * time.Second, 4, 5, 2500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
				defer stop()
				began := time.Now()
				market, cluster := make(chan struct{}, 1), make(chan struct{}, 1)
				var agents sync.WaitGroup
				defer agents.Wait()
				agents.Go(func() {
					tick := time.NewTicker(500 * time.Microsecond)
					defer tick.Stop()
					for {
						select {
						case <-ctx.Done():
							return
						case <-tick.C:
						}
						select {
						case market <- struct{}{}:
						default:
						}
					}
				})
				time.AfterFunc(c.clusterAt, func() { cluster <- struct{}{} })
				n := &News{}
				n.Planned(c.took)
				var at []time.Duration
				if err := n.Follow(ctx, market, cluster, func() { at = append(at, time.Since(began)) }); err != nil {
					t.Fatal(err)
				}
				if len(at) == 0 || at[0] > time.Millisecond {
					t.Fatalf("the first report woke at %v", at[:min(len(at), 1)])
				}
				told := false
				for _, d := range at {
					told = told || d == c.clusterAt
				}
				if !told {
					t.Errorf("news of a cluster at %s did not wake at once: %v", c.clusterAt, at[:min(len(at), 5)])
				}
				if len(at)-1 < c.from || len(at)-1 > c.to {
					t.Errorf("reports woke %d times in ten seconds, want %d to %d", len(at)-1, c.from, c.to)
				}
			})
		})
	}
}

// TestNews_TheLastReportWakes: a report that comes in a rest wakes the loop at its end.
func TestNews_TheLastReportWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		began := time.Now()
		market := make(chan struct{}, 1)
		market <- struct{}{}
		time.AfterFunc(300*time.Millisecond, func() { market <- struct{}{} })
		n := &News{}
		n.Planned(200 * time.Millisecond)
		var at []time.Duration
		if err := n.Follow(ctx, market, nil, func() { at = append(at, time.Since(began)) }); err != nil {
			t.Fatal(err)
		}
		if len(at) != 2 || at[0] != 0 || at[1] != time.Second {
			t.Errorf("woken at %v, want 0s and 1s", at)
		}
	})
}
