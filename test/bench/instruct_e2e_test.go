//go:build e2e

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// instructed is how many instructions are waited for.
const instructed = 41

// BenchmarkCommitToInstruction measures from the answer to a reservation, which
// is sent when its commit is acknowledged, until the provider's agent, which
// waits in a long poll, knows of the contract. One that knows it first waits no
// time at all.
func BenchmarkCommitToInstruction(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 3*time.Minute)
	defer cancel()
	for b.Loop() {
		c := openCounter(ctx, b, nil)
		rome := c.lines(b, 1)[0]
		paris, err := c.Line("p0", c.daemon)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(paris.Close)
		known, err := paris.Instructions(ctx, "", 0)
		if err != nil {
			b.Fatal(err)
		}
		spec := &v1alpha1.IntentSpec{}
		if err := json.Unmarshal([]byte(`{"resources": {"cpu": "1", "memory": "1Gi"}, "placement": {"providers": {"allow": ["p0"]}}}`), spec); err != nil {
			b.Fatal(err)
		}
		ask := wire.ReservationRequest{Spec: spec}
		var waits []time.Duration
		for i := range instructed {
			heard := make(chan error, 1)
			var at time.Time
			go func() {
				known, err = next(ctx, paris, known)
				at = time.Now()
				heard <- err
			}()
			got, err := rome.Reserve(ctx, fmt.Sprintf("told-%d", i), ask)
			answered := time.Now()
			if err != nil {
				b.Fatal(err)
			}
			if err := <-heard; err != nil {
				b.Fatal(err)
			}
			if !slices.ContainsFunc(known.Provide, func(i wire.Instruction) bool { return i.Contract == got.Contract }) {
				b.Fatalf("p0 was told of %d contracts, and not of %s on %s", len(known.Provide), got.Contract, got.TargetClusterID)
			}
			waits = append(waits, max(at.Sub(answered), 0))
		}
		results.below(fmt.Sprintf("instruction at the provider after its commit (median of %d)", instructed), ms(median(waits)), 100, "ms")
		results.below(fmt.Sprintf("instruction at the provider after its commit (longest of %d)", instructed), ms(slices.Max(waits)), 100, "ms")
	}
}

// next waits for instructions that are newer than those known.
func next(ctx context.Context, line transport.Transport, known wire.Instructions) (wire.Instructions, error) {
	for {
		in, err := line.Instructions(ctx, known.Version, 30*time.Second)
		if !errors.Is(err, transport.ErrUnchanged) {
			return in, err
		}
	}
}
