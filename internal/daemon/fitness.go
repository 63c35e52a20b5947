package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// remoteAway is how long the fleet repo may not answer before another replica should
// decide.
const remoteAway = 30 * time.Second

// Fitness says whether a replica may decide.
type Fitness struct {
	// Clock says why the clock is not to be trusted.
	Clock func() error
	// Read reports whether the fleet repo has been read.
	Read func() bool
	// RemoteOut is for how long it has not answered.
	RemoteOut func() time.Duration
	// Store that replicas share.
	Store store.Store
}

// Err says why it may not, nil when it may.
func (f Fitness) Err() error {
	if err := f.Clock(); err != nil {
		return err
	}
	if cut := f.Cut(); cut != "" {
		return errors.New("the market's store is out of reach: " + cut)
	}
	if !f.Read() {
		return errors.New("the fleet repo has not been read yet")
	}
	return away(f.RemoteOut())
}

// away says that the fleet repo has not answered for too long.
func away(out time.Duration) error {
	if out > remoteAway {
		return fmt.Errorf("the fleet repo has not answered for %s", out.Round(time.Second))
	}
	return nil
}

// Cut is why the store that replicas share is out of reach, "" when it is not.
func (f Fitness) Cut() string {
	if st := f.Store.Status(); st.Shared {
		return st.Cut
	}
	return ""
}

// shedEvery is how often connections are closed that come while nobody can be heard.
const shedEvery = 5 * time.Second

// Shed closes agents' connections while this replica is no use to them, until the
// context ends: they come again, and a balancer sends them elsewhere.
func Shed(ctx context.Context, useless func() bool, drop func() int, log *slog.Logger) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := time.Now()
		if !useless() || now.Sub(last) < shedEvery {
			continue
		}
		last = now
		if n := drop(); n > 0 {
			log.Info("agents' connections are closed, so that others serve them", "connections", n)
		}
	}
}
